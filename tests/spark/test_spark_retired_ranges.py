"""Retired ranges and the history of range partitions, as Spark displays them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import tableformat as tf
from tableformat import Catalog, Table

SCHEMA = pa.schema([("year", pa.int32()), ("id", pa.int64())])


@pytest.fixture
def sales(lake: Catalog, namespace: str) -> Table:
    years = tf.RangePartitions(on=["year"], bounds=[(2020, 2024)], step=1)
    table = lake.create_table((namespace, "sales"), SCHEMA, key=["year", "id"], range_partitions=years)
    table.append(pa.table({"year": [2020, 2021], "id": [1, 2]}, SCHEMA))
    return table


def test_range_list_and_history_in_spark(spark: SparkSession, sales: Table) -> None:
    """RP-32, RP-33: VERSION AS OF has the ranges of its time; additions are in the history."""
    name = f"lake.{sales.name}"
    loaded = sales.snapshot_id
    spark.sql(f"ALTER TABLE {name} ADD RANGE PARTITION 2024 <= VALUES < 2025")
    spark.sql(f"ALTER TABLE {name} DROP RANGE PARTITION 2020 <= VALUES < 2021")
    past = spark.sql(f"SELECT lower, state FROM {name}.range_partitions VERSION AS OF {loaded} ORDER BY lower")
    expected = [(2020, "live"), (2021, "live"), (2022, "empty"), (2023, "empty")]
    assert [tuple(row) for row in past.collect()] == expected
    history = spark.sql(f"SELECT change, partition, snapshot_id FROM {name}.range_partition_history")
    dropped = sales.refresh().snapshot_id
    assert [tuple(row) for row in history.collect()] == [
        ("defined", "[2020, 2024)", None),
        ("added", "[2024, 2025)", None),
        ("dropped", "[2020, 2021)", dropped),
    ]


def test_retired_range_and_its_tag_are_displayed(spark: SparkSession, sales: Table) -> None:
    """RP-30: SHOW, the metadata table, the plan, and the error of a rejected row."""
    name = f"lake.{sales.name}"
    loaded = sales.snapshot_id
    tag = sales.range_partitions.retire(2020, 2021).tag
    first = spark.sql(f"SHOW RANGE PARTITIONS {name}").first()
    assert first is not None
    assert (first["partition"], first["state"], first["record_count"], first["tag"]) == (
        "[2020, 2021)",
        "retired",
        1,
        tag,
    )
    assert first["retired_at"].startswith("20")
    retired = spark.sql(f"SELECT lower, tag, record_count FROM {name}.range_partitions WHERE state = 'retired'")
    assert [tuple(row) for row in retired.collect()] == [(2020, tag, 1)]
    plan = spark.sql(f"EXPLAIN SELECT * FROM {name} WHERE year = 2020").first()
    assert plan is not None
    assert f"notReadRetired=[2020, 2021) in tag '{tag}'" in plan[0]
    past = spark.sql(f"EXPLAIN SELECT * FROM {name} VERSION AS OF {loaded}").first()
    assert past is not None
    assert "notReadRetired" not in past[0]
    with pytest.raises(AnalysisException, match=f"in the tag '{tag}'.*restore_range_partition"):
        spark.sql(f"INSERT INTO {name} VALUES (2020, 9)")
    spark.sql(f"ALTER TABLE {name} DROP TAG `{tag}`")
    assert not spark.sql(f"SHOW RANGE PARTITIONS {name}").where("state = 'retired'").count()
    assert not [each for each in sales.refresh().properties if each.startswith("tableformat.retired.")]
