"""`CHANGES FROM VERSION a TO VERSION b`, `spark.read.changes` and `spark.readStream.changes`."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from renamed_columns import rename_as_another_writer
from stream_runs import Source

from tableformat import Catalog, Table
from tableformat.commit import snapshot_producer

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Version 1: rows 1 to 6."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(rows(*range(1, 7)))
    return created


def rows(*ids: int, v: str = "old") -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{v}{number}" for number in ids]}, schema=SCHEMA)


def events(found: DataFrame) -> list[str]:
    """Events such as "2 delete 3 old3", version first."""
    told = (f"{r._commit_version} {r._change_type} {r.id} {r.v}" for r in found.collect())
    return sorted(told)


def changes(spark: SparkSession, table: Table, clause: str) -> list[str]:
    return events(spark.sql(f"SELECT * FROM lake.{table.name} CHANGES {clause}"))


def act(spark: SparkSession, table: Table) -> None:
    """Every way to change rows, and every way to store them otherwise in between."""
    name = f"lake.{table.name}"
    table.refresh().upsert(rows(2, 7, v="up"))
    table.delete_range(lower=(3,), upper=(5,))
    spark.sql(f"DELETE FROM {name} WHERE v = 'old6'")
    table.refresh().maintenance.convert_deletes()
    spark.sql(f"UPDATE {name} SET v = concat(v, '!') WHERE id IN (1, 2)")
    table.refresh().delete_rows(pa.table({"id": [7]}))
    table.append(rows(8, 9, 10))
    table.maintenance.compact(min_input_files=2)
    spark.sql(f"ALTER TABLE {name} ADD COLUMN w INT")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT explode(array(1, 8, 11)) AS id) s ON t.id = s.id WHEN MATCHED AND t.id = 8 "
        "THEN DELETE WHEN MATCHED THEN UPDATE SET w = 5 WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (id, 'm', 6)"
    )
    with table.refresh().transaction() as transaction:
        transaction.delete_range(lower=(9,), upper=(10,))
        transaction.append(rows(9, v="again"))
    table.maintenance.convert_deletes()
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN v TO text")
    spark.sql(f"DELETE FROM {name} WHERE id = 9")
    table.refresh().maintenance.compact(min_input_files=1, delete_ratio_threshold=0.01)
    table.refresh().delete_range(lower=(1,), upper=(2,))


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_events_of_each_kind_of_delete(spark: SparkSession, table: Table) -> None:
    """CF-3: each deleted row is one event, with the whole old row."""
    table.upsert(rows(2, 7, v="up"))
    table.delete_range(lower=(3,), upper=(5,))
    table.maintenance.convert_deletes()
    table.refresh().delete_rows(pa.table({"id": [6]}))
    spark.sql(f"DELETE FROM lake.{table.name} WHERE v = 'old1'")
    assert changes(spark, table, "FROM VERSION 2") == [
        "2 delete 2 old2",
        "2 insert 2 up2",
        "2 insert 7 up7",
        "3 delete 3 old3",
        "3 delete 4 old4",
        "5 delete 6 old6",
        "6 delete 1 old1",
    ]


@pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])
@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_changes_agree_with_python(spark: SparkSession, lake: Catalog, namespace: str, version: str) -> None:
    """CF-5: in the columns of the range's last snapshot."""
    table = lake.create_table(
        (namespace, "v"), SCHEMA, key=["id"], partition_by=["bucket(2, id)"], properties={"format-version": version}
    )
    table.append(rows(*range(1, 7)))
    act(spark, table)
    line = [snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots]
    assert len(line) > 12
    for first, last in [(None, line[-1]), (line[1], line[-2]), (line[3], line[7])]:
        reader = spark.read.option("endingVersion", str(last)).option("startingVersion", str(first or line[0]))
        found = reader.option("startingBoundInclusive", str(first is None).lower()).changes(f"lake.{table.name}")
        expected = table.changes(from_snapshot_id=first, to_snapshot_id=last).to_arrow()
        assert found.columns == expected.column_names
        assert counted(found.collect()) == counted(row.values() for row in expected.to_pylist())
    assert table.changes().count() > 20


def counted(rows: Any) -> Counter[tuple[Any, ...]]:
    """Moments as Spark collects them: in the zone of this machine, without a zone."""
    return Counter(tuple(_local(value) for value in row) for row in rows)


def _local(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    return value


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_net_changes_rebuild_the_table_with_one_merge(spark: SparkSession, table: Table, namespace: str) -> None:
    name, copy = f"lake.{table.name}", f"lake.{namespace}.copy"
    spark.sql(f"CREATE TABLE {copy} AS SELECT * FROM {name}")
    table.upsert(rows(2, 7, v="up"))
    table.upsert(rows(2, 8, v="upper"))
    table.delete_range(lower=(3,), upper=(5,))
    table.delete_rows(pa.table({"id": [7]}))
    table.upsert(rows(3))
    spark.sql(
        f"MERGE INTO {copy} c USING (SELECT * FROM {name} CHANGES FROM VERSION 1 EXCLUSIVE WITH (deduplicationMode = "
        "'netChanges', computeUpdates = 'true') WHERE _change_type <> 'update_preimage') s ON c.id = s.id WHEN MATCHED "
        "AND s._change_type = 'delete' THEN DELETE WHEN MATCHED THEN UPDATE SET c.v = s.v WHEN NOT MATCHED THEN INSERT "
        "(id, v) VALUES (s.id, s.v)"
    )
    assert sorted(spark.table(copy).collect()) == sorted(spark.table(name).collect())


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_range_bounds_are_inclusive_or_exclusive(spark: SparkSession, table: Table) -> None:
    """SS-8."""
    for number in range(10, 14):
        table.append(rows(number))
    inserted = {2: "2 insert 10 old10", 3: "3 insert 11 old11", 4: "4 insert 12 old12", 5: "5 insert 13 old13"}
    for clause, versions in {
        "FROM VERSION 3 TO VERSION 4": (3, 4),
        "FROM VERSION 3 EXCLUSIVE TO VERSION 4": (4,),
        "FROM VERSION 3 TO VERSION 4 EXCLUSIVE": (3,),
        "FROM VERSION 3 INCLUSIVE TO VERSION 3 INCLUSIVE": (3,),
        "FROM VERSION 4": (4, 5),
        "FROM VERSION 5 EXCLUSIVE": (),
    }.items():
        assert changes(spark, table, clause) == [inserted[version] for version in versions], clause


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_versions_may_be_snapshot_ids_or_ref_names(spark: SparkSession, table: Table) -> None:
    second = table.append(rows(10)).snapshot_id
    table.create_tag("before audit")
    table.append(rows(11))
    table.append(rows(12))
    third = table.refresh().metadata.snapshots[2].snapshot_id
    assert changes(spark, table, f"FROM VERSION {second} EXCLUSIVE TO VERSION {third}") == ["3 insert 11 old11"]
    assert changes(spark, table, "FROM VERSION 'before audit' TO VERSION 3") == [
        "2 insert 10 old10",
        "3 insert 11 old11",
    ]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_change_range_by_timestamps(spark: SparkSession, table: Table) -> None:
    table.append(rows(10))
    table.append(rows(11))
    moments = [
        datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        for snapshot in table.refresh().metadata.snapshots
    ]
    assert changes(spark, table, f"FROM TIMESTAMP '{moments[1]}' TO TIMESTAMP '{moments[2]}'") == [
        "2 insert 10 old10",
        "3 insert 11 old11",
    ]
    between = f"FROM TIMESTAMP '{moments[0]}' EXCLUSIVE TO TIMESTAMP '{moments[2]}' EXCLUSIVE"
    assert changes(spark, table, between) == ["2 insert 10 old10"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
    assert changes(spark, table, f"FROM TIMESTAMP '{tomorrow}'") == []
    assert len(changes(spark, table, "FROM TIMESTAMP '2001-01-01'")) == 8


NO_RANGES = [
    ("FROM VERSION 1 TO VERSION 9", "no version 9 in the changes: .* is version 3"),
    ("FROM VERSION 9", "no version 9 in the changes"),
    ("FROM VERSION 3 TO VERSION 2", "no version 3 in the changes: .* is version 2"),
    ("FROM VERSION 'bifore' TO VERSION 2", r"no version 'bifore': .*Did you mean 'before'"),
    ("FROM TIMESTAMP '2001-01-01' TO TIMESTAMP '2001-01-02'", "end before the oldest retained snapshot"),
    ("FROM VERSION 1 WITH (computeUpdate = 'true')", r"unknown option .* Did you mean 'computeUpdates'"),
    ("FROM VERSION 1 WITH (branch = 'mian')", r"no branch 'mian'.*main"),
]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_invalid_change_ranges_are_rejected(spark: SparkSession, table: Table) -> None:
    """SS-8."""
    table.append(rows(10))
    table.append(rows(11))
    table.create_tag("before")
    for clause, message in NO_RANGES:
        with pytest.raises(AnalysisException, match=message):
            changes(spark, table, clause)


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_range_with_expired_snapshots_raises_error(spark: SparkSession, table: Table) -> None:
    """CF-2: never a part of the changes for the whole."""
    second = table.append(rows(10)).snapshot_id
    table.append(rows(11))
    table.append(rows(12))
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[table.metadata.snapshots[0].snapshot_id, second])
    with pytest.raises(AnalysisException, match="expired"):
        changes(spark, table, "FROM VERSION 1")
    with pytest.raises(AnalysisException, match="expired"):
        changes(spark, table, "FROM VERSION 3")
    assert changes(spark, table, "FROM VERSION 4") == ["4 insert 12 old12"]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_changes_of_a_branch(spark: SparkSession, table: Table, lake: Catalog) -> None:
    table.create_branch("side")
    side = lake.load_table(table.name, branch="side")
    side.append(rows(20))
    table.refresh().append(rows(30))
    reader = spark.read.option("startingVersion", "2").option("Branch", "side")
    assert events(reader.changes(f"lake.{table.name}")) == ["2 insert 20 old20"]
    assert changes(spark, table, "FROM VERSION 2") == ["3 insert 30 old30"]
    by_name = f"SELECT * FROM lake.{table.name}.branch_side CHANGES FROM VERSION 2"
    assert events(spark.sql(by_name)) == ["2 insert 20 old20"]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_updates_and_net_changes(spark: SparkSession, table: Table) -> None:
    table.upsert(rows(2, 7, v="up"))
    table.upsert(rows(2, v="upper"))
    table.delete_rows(pa.table({"id": [7, 3]}))
    assert changes(spark, table, "FROM VERSION 2 WITH (computeUpdates = 'true')") == [
        "2 insert 7 up7",
        "2 update_postimage 2 up2",
        "2 update_preimage 2 old2",
        "3 update_postimage 2 upper2",
        "3 update_preimage 2 up2",
        "4 delete 3 old3",
        "4 delete 7 up7",
    ]
    net = "FROM VERSION 2 WITH (computeUpdates = 'true', deduplicationMode = 'netChanges')"
    assert changes(spark, table, net) == [
        "2 update_preimage 2 old2",
        "3 update_postimage 2 upper2",
        "4 delete 3 old3",
    ]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_changes_of_table_without_key(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "keyless"), SCHEMA)
    table.append(rows(1, 2))
    table.delete_rows(pa.table({"id": [1]}))
    assert changes(spark, table, "FROM VERSION 2") == ["2 delete 1 old1"]
    with pytest.raises(AnalysisException, match=r"need the key of a table, but .*keyless.* has no key"):
        changes(spark, table, "FROM VERSION 2 WITH (computeUpdates = 'true')")


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_filters_and_columns_are_pushed_to_the_feed(spark: SparkSession, table: Table) -> None:
    """A filter on the columns of the feed rules out whole files."""
    table.append(rows(10, 11))
    table.delete_range(lower=(2,), upper=(4,))
    found = spark.sql(
        f"SELECT id FROM lake.{table.name} CHANGES FROM VERSION 1 WHERE _change_type = 'delete' AND _commit_version = 3"
    )
    assert sorted(row.id for row in found.collect()) == [2, 3]
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "_change_type = 'delete'" in plan.replace("[_", "_")
    assert found.rdd.getNumPartitions() == 1
    by_value = spark.sql(f"SELECT * FROM lake.{table.name} CHANGES FROM VERSION 1 WHERE v = 'old11'")
    assert events(by_value) == ["2 insert 11 old11"]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_table_column_named_like_a_feed_column_raises_error(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "taken"), pa.schema([("type", pa.string())]))
    rename_as_another_writer(table, {"type": "_change_type"})
    with pytest.raises(AnalysisException, match="has a column '_change_type'"):
        spark.sql(f"SELECT * FROM lake.{table.name} CHANGES FROM VERSION 1").collect()


@pytest.fixture
def feed(spark: SparkSession, table: Table, tmp_path: Path) -> Source:
    return Source(
        spark,
        f"lake.{table.name}",
        tmp_path / "checkpoint",
        columns=lambda rows: rows.selectExpr("concat_ws(' ', _commit_version, _change_type, id, v) AS event"),
        has_changes=True,
    )


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_starts_with_existing_rows_as_inserts(table: Table, feed: Source) -> None:
    table.delete_range(lower=(3,), upper=(7,))
    assert feed.batches() == [[("2 insert 1 old1",), ("2 insert 2 old2",)]]
    table.upsert(rows(2, v="up"))
    assert feed.batches() == [[("3 delete 2 old2",), ("3 insert 2 up2",)]]
    assert feed.batches() == []


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_starts_at_a_version(table: Table, feed: Source) -> None:
    table.delete_range(lower=(3,), upper=(7,))
    table.append(rows(8))
    feed.options |= {"startingVersion": "2", "startingBoundInclusive": "false"}
    assert feed.batches() == [[("3 insert 8 old8",)]]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_rebuilds_the_table(spark: SparkSession, table: Table, namespace: str, tmp_path: Path) -> None:
    """Through conversion, compaction, a driver that dies, and commits that arrive while it does."""
    name, copy = f"lake.{table.name}", f"lake.{namespace}.copy"
    spark.sql(f"CREATE TABLE {copy} (id BIGINT NOT NULL, v STRING, PRIMARY KEY (id))")
    source = Source(spark, name, tmp_path / "c", has_changes=True, streaming_max_files_per_micro_batch=2)

    def apply(batch: DataFrame) -> None:
        """The last event of a key decides; a delete precedes an insert of the same commit."""
        batch.createOrReplaceTempView("events")
        batch.sparkSession.sql(
            f"MERGE INTO {copy} c USING (SELECT id, max_by(struct(v, _change_type), struct(_commit_version, "
            "_change_type)) AS last FROM events GROUP BY id) s ON c.id = s.id WHEN MATCHED AND s.last._change_type = "
            "'delete' THEN DELETE WHEN MATCHED THEN UPDATE SET c.v = s.last.v WHEN NOT MATCHED AND "
            "s.last._change_type = 'insert' THEN INSERT (id, v) VALUES (s.id, s.last.v)"
        )

    def check() -> None:
        assert sorted(spark.table(copy).collect()) == sorted(spark.table(name).collect())

    source.run(apply)
    check()
    table.upsert(rows(2, 7, v="up"))
    table.delete_range(lower=(3,), upper=(5,))
    source.run(apply)
    check()
    source.forget_last_commit()
    table.maintenance.convert_deletes()
    spark.sql(f"UPDATE {name} SET v = 'set' WHERE id = 1")
    table.refresh().maintenance.compact(min_input_files=2)
    table.refresh().upsert(rows(3, v="back"))
    source.run(apply)
    check()


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_with_updates(table: Table, feed: Source) -> None:
    table.upsert(rows(2, v="up"))
    feed.options |= {"startingVersion": "2", "computeUpdates": "true"}
    found = [row[0] for batch in feed.batches() for row in batch]
    table.upsert(rows(2, v="upper"))
    found += [row[0] for batch in feed.batches() for row in batch]
    assert found == [
        "2 update_postimage 2 up2",
        "2 update_preimage 2 old2",
        "3 update_postimage 2 upper2",
        "3 update_preimage 2 up2",
    ]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_with_net_changes(spark: SparkSession, table: Table, feed: Source) -> None:
    """The net changes of one micro-batch; Spark keeps its state in RocksDB."""
    table.upsert(rows(2, v="up"))
    table.upsert(rows(2, v="upper"))
    table.upsert(rows(9))
    table.delete_rows(pa.table({"id": [9]}))
    feed.options |= {"startingVersion": "2", "deduplicationMode": "netChanges"}
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        found = [row[0] for batch in feed.batches() for row in batch]
    finally:
        spark.conf.unset(provider)
    assert found == ["2 delete 2 old2", "3 insert 2 upper2"]


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_with_expired_snapshots_raises_error(table: Table, feed: Source) -> None:
    """CF-2: the changes of a snapshot are computed against its parent, which a stream of appends does not need."""
    feed.batches()
    table.append(rows(10))
    table.refresh().maintenance.expire_snapshots(snapshot_ids=[table.metadata.snapshots[0].snapshot_id])
    with pytest.raises(Exception, match=r"snapshot before \d+ has expired.*tag it, or set history"):
        feed.batches()


@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_stream_over_snapshots_with_unordered_timestamps(
    table: Table, feed: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SS-10: this library's snapshots are later than their parents, but snapshots of other writers may be earlier.
    Spark would silently drop rows that it considers late."""
    feed.options |= {"startingVersion": "1", "computeUpdates": "true"}
    feed.batches()
    monkeypatch.setattr(snapshot_producer, "next_timestamp_ms", lambda base: base.snapshot.timestamp_ms - 1)
    table.append(rows(10))
    with pytest.raises(Exception, match=r"an earlier time than its predecessor.*without computeUpdates"):
        feed.batches()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "1", "endingVersion": "1"}, r"read the range with spark\.read\.changes"),
        ({"start-snapshot-id": "1"}, "unknown option 'start-snapshot-id'"),
        ({"startingVersion": "9"}, "no version 9 in the changes"),
    ],
)
@pytest.mark.since_spark("4.2", "CHANGES and streams of changes")
def test_invalid_stream_options_are_rejected(feed: Source, options: dict[str, str], message: str) -> None:
    feed.options |= options
    with pytest.raises(Exception, match=message):
        feed.batches()
