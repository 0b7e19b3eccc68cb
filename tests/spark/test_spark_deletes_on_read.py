"""SELECT applies every kind of delete."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Twelve rows in two files: a1..a6 and b1..b6."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    for letter in "ab":
        created.append(pa.table({"id1": [letter] * 6, "id2": np.arange(1, 7), "v": np.arange(6) / 2}, schema=SCHEMA))
    return created


def rows(spark: SparkSession, table: Table, where: str = "true") -> list[str]:
    """The keys that Spark sees, such as "a1"."""
    found = spark.sql(f"SELECT id1, id2 FROM lake.{table.name} WHERE {where}").collect()
    return sorted(f"{row.id1}{row.id2}" for row in found)


def python_rows(table: Table) -> list[str]:
    found = table.refresh().scan(columns=["id1", "id2"]).to_arrow().to_pylist()
    return sorted(f"{row['id1']}{row['id2']}" for row in found)


def test_all_delete_kinds_apply_and_later_rows_stay(spark: SparkSession, table: Table) -> None:
    table.delete("v = 0", mode="scan")
    table.delete("id2 = 2", mode="equality")
    table.delete_prefix({"id1": "b", "id2": 3})
    table.append(pa.table({"id1": ["b", "b"], "id2": [3, 2], "v": [9.0, 9.0]}, schema=SCHEMA))
    assert rows(spark, table) == ["a3", "a4", "a5", "a6", "b2", "b3", "b4", "b5", "b6"] == python_rows(table)


def test_row_written_with_its_range_delete_stays_visible(spark: SparkSession, table: Table) -> None:
    """RD-2: strictly older data only."""
    table.replace(pa.table({"id1": ["a"], "id2": [4], "v": [1.0]}, schema=SCHEMA), prefix=["id1"])
    assert rows(spark, table, "id1 = 'a'") == ["a4"]


def test_converted_deletes_give_the_same_rows(spark: SparkSession, table: Table) -> None:
    table.delete("id2 = 2", mode="equality")
    table.delete_prefix({"id1": "b", "id2": 3})
    before = rows(spark, table)
    table.maintenance.convert_deletes()
    assert rows(spark, table) == before


def test_delete_columns_need_not_be_selected(spark: SparkSession, table: Table) -> None:
    table.delete("id2 = 6", mode="equality")
    assert spark.sql(f"SELECT sum(v) FROM lake.{table.name}").collect()[0][0] == 2 * (0 + 0.5 + 1 + 1.5 + 2)


def test_file_of_many_row_groups_in_several_splits(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """Row positions count from the start of the file, also in a split that begins in its middle."""
    row_count = 40_000
    created = lake.create_table(
        (namespace, "wide"), SCHEMA, key=["id1", "id2"], properties={"write.parquet.row-group-limit": "1000"}
    )
    created.append(
        pa.table(
            {"id1": ["x"] * row_count, "id2": np.arange(row_count), "v": np.random.default_rng(1).random(row_count)},
            schema=SCHEMA,
        )
    )
    created.delete_range(lower=("x", 500), upper=("x", 20_500))
    created.delete("id2 = 39999", mode="equality")
    created.delete("id2 IN (7, 14, 30000)", mode="scan")
    previous = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.openCostInBytes", "1")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        frame = spark.table(f"lake.{created.name}")
        assert frame.rdd.getNumPartitions() > 2
        assert frame.selectExpr("count(*)", "sum(id2)").collect()[0] == (
            19_996,
            sum(range(500)) + sum(range(20_500, row_count)) - 7 - 14 - 30_000 - 39_999,
        )
        assert frame.where("id2 = 30001").select("_pos").collect()[0][0] == 30_001
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", previous)
        spark.conf.unset("spark.sql.files.openCostInBytes")
