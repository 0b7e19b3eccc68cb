"""A compaction drops the delete files that no longer match any row after it (MT-95)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from maintenance_tables import (
    Meanwhile,
    another_handle,
    commit_deletes,
    keyed_table,
    rows,
    unnamed_position_delete,
)
from new_lakes import new_lake
from published_tables import TARGET, branched, opened

import tableformat as tf
from tableformat.maintenance.compaction.compact import CompactResult
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples, live_values

COUNTS = {
    DeleteKind.POSITION: "removed_position_delete_files_count",
    DeleteKind.DELETION_VECTOR: "removed_deletion_vectors_count",
    DeleteKind.EQUALITY: "removed_equality_delete_files_count",
    DeleteKind.RANGE: "removed_range_delete_files_count",
}


def kinds(deletes: list[DeleteFile]) -> Counter[DeleteKind]:
    return Counter(delete.kind for delete in deletes)


def removed(result: CompactResult) -> Counter[DeleteKind]:
    return +Counter({kind: getattr(result, name) for kind, name in COUNTS.items()})


def read_by_pyiceberg(table: tf.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.iceberg.scan().to_arrow().to_pylist())


def with_deletes_of_every_kind(directory: Path, version: int, **options: Any) -> tf.Table:
    """Ten rows of `a` and ten of `b`; range, equality and position deletes removed some of each."""
    table = keyed_table(directory, properties={"format-version": str(version)}, **options)
    table.append(rows("a", range(10)))
    table.append(rows("b", range(10)))
    for name in ("a", "b"):
        table.delete_prefix({"id1": name, "id2": 1})
        table.upsert(rows(name, [2], "new"))
        table.delete(f"id1 = '{name}' AND id2 = 3", mode="scan")
    return table


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", [(), ("id1",)])
def test_compacted_table_is_read_without_conversion(
    tmp_path: Path, version: int, partition_by: tuple[str, ...]
) -> None:
    """MT-95: without a conversion. A dry run counts what the compaction removes."""
    table = with_deletes_of_every_kind(tmp_path, version, partition_by=partition_by)
    before, found = live_tuples(table), kinds(live_delete_files(table))
    foreseen = table.maintenance.compact(rewrite_all=True, dry_run=True)
    result = table.maintenance.compact(rewrite_all=True)
    assert len(found) == 3
    assert removed(result) == removed(foreseen) == found
    assert live_delete_files(table) == []
    assert live_tuples(table) == read_by_pyiceberg(table) == before
    assert (result.snapshot_id, result.not_dropped_because) == (table.snapshot_id, "")


def test_older_snapshots_and_branches_keep_the_deletes(tmp_path: Path) -> None:
    """MT-10, MT-95: only manifests of the new snapshot change."""
    table = with_deletes_of_every_kind(tmp_path, 2)
    before, snapshot_id = live_tuples(table), table.snapshot_id
    table.create_branch("other")
    table.maintenance.compact(rewrite_all=True)
    other = table.catalog.load_table("db.t", branch="other")
    assert live_tuples(table, snapshot_id=snapshot_id) == live_tuples(other) == before
    assert len(kinds(live_delete_files(other))) == 3
    other.maintenance.compact(rewrite_all=True)
    assert live_delete_files(other) == []
    assert live_tuples(other) == live_tuples(table.refresh()) == before


def test_partition_compaction_keeps_deletes_of_other_partitions(tmp_path: Path) -> None:
    """MT-95: the range deletes are global, and one of them has a span for each partition."""
    table = with_deletes_of_every_kind(tmp_path, 2, partition_by=("id1",))
    table.delete_prefix(pa.table({"id1": ["a", "b"], "id2": [5, 5]}))
    before = live_tuples(table)
    foreseen = table.maintenance.compact(where="id1 = 'a'", rewrite_all=True, dry_run=True)
    result = table.maintenance.compact(where="id1 = 'a'", rewrite_all=True)
    assert removed(result) == removed(foreseen)
    left = live_delete_files(table)
    assert kinds(left) == {DeleteKind.RANGE: 2, DeleteKind.EQUALITY: 1, DeleteKind.POSITION: 1}
    assert live_tuples(table) == before
    table.maintenance.compact(where="id1 = 'b'", rewrite_all=True)
    assert live_delete_files(table) == []
    assert live_tuples(table) == read_by_pyiceberg(table) == before


def test_position_deletes_without_live_files_are_removed(tmp_path: Path) -> None:
    """MT-95, DA-10: DuckDB and Spark write one file for several data files, which no single group removes."""
    table = keyed_table(tmp_path)
    for name in ("a", "b"):
        table.append(rows(name, range(5)))
    data = sorted(live_data_files(table), key=lambda each: each.sequence_number or 0)
    commit_deletes(table, unnamed_position_delete(table, [(data[0], 1), (data[1], 2)]))
    before = live_tuples(table)
    table.maintenance.compact(only_paths=[data[0].file_path], rewrite_all=True)
    assert len(live_delete_files(table)) == 1, "the other data file needs it"
    table.maintenance.compact(only_paths=[data[1].file_path], rewrite_all=True)
    assert live_delete_files(table) == []
    assert live_tuples(table) == read_by_pyiceberg(table) == before


def test_drop_dead_deletes_option_keeps_deletes(tmp_path: Path) -> None:
    """MT-95"""
    table = with_deletes_of_every_kind(tmp_path, 2)
    before = live_tuples(table)
    options = {"rewrite_all": True, "drop_dead_deletes": False}
    foreseen = table.maintenance.compact(dry_run=True, **options)
    result = table.maintenance.compact(**options)
    assert removed(result) == removed(foreseen) == {DeleteKind.POSITION: 2}
    assert kinds(live_delete_files(table)) == {DeleteKind.RANGE: 2, DeleteKind.EQUALITY: 2}
    assert live_tuples(table) == before


def test_concurrent_delete_is_kept(tmp_path: Path) -> None:
    """MT-95, CP-7: the new files have the planned sequence number, so a concurrent delete applies to them."""
    table = with_deletes_of_every_kind(tmp_path, 2)
    other = another_handle(table)
    expected = [row for row in live_tuples(table) if row[:2] != ("a", 7)]
    result = table.maintenance.compact(
        rewrite_all=True, progress=Meanwhile(lambda: other.delete_prefix({"id1": "a", "id2": 7}))
    )
    assert result.group_count == 1
    assert kinds(live_delete_files(table)) == {DeleteKind.RANGE: 1}
    assert live_tuples(table) == expected


def test_earlier_planned_rewrite_does_not_restore_rows(tmp_path: Path) -> None:
    """MT-10, CP-9: another rewrite read the rows. Then deletes were added, applied and dropped, and the rewrite commits
    last."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.append(rows("b", range(5)))
    other = another_handle(table)

    def deletes_and_compacts() -> None:
        other.refresh().delete_prefix({"id1": "a"})
        other.maintenance.compact(rewrite_all=True)
        assert live_delete_files(other) == []

    table.maintenance.compact(rewrite_all=True, progress=Meanwhile(deletes_and_compacts))
    assert {row[0] for row in live_tuples(table.refresh())} == {"b"}


def test_permanent_conflicts_leave_dead_deletes_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-95: the compaction is done, and the result states why they stay."""
    table = with_deletes_of_every_kind(tmp_path, 2).set_properties({"commit.retry.num-retries": "1"})
    other, before = opened(tmp_path), live_tuples(table)
    catalog = table.iceberg.catalog
    commit_table, commits = catalog.commit_table, []

    def beside_a_busy_writer(*arguments: Any) -> Any:
        commits.append(1)
        if len(commits) > 1:
            other.refresh().append(rows("c", [len(commits)]))
        return commit_table(*arguments)

    monkeypatch.setattr(catalog, "commit_table", beside_a_busy_writer)
    result = table.maintenance.compact(rewrite_all=True)
    monkeypatch.undo()
    assert (result.group_count, result.commit_count) == (1, 1)
    assert result.not_dropped_because
    assert kinds(live_delete_files(table.refresh())) == {DeleteKind.RANGE: 2, DeleteKind.EQUALITY: 2}
    table.maintenance.compact()
    assert live_delete_files(table) == []
    assert [row for row in live_tuples(table) if row[0] != "c"] == before


def test_delete_needed_by_publish_target_rows_is_kept(tmp_path: Path) -> None:
    """MT-31, MT-95"""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1]))
    ingest.refresh().delete_prefix({"id1": "late"})
    ingest.delete_prefix({"id1": "a", "id2": 1})
    ingest.maintenance.compact(rewrite_all=True)
    assert len(live_delete_files(ingest)) == 1
    main.maintenance.publish()
    assert live_tuples(main) == [("a", number, "x") for number in range(10) if number != 1]


def test_unpublishable_branch_is_compacted_but_keeps_deletes(tmp_path: Path) -> None:
    """MT-32, MT-95: what the target got cannot be carried, so no delete is known to be dead."""
    main, ingest = branched(tmp_path)
    ingest.delete_prefix({"id1": "a", "id2": 1})
    main.refresh().remove_properties("tableformat.publish-target.ingest")
    main.delete("id2 = 2", mode="scan")
    main.set_properties(**TARGET)
    foreseen = ingest.refresh().maintenance.compact(rewrite_all=True, dry_run=True)
    result = ingest.maintenance.compact(rewrite_all=True)
    assert result.group_count == 1
    assert "ingest" in result.not_dropped_because
    assert foreseen.not_dropped_because == result.not_dropped_because
    assert len(live_delete_files(ingest)) == 1


def test_publish_target_with_dead_deletes_is_not_changed(tmp_path: Path) -> None:
    """MT-30, MT-95: nothing to compact there, and nothing is dropped."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_prefix({"id1": "nowhere"})
    table.create_branch("ingest")
    table.set_properties(**TARGET)
    before = table.refresh().snapshot_id
    assert table.maintenance.compact().snapshot_id == table.refresh().snapshot_id == before
    ingest = opened(tmp_path, "ingest")
    ingest.maintenance.compact()
    assert live_delete_files(ingest) == []


@pytest.mark.parametrize("version", [2, 3])
def test_restored_range_does_not_contain_deleted_rows(tmp_path: Path, version: int) -> None:
    """RP-13, MT-95: the deletes that its rows had met were dropped while it was away."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([("n", pa.int64()), ("id", pa.int64())])
    table = catalog.create_table(
        "db.t",
        schema,
        key=["n", "id"],
        range_partitions=tf.RangePartitions(on=["n"], bounds=[(0, 50)], step=10),
        properties={"format-version": str(version)},
    )
    table.append(pa.table({"n": [1, 2, 3, 4, 15], "id": [1] * 5}))
    table.delete_prefix({"n": 1})
    table.delete("n = 2", mode="scan")
    table.delete_rows(pa.table({"n": pa.array([3], pa.int64())}))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.maintenance.compact(rewrite_all=True)
    assert live_delete_files(table) == []
    table.range_partitions.restore(tag)
    assert live_values(table, "n") == [4, 15]
    table.maintenance.compact(rewrite_all=True)
    assert live_delete_files(table) == []
    assert live_values(table, "n") == [4, 15]


def test_run_removes_dead_deletes_of_its_compaction(tmp_path: Path) -> None:
    """MT-60, MT-95: row deletes of other writers name several files, and leave with the last of them."""
    table = keyed_table(tmp_path)
    for name in ("a", "b"):
        table.append(rows(name, range(5)))
    data = live_data_files(table)
    commit_deletes(table, unnamed_position_delete(table, [(data[0], number) for number in range(3)]))
    commit_deletes(table, unnamed_position_delete(table, [(data[1], number) for number in range(3)]))
    before = live_tuples(table)
    assert table.maintenance.run().is_complete
    assert live_delete_files(table) == []
    assert live_tuples(table) == read_by_pyiceberg(table) == before
