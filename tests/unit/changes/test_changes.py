"""The change feed: the events of each snapshot, their order, and the files that are read for them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import LongType
from renamed_columns import rename_as_another_writer
from v3_tables import new_catalog, new_table, rows

import tableformat as tf
from tableformat.changes.plan import ChangeTask, plan_snapshot
from tableformat.commit import transaction
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    SnapshotNotFoundError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.metadata.content_file import DeleteKind
from tableformat.scan.context import merge_context
from tableformat.testing.replay import check_feed
from tableformat.testing.table_files import live_data_files, live_delete_files

VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    return new_table(new_catalog(tmp_path), 2)


def events(table: tf.Table, **options: Any) -> list[tuple[int, str, str, int]]:
    """(version, change, region, id), changes of one kind of a snapshot sorted."""
    columns = ["_commit_version", "_change_type", "region", "id"]
    found = table.changes(columns=columns, **options).to_arrow().to_pylist()
    order = {"delete": 0, "insert": 1}
    told = [tuple(row.values()) for row in found]
    by_change = [(version, order[change]) for version, change, _, _ in told]
    assert by_change == sorted(by_change), "CF-6: snapshots in order, deletes first"
    return sorted(told)


def tasks(table: tf.Table, **options: Any) -> tuple[ChangeTask, ...]:
    return table.changes(**options).plan().tasks


@VERSIONS
def test_every_delete_kind_reports_its_deleted_rows(tmp_path: Path, version: int) -> None:
    """CF-3: range, equality and position deletes, vectors, whole rows; the feed begins with the first snapshot."""
    table = new_table(new_catalog(tmp_path), version)
    table.append(rows("A", 1, 2, 3, 4, 5, note="old"))
    table.delete_range(lower=("A", 2), upper=("A", 3))
    table.delete_rows(pa.table({"note": ["oldA3"]}))
    table.delete("id = 4", mode="scan")
    table.delete("id = 5", mode="scan")
    table.upsert(rows("A", 1, note="new"))
    assert events(table) == [
        *((1, "insert", "A", number) for number in (1, 2, 3, 4, 5)),
        (2, "delete", "A", 2),
        (3, "delete", "A", 3),
        (4, "delete", "A", 4),
        (5, "delete", "A", 5),
        (6, "delete", "A", 1),
        (6, "insert", "A", 1),
    ]
    notes = table.changes("_commit_version = 6", ["_change_type", "note"]).to_arrow().to_pylist()
    assert notes == [{"_change_type": "delete", "note": "oldA1"}, {"_change_type": "insert", "note": "newA1"}]
    check_feed(table.view)


def test_row_deleted_several_times_is_reported_once(table: tf.Table) -> None:
    """CF-3: several deletes of one commit; a later delete of what is deleted; a row that its own commit deletes."""
    table.append(rows("A", 1, 2))
    with table.transaction() as several:
        several.delete_prefix({"region": "A"})
        several.delete_rows(pa.table({"id": pa.array([1], pa.int64())}))
    table.delete_range(everything=True)
    with table.transaction() as come_and_gone:
        come_and_gone.append(rows("B", 1, 2))
        come_and_gone.delete_prefix({"region": "B", "id": 1})
    assert events(table) == [
        (1, "insert", "A", 1),
        (1, "insert", "A", 2),
        (2, "delete", "A", 1),
        (2, "delete", "A", 2),
        (4, "insert", "B", 2),
    ]


def test_removed_data_files_report_their_live_rows(tmp_path: Path) -> None:
    """CF-3: of a file that an overwrite removes the rows that were alive are deleted, none twice."""
    table = new_table(new_catalog(tmp_path), 2)
    table.append(rows("A", 1, 2))
    table.delete("id = 1", mode="scan")
    (data,), (position_delete,) = live_data_files(table), live_delete_files(table)
    change = TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.SCAN_BASED,
        removed_data_files=(data,),
        removed_delete_files=(position_delete,),
        planned_snapshot_id=table.snapshot_id,
        planned_sequence_number=2,
    )
    transaction.commit_change(table.iceberg, change, ref="main")
    assert events(table.refresh())[2:] == [(2, "delete", "A", 1), (3, "delete", "A", 2)]
    check_feed(table.view)


def test_removed_delete_file_reports_its_rows_as_inserts(table: tf.Table) -> None:
    """CF-3: an overwrite that only removes a delete file; other rows that are deleted stay so."""
    table.append(rows("A", 1, 2, 3))
    table.delete("id = 3", mode="scan")
    table.delete_prefix({"region": "A", "id": 1})
    (taken_back,) = (delete for delete in live_delete_files(table) if delete.kind is DeleteKind.RANGE)
    change = TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.SCAN_BASED,
        removed_delete_files=(taken_back,),
        planned_snapshot_id=table.snapshot_id,
        planned_sequence_number=3,
    )
    transaction.commit_change(table.iceberg, change, ref="main")
    assert events(table.refresh())[3:] == [(2, "delete", "A", 3), (3, "delete", "A", 1), (4, "insert", "A", 1)]
    check_feed(table.view)


@VERSIONS
def test_maintenance_jobs_produce_no_events_or_tasks(tmp_path: Path, version: int) -> None:
    """CF-4, CF-8: compaction, conversion, merging and manifest rewrites; the events of earlier snapshots stay the
    same."""
    table = new_table(new_catalog(tmp_path), version)
    table.append(rows("A", 1, 2, 3))
    table.append(rows("B", 1, 2))
    table.delete_prefix({"region": "A", "id": 1})
    table.delete_prefix({"region": "B", "id": 1})
    told, before = events(table), table.snapshot_id
    table.maintenance.merge_range_deletes()
    table.maintenance.rewrite_manifests()
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    table.refresh()
    assert len(table.history()) >= 7
    assert tasks(table, from_snapshot_id=before) == ()
    assert events(table) == told
    check_feed(table.view)


def test_foreign_conversion_produces_no_events(table: tf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """CF-4: as other programs convert; then the deletes are read and compared."""
    monkeypatch.setattr("tableformat.maintenance.conversion.convert_deletes.ROWS_UNCHANGED", "unknown-to-readers")
    table.append(rows("A", 1, 2, 3))
    table.delete_prefix({"region": "A", "id": 1})
    table.delete_rows(pa.table({"note": ["A3"]}))
    before = table.snapshot_id
    assert table.maintenance.convert_deletes().deleted_row_count == 2
    assert tasks(table.refresh(), from_snapshot_id=before) != ()
    assert events(table, from_snapshot_id=before) == []


def test_range_excludes_first_and_includes_last_snapshot(table: tf.Table) -> None:
    """CF-1: by id and by time; a range from a snapshot to itself is empty."""
    ids = [table.append(rows("A", number)).snapshot_id for number in (1, 2, 3)]
    assert [event[0] for event in events(table, from_snapshot_id=ids[0], to_snapshot_id=ids[1])] == [2]
    assert [event[0] for event in events(table, from_snapshot_id=ids[1])] == [3]
    assert [event[0] for event in events(table, to_snapshot_id=ids[1])] == [1, 2]
    assert events(table, from_snapshot_id=ids[2]) == []
    feed = table.changes(from_snapshot_id=ids[1])
    assert (feed.from_snapshot_id, feed.to_snapshot_id) == (ids[1], ids[2])
    times = [snapshot.timestamp_ms for snapshot in table.metadata.snapshots]
    assert [event[0] for event in events(table, from_timestamp=times[0], to_timestamp=times[1])] == [2]
    assert events(table, to_timestamp=times[0] - 1) == []
    assert events(table, from_timestamp=times[0] - 1) == events(table)
    assert events(table, from_timestamp="2999-01-01") == []


def test_first_snapshot_must_be_an_ancestor_of_the_last(table: tf.Table) -> None:
    """CF-1: the error names the problem."""
    first = table.append(rows("A", 1)).snapshot_id
    second = table.append(rows("A", 2)).snapshot_id
    with pytest.raises(InvalidArgumentError, match=f"{first} is older"):
        table.changes(from_snapshot_id=second, to_snapshot_id=first)
    table.rollback(snapshot_id=first)
    table.append(rows("A", 3))
    with pytest.raises(InvalidArgumentError, match=f"snapshot {second} is not an ancestor .* rolled back"):
        table.changes(from_snapshot_id=second)
    assert [event[3] for event in events(table)] == [1, 3]
    with pytest.raises(InvalidArgumentError, match="from_snapshot_id, from_timestamp"):
        table.changes(from_snapshot_id=first, from_timestamp=0)
    with pytest.raises(SnapshotNotFoundError):
        table.changes(from_snapshot_id=first, to_timestamp="2001-01-01")
    with pytest.raises(InvalidArgumentError, match="from_timestamp is later"):
        table.changes(from_timestamp="2001-01-02", to_timestamp="2001-01-01")
    with pytest.raises(InvalidArgumentError, match="to_timestamp 'soon' is not ISO 8601"):
        table.changes(to_timestamp="soon")


def test_publish_target_feed_reports_changes_of_the_branch(tmp_path: Path) -> None:
    """CF-1: its history is the history of the branch. Commits that others appended to the target are in it at the
    position at which the branch received them."""
    catalog = new_catalog(tmp_path)
    table = new_table(catalog, 2)
    start = table.append(rows("A", 1, 2)).snapshot_id
    table.create_branch("ingest")
    branch = catalog.load_table("db.t", branch="ingest")
    branch.delete_prefix({"region": "A", "id": 1})
    only_here = table.refresh().append(rows("B", 1)).snapshot_id
    table.maintenance.publish("ingest")
    told = [(change, region, number) for _, change, region, number in events(table.refresh(), from_snapshot_id=start)]
    assert told == [("delete", "A", 1), ("insert", "B", 1)]
    assert events(table) == events(branch.refresh())
    check_feed(table.view)
    with pytest.raises(InvalidArgumentError, match="not an ancestor"):
        table.changes(from_snapshot_id=only_here)


def test_expired_snapshots_raise_error_naming_the_oldest(table: tf.Table) -> None:
    """CF-2: from the beginning, from an expired snapshot, from a retained one behind the gap, up to one before it."""
    ids = [table.append(rows("A", number)).snapshot_id for number in (1, 2, 3, 4)]
    times = [snapshot.timestamp_ms for snapshot in table.metadata.snapshots]
    table.create_tag("kept", ids[0])
    table.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=2)
    table.refresh()
    for missing in ({}, {"from_snapshot_id": ids[0]}, {"from_snapshot_id": ids[1]}, {"to_timestamp": times[0] - 1}):
        with pytest.raises(SnapshotNotFoundError, match=rf"expired.* changes\(from_snapshot_id={ids[2]}\)"):
            table.changes(**missing)
    with pytest.raises(SnapshotNotFoundError):
        plan_snapshot(table.view, table.metadata.snapshot_by_id(ids[2]))
    last = plan_snapshot(table.view, table.metadata.snapshot_by_id(ids[3]))
    assert [(task.snapshot_id, task.change_type) for task in last] == [(ids[3], "insert")]
    assert events(table, from_snapshot_id=ids[2]) == [(4, "insert", "A", 4)]
    assert events(table, to_snapshot_id=ids[0]) == [(1, "insert", "A", 1)]


@VERSIONS
def test_feed_columns_and_row_lineage(tmp_path: Path, version: int) -> None:
    """CF-5: three by default, the snapshot and the row lineage when named; a deleted row keeps its lineage."""
    table = new_table(new_catalog(tmp_path), version)
    table.append(rows("A", 1, 2))
    deleted = table.delete("id = 2", mode="scan").snapshot_id
    feed = table.changes()
    assert feed.schema.names == ["region", "id", "note", "_change_type", "_commit_version", "_commit_timestamp"]
    assert feed.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    last = feed.to_arrow().slice(2).to_pylist()[0]
    committed_at = int(last["_commit_timestamp"].timestamp() * 1000)
    assert committed_at == table.metadata.snapshot_by_id(deleted).timestamp_ms
    assert table.changes(columns=["_commit_snapshot_id"]).to_arrow().column(0).to_pylist()[2] == deleted
    with pytest.raises(UnknownColumnError):
        table.changes(columns=["change_type"])
    if version < 3:
        with pytest.raises(UnsupportedFeatureError, match="format version 3"):
            table.changes(columns=["_row_id"])
        return
    lineage = table.changes(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in lineage] == [(1, 0, 1), (2, 1, 1), (2, 1, 1)]


def test_old_rows_have_the_schema_of_the_last_snapshot(table: tf.Table) -> None:
    """CF-5: columns that were renamed, added and dropped later; with an end snapshot, the schema of that snapshot."""
    first = table.append(rows("A", 1)).snapshot_id
    with table.update_schema() as update:
        update.rename_column("note", "remark")
        update.add_column("size", LongType())
    table.refresh()
    table.delete_prefix({"region": "A"})
    found = table.changes("remark = 'A1'", ["_change_type", "remark", "size"]).to_arrow().to_pylist()
    assert [tuple(row.values()) for row in found] == [("insert", "A1", None), ("delete", "A1", None)]
    assert "note" in table.changes(to_snapshot_id=first).schema.names


def test_table_with_feed_column_name_has_no_feed(tmp_path: Path) -> None:
    """CF-5: two columns with the same name could not be distinguished."""
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.feed", pa.schema([("id", pa.int64()), ("type", pa.string())]))
    rename_as_another_writer(table, {"type": "_change_type"})
    with pytest.raises(UnsupportedFeatureError, match=r"column '_change_type'.* Rename"):
        table.changes()


def test_feed_column_filters_prune_snapshots(table: tf.Table) -> None:
    """CF-5: before anything of them is read."""
    table.append(rows("A", 1, 2))
    table.upsert(rows("A", 1, note="new"))
    second = table.snapshot_id
    table.delete_prefix({"region": "A"})
    assert [(task.commit_version, task.change_type) for task in tasks(table)] == [
        (1, "insert"),
        (2, "delete"),
        (2, "insert"),
        (3, "delete"),
        (3, "delete"),
    ]
    assert [task.commit_version for task in tasks(table, where="_commit_version >= 3")] == [3, 3]
    assert [task.change_type for task in tasks(table, where=f"_commit_snapshot_id = {second}")] == ["delete", "insert"]
    assert {task.change_type for task in tasks(table, where="_change_type = 'insert'")} == {"insert"}
    assert tasks(table, where="_commit_timestamp < timestamptz '2000-01-01 00:00:00+00:00'") == ()
    found = events(table, where="_change_type = 'delete' AND id = 1 OR _commit_version = 1 AND id = 2")
    assert found == [(1, "insert", "A", 2), (2, "delete", "A", 1), (3, "delete", "A", 1)]


def test_only_files_affected_by_new_deletes_are_opened(table: tf.Table) -> None:
    """CF-7: files that bounds or the skyline rule out may be missing; a file that is covered completely is read."""
    table.append(rows("A", 1, 2))
    table.append(rows("B", 1, 2, 3))
    table.append(rows("C", 1, 9))
    table.append(rows("D", 1, 2))
    before = table.snapshot_id
    table.delete_prefix({"region": "A"})
    table.delete_prefix(pa.table({"region": ["B", "C"], "id": [2, 5]}))
    paths = {task.scan.data_file.file_path for task in tasks(table, from_snapshot_id=before)}
    opened = [data.lower_bounds[1] for data in live_data_files(table) if data.file_path in paths]
    assert sorted(opened) == [b"A", b"B", b"C"], "C's bounds leave room for the deleted key"
    for data in live_data_files(table):
        if data.file_path not in paths:
            Path(data.file_path.removeprefix("file://")).unlink()
    found = events(table, from_snapshot_id=before)
    assert found == [(5, "delete", "A", 1), (5, "delete", "A", 2), (6, "delete", "B", 2)]


def test_tasks_can_be_pickled(table: tf.Table) -> None:
    """To another process, which gets the same positions."""
    table.append(rows("A", 1, 2, 3))
    table.delete("id = 1", mode="scan")
    table.delete_prefix({"region": "A", "id": 2})
    for task in tasks(table):
        arrived = pickle.loads(pickle.dumps(task))
        assert (arrived.scan.data_file, arrived.scan.constants) == (task.scan.data_file, task.scan.constants)
        context = merge_context(table.view)
        assert deleted_positions(arrived.scan, context) == deleted_positions(task.scan, context)
    assert [len(deleted_positions(task.scan, merge_context(table.view))) for task in tasks(table)] == [0, 2, 2]


def test_all_result_forms_have_the_same_events(table: tf.Table) -> None:
    """The same forms as a scan: batches, DuckDB with filters pushed down, polars, pandas, a limit, a count."""
    table.append(rows("A", 1, 2, 3))
    table.delete_prefix({"region": "A", "id": 2})
    feed = table.changes()
    told = feed.to_arrow()
    assert feed.to_batches().read_all() == told
    assert feed.count() == told.num_rows == 4
    assert feed.to_pandas().shape == feed.to_polars().shape == (4, 6)
    assert table.changes(limit=2).to_arrow() == told.slice(0, 2)
    assert feed.filter("id = 2").select(["_change_type"]).to_arrow()["_change_type"].to_pylist() == ["insert", "delete"]
    relation = feed.to_duckdb(duckdb.connect())
    deleted = relation.filter("_change_type = 'delete' AND _commit_version > 1").project("id, note").fetchall()
    assert deleted == [(2, "A2")]
    assert "from snapshot None" in repr(feed)


def test_duplicate_rows_of_keyless_table_are_followed_by_row_id(tmp_path: Path) -> None:
    """CF-9, CF-15: the feed has each of them, and events that went by a key would make one of three."""
    catalog = new_catalog(tmp_path)
    table, copy = (catalog.create_table(("db", name), pa.schema([("n", pa.int64())])) for name in ("t", "copy"))
    table.append(pa.table({"n": [7, 7, 7]}))
    feed = table.changes(columns=["n", "_change_type", "_commit_version"]).to_arrow()
    assert feed["n"].to_pylist() == [7, 7, 7]
    with pytest.raises(InvalidKeyError):
        copy.apply_changes(feed, op="_change_type", order_by="_commit_version")
    with copy.transaction() as tx, pytest.raises(InvalidKeyError):
        tx.apply_changes(feed, op="_change_type", order_by="_commit_version")
    copy.apply_changes(feed, op="_change_type", order_by="_commit_version", key=None)
    assert copy.scan().to_arrow()["n"].to_pylist() == [7, 7, 7]


def test_follower_of_consecutive_ranges_rebuilds_the_table(tmp_path: Path) -> None:
    """CF-6: deletes and inserts are applied by key; each range starts at the end of the previous one."""
    catalog = new_catalog(tmp_path)
    table, copy = new_table(catalog, 3), new_table(catalog, 2, name="copy")
    seen = None
    for step in range(3):
        table.append(rows("A", *range(10 * step, 10 * step + 10)))
        table.upsert(rows("A", 10 * step + 3, note="new"))
        table.delete_prefix(pa.table({"region": ["A"], "id": [10 * step + 5]}))
        table.maintenance.run()
        columns = ["region", "id", "note", "_change_type", "_commit_version"]
        feed = table.refresh().changes(columns=columns, from_snapshot_id=seen)
        copy.apply_changes(feed.to_arrow(), op="_change_type", order_by="_commit_version")
        seen = feed.to_snapshot_id
        order = [("region", "ascending"), ("id", "ascending")]
        assert copy.scan().to_arrow().sort_by(order) == table.scan().to_arrow().sort_by(order)
