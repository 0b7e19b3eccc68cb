"""RP-29: a dynamic overwrite of a table with range partitions replaces only the ranges that contain its rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import tableformat as tf
from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("year", pa.int32(), nullable=False),
        ("kind", pa.string()),
    ]
)
YEARS = tf.RangePartitions(on=["year"], bounds=[(2010, 2014), (2016, 2018)], splits=[2012])
OLD = [(1, 2010, "a"), (2, 2011, "b"), (3, 2012, "a"), (4, 2013, "b"), (5, 2016, "a"), (6, 2017, "b")]


@pytest.fixture
def dynamic(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    yield
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def made(rows: list[tuple[int, int, str]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def overwrite(spark: SparkSession, table: Table, *rows: tuple[int, int, str]) -> list[int]:
    """The ids of the table afterwards."""
    values = ", ".join(f"({key}L, {year}, '{kind}')" for key, year, kind in rows)
    spark.sql(f"INSERT OVERWRITE lake.{table.name} SELECT * FROM VALUES {values}")
    return ids(table)


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist())
    return found


@pytest.mark.parametrize(
    ("partition_by", "left"),
    [
        ([], [3, 4, 5, 6]),
        (["kind"], [2, 3, 4, 5, 6]),
        (["year"], [2, 3, 4, 5, 6]),
        (["truncate(4, year)"], [3, 4, 5, 6]),
    ],
    ids=["unpartitioned", "across", "finer", "coarser"],
)
def test_other_ranges_keep_their_rows(
    spark: SparkSession, lake: Catalog, namespace: str, dynamic: None, partition_by: list[str], left: list[int]
) -> None:
    """RP-29: a partition is one of the spec within one range partition. Rows that are deleted stay so."""
    table = lake.create_table((namespace, "t"), SCHEMA, partition_by=partition_by, range_partitions=YEARS)
    table.append(made([*OLD, (7, 2012, "a"), (8, 2010, "a")]))
    table.delete("id in (7, 8)", mode="scan")
    assert overwrite(spark, table, (9, 2010, "a")) == [*left, 9]
    assert overwrite(spark, table, (10, 2010, "a")) == [*left, 10]
    assert table.verify(deep=True).is_clean


def test_dynamic_overwrite_searches_rows_in_files_of_other_layouts(
    spark: SparkSession, lake: Catalog, namespace: str, dynamic: None
) -> None:
    """A file of before the table had range partitions, and one of another spec: rows are looked for."""
    table = lake.create_table((namespace, "t"), SCHEMA)
    table.append(made([*OLD, (7, 2015, "a")]))
    table.range_partitions.define(YEARS)
    assert overwrite(spark, table, (8, 2013, "x")) == [1, 2, 5, 6, 7, 8]
    with table.update_spec() as spec:
        spec.add_field("kind", "identity")
    table.append(made([(9, 2013, "b"), (10, 2016, "b")]))
    assert overwrite(spark, table.refresh(), (11, 2010, "b"), (12, 2017, "a")) == [1, 6, 7, 8, 9, 10, 11, 12]
    assert table.refresh().verify(deep=True).is_clean


def test_dynamic_overwrite_with_on_demand_ranges(
    spark: SparkSession, lake: Catalog, namespace: str, dynamic: None
) -> None:
    """RP-9: a step that the rows add has no rows of before; the others keep theirs."""
    ranges = tf.RangePartitions(on=["year"], step=2, origin=2000, on_demand=True)
    table = lake.create_table((namespace, "t"), SCHEMA, partition_by=["truncate(4, id)"], range_partitions=ranges)
    table.append(made(OLD))
    assert overwrite(spark, table, (10, 2030, "a")) == [1, 2, 3, 4, 5, 6, 10]
    assert overwrite(spark, table, (0, 2013, "c")) == [0, 1, 2, 4, 5, 6, 10]
    assert overwrite(spark, table, (7, 2016, "c")) == [0, 1, 2, 4, 7, 10]


def test_concurrent_rows_of_other_ranges_do_not_conflict(
    spark: SparkSession, lake: Catalog, namespace: str, dynamic: None
) -> None:
    """SP-47: rows of the same range are a conflict, regardless of their sequence number."""
    table = lake.create_table((namespace, "t"), SCHEMA, range_partitions=YEARS)
    table.append(made(OLD))
    since = str(table.snapshot_id)
    table.append(made([(7, 2017, "a")]))
    rows = spark.sql("SELECT 8L id, 2013 year, 'c' kind").writeTo(f"lake.{table.name}")
    checked = {"isolation-level": "serializable", "validate-from-snapshot-id": since}
    rows.options(**checked).overwritePartitions()
    assert ids(table) == [1, 2, 5, 6, 7, 8]
    again = spark.sql("SELECT 9L id, 2016 year, 'c' kind").writeTo(f"lake.{table.name}")
    with pytest.raises(AnalysisException, match="was added"):
        again.options(**checked).overwritePartitions()
    assert ids(table) == [1, 2, 5, 6, 7, 8]
