"""`spark.readStream.table(...)`: the start position, the size of a micro-batch, what stops the stream, and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr
from stream_runs import Source

from spark_ext.service.streams.stream_offset import StreamOffset
from tableformat import Catalog, Table
from tableformat.errors import UnsupportedFeatureError

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    return lake.create_table((namespace, "t"), SCHEMA, key=["id"])


@pytest.fixture
def source(spark: SparkSession, table: Table, tmp_path: Path) -> Source:
    """A stream of the ids."""
    return Source(spark, f"lake.{table.name}", tmp_path / "checkpoint", columns=lambda rows: rows.select("id"))


def add(table: Table, *ids: int) -> int:
    """One more data file, and the id of the snapshot that it makes."""
    rows = pa.table({"id": list(ids), "v": [f"v{number}" for number in ids]}, schema=SCHEMA)
    return int(table.refresh().append(rows).snapshot_id)


def add_files(table: Table, *files: list[int]) -> int:
    """One snapshot with several data files."""
    with table.refresh().transaction() as transaction:
        for ids in files:
            transaction.append(pa.table({"id": ids, "v": ["v"] * len(ids)}, schema=SCHEMA))
    return int(transaction.result.snapshot_id)


def ids(batches: list[list[tuple[Any, ...]]]) -> list[list[int]]:
    return [[row[0] for row in batch] for batch in batches]


def test_stream_starts_with_existing_rows_then_appends(table: Table, source: Source) -> None:
    """SS-1: deletes of every kind are applied to what the table has when the stream begins."""
    add(table, 1, 2, 3, 4, 5)
    add(table, 6, 7)
    table.delete_range(lower=(2,), upper=(3,))
    table.delete_rows(pa.table({"id": [6]}))
    table.delete("v = 'v4'", mode="scan")
    assert ids(source.batches()) == [[1, 3, 5, 7]]
    assert source.batches() == []
    add(table, 2)
    add(table, 8, 9)
    assert ids(source.batches()) == [[2, 8, 9]]
    assert source.batches() == []


def test_initial_table_is_streamed_oldest_rows_first(
    spark: SparkSession, lake: Catalog, table: Table, namespace: str, tmp_path: Path
) -> None:
    """SS-4: newer messages replaced older ones in the order of the source, and the older ones used to arrive last."""
    copy = lake.create_table((namespace, "copy"), SCHEMA, key=["id"])
    for value in ("first", "second", "third"):
        table.refresh().append(pa.table({"id": [1, 2], "v": [value, value]}, schema=SCHEMA))
    table.delete("id = 2 AND v = 'third'", mode="scan")
    rows = Source(spark, f"lake.{table.name}", tmp_path / "checkpoint", streaming_max_files_per_micro_batch=1).rows()
    (
        rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("replace-prefix", "id")
        .trigger(availableNow=True)
        .toTable(f"lake.{copy.name}")
        .awaitTermination()
    )
    assert sorted(tuple(row.values()) for row in copy.refresh().scan().to_arrow().to_pylist()) == [
        (1, "third"),
        (2, "second"),
    ]


def test_stream_starts_after_a_snapshot(table: Table, source: Source) -> None:
    first = add(table, 1)
    add(table, 2)
    add(table, 3)
    source.options["start-snapshot-id"] = str(first)
    assert ids(source.batches()) == [[2, 3]]
    add(table, 4)
    assert ids(source.batches()) == [[4]]


def test_stream_starts_at_a_timestamp(table: Table, source: Source) -> None:
    add(table, 1)
    second = add(table, 2)
    add(table, 3)
    snapshot = table.refresh().metadata.snapshot_by_id(second)
    assert snapshot is not None
    source.options["stream-from-timestamp"] = str(snapshot.timestamp_ms)
    assert ids(source.batches()) == [[2, 3]]


def test_unknown_start_snapshot_raises_error(table: Table, source: Source) -> None:
    add(table, 1)
    source.options["snapshot-id"] = "77"
    with pytest.raises(Exception, match="snapshot-id 77 is not a retained snapshot of the branch"):
        source.batches()


def test_stream_of_a_branch(spark: SparkSession, table: Table, source: Source, tmp_path: Path) -> None:
    add(table, 1)
    table.create_branch("side")
    add(table, 2)
    assert table.catalog is not None
    side = table.catalog.load_table(table.name, branch="side")
    source.options["branch"] = "side"
    assert ids(source.batches()) == [[1]]
    add(side, 3)
    assert ids(source.batches()) == [[3]]
    by_name = Source(
        spark, f"lake.{table.name}.branch_side", tmp_path / "by_name", columns=lambda rows: rows.select("id")
    )
    assert ids(by_name.batches()) == [[1, 3]]
    add(side, 4)
    assert ids(by_name.batches()) == [[4]]


def test_max_files_per_micro_batch(table: Table, source: Source) -> None:
    """SS-5: a snapshot is split, and snapshots are put together; the files of the beginning table count too."""
    add_files(table, [1, 2, 3], [4], [5])
    source.options["streaming-max-files-per-micro-batch"] = "2"
    assert ids(source.batches()) == [[1, 2, 3, 4], [5]]
    add(table, 6)
    add_files(table, [7], [8], [9])
    add(table, 10)
    assert ids(source.batches()) == [[6, 7], [8, 9], [10]]


def test_max_rows_per_micro_batch(table: Table, source: Source) -> None:
    """SS-5: a file is never split: a file with more rows makes its own micro-batch."""
    add_files(table, [1, 2], [3], [4, 5, 6, 7, 8], [9])
    source.options["streaming-max-rows-per-micro-batch"] = "3"
    assert ids(source.batches()) == [[1, 2, 3], [4, 5, 6, 7, 8], [9]]
    add(table, 10, 11)
    add(table, 12)
    add(table, 13)
    assert ids(source.batches()) == [[10, 11, 12], [13]]


def test_available_now_stops_at_rows_present_at_its_start(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    add_files(table, [1], [2])
    found: list[list[int]] = []

    def collect(batch: Any, _number: int) -> None:
        found.append(sorted(row.id for row in batch.collect()))
        add(table, 100 + len(found))

    for _ in range(2):
        query = (
            spark.readStream.option("streaming-max-files-per-micro-batch", 1)
            .table(f"lake.{table.name}")
            .writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert found == [[1], [2], [101], [102]]


def test_repeated_batch_is_equal_after_compaction(table: Table, source: Source) -> None:
    """SS-4."""
    add_files(table, *([number] for number in range(5)))
    source.options["streaming-max-files-per-micro-batch"] = "2"
    assert ids(source.batches()) == [[0, 1], [2, 3], [4]]
    add_files(table, *([number] for number in range(5, 8)))
    assert ids(source.batches()) == [[5, 6], [7]]
    source.forget_last_commit()
    assert table.refresh().maintenance.compact(min_input_files=2).rewritten_data_files_count > 0
    add(table, 8)
    assert ids(source.batches()) == [[7], [8]]


def test_compaction_and_rewrites_are_skipped(table: Table, source: Source) -> None:
    """SS-3, CF-4."""
    add(table, 1, 2, 3)
    assert ids(source.batches()) == [[1, 2, 3]]
    for number in range(10, 15):
        add(table, number)
    assert table.refresh().maintenance.compact(min_input_files=2).rewritten_data_files_count > 0
    table.refresh().maintenance.rewrite_manifests()
    add(table, 20)
    assert ids(source.batches()) == [[10, 11, 12, 13, 14, 20]]


def test_expired_snapshots_already_read_are_ignored(table: Table, source: Source) -> None:
    """Even the last snapshot that was read may be gone, if the snapshots after it exist."""
    first, second = add(table, 1), add(table, 2)
    assert ids(source.batches()) == [[1, 2]]
    add(table, 3)
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[first, second])
    assert ids(source.batches()) == [[3]]


def test_expired_unread_snapshots_raise_error(table: Table, source: Source) -> None:
    """SS-6."""
    add(table, 1)
    source.batches()
    second, third = add(table, 2), add(table, 3)
    add(table, 4)
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[second, third])
    with pytest.raises(
        Exception, match=r"expired before the stream read them\. .*Start the query with a new checkpoint"
    ):
        source.batches()


def test_partially_read_snapshot_that_expires_raises_error(table: Table, spark: SparkSession, tmp_path: Path) -> None:
    first = add_files(table, [1], [2])
    source = Source(spark, f"lake.{table.name}", tmp_path / "c", streaming_max_files_per_micro_batch=1)
    source._columns = lambda rows: rows.where(expr("assert_true(id < 2) IS NULL"))
    with pytest.raises(Exception, match=r"assert_true|USER_RAISED|is not true"):
        source.batches()
    add(table, 3)
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[first])
    with pytest.raises(Exception, match=f"snapshot {first} expired after the stream had read 1 of its files"):
        source.batches()


def test_rolled_back_snapshot_raises_error(table: Table, source: Source) -> None:
    """SS-6."""
    first = add(table, 1)
    second = add(table, 2)
    source.batches()
    table.refresh().rollback(snapshot_id=first)
    add(table, 3)
    with pytest.raises(Exception, match=f"snapshot {second}.*is not in the history of the branch: it was rolled back"):
        source.batches()


def test_deletes_stop_the_stream_after_earlier_rows(table: Table, source: Source) -> None:
    """SS-3."""
    add(table, 1, 2)
    source.batches()
    add(table, 3)
    deleting = int(table.refresh().delete_rows(pa.table({"id": [1]})).snapshot_id)
    add(table, 4)
    found: list[list[int]] = []
    with pytest.raises(Exception, match=rf"snapshot {deleting} deletes rows.*readStream\.changes\(.*skip-delete-snap"):
        source.run(lambda batch: found.append([row.id for row in batch.collect()]))
    assert found == [[3]]
    source.options["streaming-skip-delete-snapshots"] = "true"
    assert ids(source.batches()) == [[4]]


def test_replacements_stop_the_stream(table: Table, source: Source) -> None:
    """SS-3: a skipped snapshot is skipped whole, with the rows that it adds."""
    add(table, 1, 2)
    source.batches()
    table.refresh().upsert(pa.table({"id": [1], "v": ["new"]}, schema=SCHEMA))
    with pytest.raises(Exception, match=r"replaces rows.*streaming-skip-overwrite-snapshots=true"):
        source.batches()
    source.options["streaming-skip-delete-snapshots"] = "true"
    with pytest.raises(Exception, match="replaces rows"):
        source.batches()
    add(table, 3)
    source.options["streaming-skip-overwrite-snapshots"] = "true"
    assert ids(source.batches()) == [[3]]


def test_new_columns_are_read_after_restart(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    """SS-7: rows are never read without columns that they have."""
    name, checkpoint = f"lake.{table.name}", str(tmp_path / "checkpoint")
    add(table, 1)
    found: list[tuple[Any, ...]] = []

    def collect(batch: Any, _number: int) -> None:
        found.extend(tuple(row) for row in batch.collect())

    def start() -> Any:
        rows = spark.readStream.table(name)
        return rows.writeStream.foreachBatch(collect).option("checkpointLocation", checkpoint).start()

    query = start()
    query.processAllAvailable()
    spark.sql(f"ALTER TABLE {name} ADD COLUMN w INT")
    query.processAllAvailable()
    spark.sql(f"INSERT INTO {name} VALUES (2, 'v2', 22)")
    with pytest.raises(Exception, match=r"were changed while the query ran.*with the same checkpoint"):
        query.processAllAvailable()
    query.stop()
    again = start()
    again.processAllAvailable()
    again.stop()
    assert found == [(1, "v1"), (2, "v2", 22)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"streaming-max-file-per-micro-batch": "1"},
            r"unknown option 'streaming-max-file-per-micro-batch'.*Did you mean 'streaming-max-files-per-micro-batch'",
        ),
        ({"snapshot-id": "1", "start-snapshot-id": "1"}, "snapshot-id and start-snapshot-id both define the start"),
        ({"start-snapshot-id": "first"}, "option start-snapshot-id must be a number, not 'first'"),
        (
            {"streaming-max-rows-per-micro-batch": "0"},
            "max-rows-per-micro-batch must be at least 1, not 0",
        ),
        ({"streaming-skip-delete-snapshots": "yes"}, "must be true or false, not 'yes'"),
        ({"start-snapshot-id": "77"}, "snapshot 77, after which the stream continues, is not in the history"),
        ({"stream-from-timestamp": "yesterday"}, "yesterday.*is not ISO 8601"),
        ({"branch": "nowhere"}, "no branch 'nowhere'"),
    ],
)
def test_invalid_stream_options_are_rejected(
    table: Table, source: Source, options: dict[str, str], message: str
) -> None:
    """SS-1."""
    add(table, 1)
    source.options |= options
    with pytest.raises(Exception, match=message):
        source.batches()


def test_unknown_checkpoint_version_is_rejected() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"offsets of version 2, but this version .* reads version 1"):
        StreamOffset.from_json({"version": 2, "snapshot": 7})


@pytest.mark.since_spark("4.2", "metadata columns of streams")
def test_metadata_columns_and_aggregates(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    add(table, 1, 2)
    table.delete_rows(pa.table({"id": [1]}))
    name = f"lake.{table.name}"
    rows = Source(spark, name, tmp_path / "rows", columns=lambda rows: rows.select("id", "_pos", "_spec_id"))
    assert rows.batches() == [[(2, 1, 0)]]
    counting = (
        spark.readStream.table(name)
        .groupBy((col("id") % 2).alias("odd"))
        .count()
        .writeStream.outputMode("complete")
        .format("memory")
        .queryName("counted")
        .option("checkpointLocation", str(tmp_path / "counted"))
        .trigger(availableNow=True)
    )
    counting.start().awaitTermination()
    add(table, 3, 4)
    counting.start().awaitTermination()
    assert sorted(tuple(row) for row in spark.table("counted").collect()) == [(0, 2), (1, 1)]


def test_table_to_table_stream_is_exactly_once(
    spark: SparkSession, lake: Catalog, table: Table, namespace: str, tmp_path: Path
) -> None:
    """Through a task that fails, a driver that dies after the sink's commit, and a compaction in between."""
    lake.create_table((namespace, "sink"), pa.schema([("id", pa.int64()), ("doubled", pa.int64())]))
    source = Source(spark, f"lake.{table.name}", tmp_path / "checkpoint", streaming_max_files_per_micro_batch=2)

    def run(transform: str) -> None:
        query = (
            source.rows()
            .selectExpr("id", transform)
            .coalesce(1)
            .writeStream.option("checkpointLocation", source._checkpoint)
            .trigger(availableNow=True)
            .toTable(f"lake.{namespace}.sink")
        )
        query.awaitTermination()

    def copied() -> list[tuple[int, int]]:
        return sorted((row.id, row.doubled) for row in spark.table(f"lake.{namespace}.sink").collect())

    add_files(table, [1], [2], [3], [4], [5])
    with pytest.raises(Exception, match=r"assert_true|USER_RAISED|is not true"):
        run("IF(assert_true(id <> 3) IS NULL, id * 2, 0) doubled")
    assert copied() == [(1, 2), (2, 4)]
    run("id * 2 doubled")
    assert copied() == [(number, number * 2) for number in range(1, 6)]
    source.forget_last_commit()
    table.refresh().maintenance.compact(min_input_files=2)
    add(table, 6)
    run("id * 2 doubled")
    run("id * 2 doubled")
    assert copied() == [(number, number * 2) for number in range(1, 7)]
    for number in range(7, 10):
        add(table, number)
    run("id * 2 doubled")
    table.refresh().maintenance.compact(min_input_files=2)
    run("id * 2 doubled")
    assert len(copied()) == 9
    assert len(lake.load_table((namespace, "sink")).history()) == 6, "a micro-batch without rows makes no snapshot"
