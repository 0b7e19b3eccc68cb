"""Consumers of the change feed in Spark: streams that record their progress, and batches that start from it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from stream_runs import Source

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def orders(lake: Catalog, namespace: str) -> Table:
    return lake.create_table((namespace, "orders"), SCHEMA, key=["id"])


def add(table: Table, *ids: int) -> int:
    result = table.refresh().append(pa.table({"id": list(ids), "v": ["v"] * len(ids)}, schema=SCHEMA))
    assert result.snapshot_id is not None
    return result.snapshot_id


def source(spark: SparkSession, table: Table, checkpoint: Path, **options: Any) -> Source:
    name = f"lake.{table.name}"
    return Source(spark, name, checkpoint, columns=lambda rows: rows.select("id"), consumer="mart", **options)


def position(table: Table) -> int | None:
    found = {row["name"]: row["snapshot_id"] for row in table.refresh().consumers.list().to_pylist()}
    position: int | None = found.get("mart")
    return position


def ids(batches: list[list[tuple[Any, ...]]]) -> list[list[int]]:
    return [[row[0] for row in batch] for batch in batches]


def expire(table: Table) -> set[int]:
    table.refresh().maintenance.expire_snapshots(older_than=timedelta(0), retain_last=1)
    return {snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots}


def test_stream_consumer_protects_unread_snapshots_from_expiry(
    spark: SparkSession, orders: Table, tmp_path: Path
) -> None:
    """SS-15, CF-11: while it is stopped, expiry keeps its snapshots; the position follows each micro-batch that Spark
    has committed."""
    first = add(orders, 1)
    stream = source(spark, orders, tmp_path / "checkpoint", streaming_max_files_per_micro_batch=1)
    assert ids(stream.batches()) == [[1]]
    assert position(orders) == first
    second, third, fourth = add(orders, 2), add(orders, 3), add(orders, 4)
    assert expire(orders) == {first, second, third, fourth}
    assert ids(stream.batches()) == [[2], [3], [4]]
    assert position(orders) in (third, fourth)
    assert ids(stream.batches()) == []
    fifth = add(orders, 5)
    assert {fourth, fifth} <= expire(orders)
    assert first not in expire(orders)
    assert ids(stream.batches()) == [[5]]


def test_consumer_keeps_initial_snapshot_until_fully_read(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    """SS-15: the table that a stream begins with is kept until all of it was read."""
    with orders.transaction() as transaction:
        for key in (1, 2, 3):
            transaction.append(pa.table({"id": [key], "v": ["v"]}, schema=SCHEMA))
    first = orders.refresh().snapshot_id
    seen: list[tuple[list[int], int | None]] = []
    stream = source(spark, orders, tmp_path / "checkpoint", streaming_max_files_per_micro_batch=1)
    later: list[int] = []

    def look(batch: Any) -> None:
        seen.append((sorted(row.id for row in batch.collect()), position(orders)))
        if not later:
            later.append(add(orders, 4))

    stream.run(look)
    assert seen == [([1], first), ([2], first), ([3], first)]
    assert expire(orders) == {first, *later}
    assert ids(stream.batches()) == [[4]]


def test_repeated_micro_batch_does_not_move_consumer_back(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    """SS-15: as if the driver had died before Spark wrote down that the micro-batch is done."""
    add(orders, 1)
    stream = source(spark, orders, tmp_path / "checkpoint")
    stream.batches()
    second = add(orders, 2)
    assert ids(stream.batches()) == [[2]]
    stream.forget_last_commit()
    before = position(orders)
    assert ids(stream.batches()) == [[2]]
    assert position(orders) in (before, second)
    add(orders, 3)
    assert ids(stream.batches()) == [[3]]


def test_stream_cannot_start_before_its_consumer(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    """SS-15: another query may use the name, or the consumer has to be dropped."""
    first, second = add(orders, 1), add(orders, 2)
    orders.refresh().consumers.advance("mart", second)
    stream = source(spark, orders, tmp_path / "checkpoint", start_snapshot_id=first)
    with pytest.raises(Exception, match=r"is at snapshot \d+ and cannot move back"):
        stream.batches()
    orders.refresh().consumers.drop("mart")
    assert ids(stream.batches()) == [[2]]


@pytest.mark.since_spark("4.2", "streams of changes")
def test_streams_and_batches_of_changes(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    """SS-15, SS-16: a batch begins after the position and does not move it."""
    add(orders, 1)
    stream = source(spark, orders, tmp_path / "checkpoint", has_changes=True)
    assert ids(stream.batches()) == [[1]]
    second = add(orders, 2)
    orders.refresh().delete_prefix({"id": 1})
    assert ids(stream.batches()) == [[1, 2]]
    add(orders, 3)
    orders.refresh().consumers.drop("mart")
    orders.refresh().consumers.advance("mart", second)
    name = f"lake.{orders.name}"
    feed = spark.read.option("consumer", "mart").changes(name).select("_change_type", "id")
    assert sorted(tuple(row) for row in feed.collect()) == [("delete", 1), ("insert", 3)]
    assert position(orders) == second
    with pytest.raises(AnalysisException, match="both define the lower bound"):
        spark.read.option("consumer", "mart").option("startingVersion", 1).changes(name).collect()


def test_changelog_table_starts_at_the_consumer_position(spark: SparkSession, orders: Table) -> None:
    """SS-16"""
    first = add(orders, 1)
    add(orders, 2)
    orders.refresh().consumers.advance("mart", first)
    table = f"lake.{orders.name}.changes"
    rows = spark.read.option("consumer", "mart").table(table).select("_change_type", "id").collect()
    assert [tuple(row) for row in rows] == [("INSERT", 2)]
    with pytest.raises(AnalysisException, match="define the same bound"):
        spark.read.option("consumer", "mart").option("start-snapshot-id", first).table(table).collect()
    with pytest.raises(AnalysisException, match="nobody"):
        spark.read.option("consumer", "nobody").table(table).collect()
