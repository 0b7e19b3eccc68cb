"""Conversion slice by slice: the table is valid after every commit, and the next run does the remaining work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from maintenance_tables import another_handle, keyed_table, rows

import tableformat as tf
from tableformat.commit.change import is_keyed
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError, CommitStateUnknownError, InvalidArgumentError
from tableformat.maintenance.conversion import conversion_steps
from tableformat.maintenance.conversion import convert_deletes as module
from tableformat.maintenance.conversion.conversion_record import (
    CONVERTED_DELETES_UNTIL,
    CONVERTED_FILES_UNTIL,
    ConversionRecord,
)
from tableformat.maintenance.conversion.convert_files import ConversionContext, ConversionTask, convert_files
from tableformat.metadata.content_file import DataFile, DeleteKind
from tableformat.metadata.reachable_files import reachable_files
from tableformat.testing.table_files import files_on_disk, live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples

EACH_FILE = {"write.target-file-size-bytes": "1"}


"""A slice has at least the size of a target file, so every data file can be a slice."""


VERSIONS = pytest.mark.parametrize("version", ["2", "3"])


class StoppedError(Exception):
    """The error that a caller raises to stop the job."""


def table_of(directory: Path, version: str = "2", *, file_count: int = 6, **options: Any) -> tf.Table:
    """Files of ten rows each, next to each other: one row deleted in each, and a range in every second."""
    properties = {"format-version": version, **options.pop("properties", {})}
    table = keyed_table(directory, properties=properties, **options)
    for start in range(file_count):
        table.append(rows("a", range(10 * start, 10 * start + 10)))
    table.set_properties(**EACH_FILE)
    table.upsert(rows("a", range(3, 10 * file_count, 10), "new"))
    for start in range(0, file_count, 2):
        table.delete_range(lower=("a", 10 * start + 5), upper=("a", 10 * start + 8))
    return table


def keyed_deletes(table: tf.Table) -> list[DeleteKind]:
    return sorted((delete.kind for delete in live_delete_files(table) if is_keyed(delete)), key=lambda kind: kind.value)


def data_paths(table: tf.Table) -> list[str]:
    return sorted(file.file_path for file in live_data_files(table))


def unnamed(table: tf.Table) -> set[str]:
    named = reachable_files(table.metadata, table.iceberg.metadata_location, table.iceberg.io)
    return files_on_disk(table) - set(named)


def stopped_after(table: tf.Table, commit_count: int, **options: Any) -> None:
    """Convert, and stop once that many snapshots were made."""
    before = len(table.metadata.snapshots)

    def stop(done: int, total: int, what: str) -> None:
        if len(another_handle(table).metadata.snapshots) >= before + commit_count:
            raise StoppedError

    with pytest.raises(StoppedError):
        table.maintenance.convert_deletes(progress=stop, **options)


class Meanwhile:
    """Does something once, when something was converted and is not committed."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        self._actions = list(actions)

    def __call__(self, done: int, total: int, what: str) -> None:
        while done and self._actions:
            self._actions.pop(0)()


@VERSIONS
def test_every_slice_commit_keeps_the_rows(tmp_path: Path, version: str) -> None:
    """MT-13, MT-15"""
    table = table_of(tmp_path, version)
    before, first = live_tuples(table), table.snapshot_id
    result = table.maintenance.convert_deletes(max_commits=4)
    assert 1 < result.commit_count <= 4
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []
    made = [each.snapshot_id for each in table.metadata.snapshots][-result.commit_count :]
    assert first not in made
    for snapshot_id in made:
        assert live_tuples(table, snapshot_id=snapshot_id) == before
    assert unnamed(table) == set()


@VERSIONS
def test_slices_have_the_same_result_as_one_commit(tmp_path: Path, version: str) -> None:
    """MT-13: the counts of the result too."""
    whole, sliced = table_of(tmp_path / "whole", version), table_of(tmp_path / "sliced", version)
    for table in (whole, sliced):
        table.delete_range(lower=("a", 20), upper=("a", 30))
        table.delete("id2 = 31", mode="scan")
    expected = whole.maintenance.convert_deletes(partial_progress=False)
    assert expected.commit_count == 1
    result = sliced.maintenance.convert_deletes()
    assert result.commit_count > 1
    same = {"snapshot_id": None, "commit_count": 0, "duration_seconds": 0.0, "rewritten_bytes": 0, "proofs": ()}
    assert replace(result, **same) == replace(expected, **same)
    assert sorted(proof for _, proof in result.proofs) == sorted(proof for _, proof in expected.proofs)
    assert live_tuples(sliced) == live_tuples(whole)


def test_second_run_commits_nothing(tmp_path: Path) -> None:
    """MT-13"""
    table = table_of(tmp_path)
    table.maintenance.convert_deletes()
    head = table.snapshot_id
    result = table.maintenance.convert_deletes()
    assert (result.commit_count, result.snapshot_id, table.snapshot_id) == (0, head, head)


def test_dry_run_counts_all_slices_and_changes_nothing(tmp_path: Path) -> None:
    """MT-13"""
    table = table_of(tmp_path)
    head, files = table.snapshot_id, files_on_disk(table)
    planned = table.maintenance.convert_deletes(dry_run=True)
    assert (table.refresh().snapshot_id, files_on_disk(table)) == (head, files)
    done = table.maintenance.convert_deletes()
    same = {"snapshot_id": None, "commit_count": 0, "duration_seconds": 0.0, "rewritten_bytes": 0, "dry_run": False}
    assert replace(planned, **same) == replace(done, **same)


def test_delete_is_removed_with_the_last_file_that_needs_it(tmp_path: Path) -> None:
    """MT-15: the paths of a partition lie together, so the deletes of the first one need not wait for the second."""
    table = keyed_table(tmp_path, partition_by=("id1",), properties=EACH_FILE)
    for name in "ab":
        table.append(rows(name, range(10)))
        table.append(rows(name, range(10, 20)))
    for name in "ab":
        table.delete_range(lower=(name, 5), upper=(name, 15))
    before = live_tuples(table)
    stopped_after(table, 2)
    table.refresh()
    assert keyed_deletes(table) == [DeleteKind.RANGE]
    assert live_tuples(table) == before


@VERSIONS
def test_fully_covered_file_is_removed(tmp_path: Path, version: str) -> None:
    """RD-10, CP-11: none of its rows is read or comes back; a row that was already deleted by position is counted
    once."""
    table = keyed_table(tmp_path, properties={"format-version": version})
    for start in (0, 10):
        table.append(rows("a", range(start, start + 10)))
    table.delete("id2 = 3", mode="scan")
    table.delete_range(lower=("a", 0), upper=("a", 15))
    before = live_tuples(table)
    assert before == [("a", number, "x") for number in range(15, 20)]
    result = table.maintenance.convert_deletes()
    assert live_tuples(table) == before
    assert (result.removed_data_files_count, result.deleted_row_count) == (1, 14)
    assert keyed_deletes(table) == []
    assert len(live_delete_files(table)) == 1


@VERSIONS
@pytest.mark.parametrize("commit_count", [1, 2, 3])
def test_next_run_does_not_open_converted_files(tmp_path: Path, version: str, commit_count: int) -> None:
    """MT-14: the test makes the converted data files unreadable, and the run does not notice."""
    table = table_of(tmp_path, version)
    before = live_tuples(table)
    stopped_after(table, commit_count)
    table = another_handle(table)
    assert live_tuples(table) == before
    record = table.metadata.snapshots[-1].summary.additional_properties
    converted = [path for path in data_paths(table) if path <= record[CONVERTED_FILES_UNTIL]]
    all_paths = data_paths(table)
    content = {path: Path(path.removeprefix("file://")).read_bytes() for path in converted}
    for path in converted:
        Path(path.removeprefix("file://")).write_bytes(b"gone")
    result = another_handle(table).maintenance.convert_deletes()
    for path, bytes_before in content.items():
        Path(path.removeprefix("file://")).write_bytes(bytes_before)
    assert result.resumed_data_files_count == len(converted)
    assert result.resolved_data_files_count == len(all_paths) - len(converted)
    assert keyed_deletes(table.refresh()) == []
    assert live_tuples(table) == before


def test_later_deletes_are_converted_in_converted_files(tmp_path: Path) -> None:
    """MT-14"""
    table = table_of(tmp_path)
    stopped_after(table, 3)
    table = another_handle(table)
    table.delete_rows(rows("a", [0, 1, 50, 59]).select(["id1", "id2"]))
    table.upsert(rows("a", [2, 58], "newer"))
    before = live_tuples(table)
    assert table.maintenance.convert_deletes().resumed_data_files_count > 0
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


@VERSIONS
def test_earlier_row_deletes_are_merged_into_later_ones(tmp_path: Path, version: str) -> None:
    """MT-14, DA-7: a record proves nothing about row deletes, and a vector that is written again keeps their rows."""
    table = keyed_table(tmp_path, properties={"format-version": version, **EACH_FILE})
    for start in range(0, 60, 10):
        table.append(rows("a", range(start, start + 10)))
    table.delete("id2 IN (1, 11, 21, 31, 41, 51)", mode="scan")
    starts = [10 * ((file.sequence_number or 0) - 1) for file in sorted(live_data_files(table), key=_path)]
    # The keys in the first and the third file are already deleted, so these files keep their row deletes.
    keys = [start + (1 if place in (0, 2) else 3) for place, start in enumerate(starts)]
    table.delete_rows(rows("a", keys).select(["id1", "id2"]))
    stopped_after(table, 2)
    table = another_handle(table)
    table.delete_rows(rows("a", [start + 5 for start in starts]).select(["id1", "id2"]))
    before = live_tuples(table)
    assert table.maintenance.convert_deletes().resumed_data_files_count >= 3
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


def _path(file: DataFile) -> str:
    return file.file_path


def test_conversion_record_is_ignored_after_rollback(tmp_path: Path) -> None:
    """MT-14: the snapshot is still there, and the branch is not at one of its descendants."""
    table = table_of(tmp_path)
    head = table.snapshot_id
    before = live_tuples(table)
    stopped_after(table, 3)
    table = another_handle(table)
    table.rollback(snapshot_id=head)
    result = table.maintenance.convert_deletes()
    assert result.resumed_data_files_count == 0
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


def test_compacted_file_of_unconverted_files_is_searched(tmp_path: Path) -> None:
    """MT-14: planned before the delete, so with an older number; committed after the record, with a path before it."""
    table = keyed_table(tmp_path)
    for start in range(4):
        table.append(rows("a", range(10 * start, 10 * start + 10)))
    table.set_properties(**EACH_FILE, **{"write.data.path": f"{table.location}/data/0"})
    last = pq.read_table(data_paths(table)[-1].removeprefix("file://"))["id2"].to_pylist()
    other = another_handle(table)

    def delete_and_convert_one() -> None:
        table.refresh().delete_rows(rows("a", [3, 13, 23, 33]).select(["id1", "id2"]))
        stopped_after(table, 1)

    compacted = other.maintenance.compact(
        rewrite_all=True,
        where=f"id2 >= {last[0]} and id2 <= {last[-1]}",
        target_file_size_bytes=1_000_000,
        progress=Meanwhile(delete_and_convert_one),
    )
    assert (compacted.group_count, compacted.added_data_files_count) == (1, 1)
    table = another_handle(table)
    record = table.metadata.snapshots[-2].summary.additional_properties
    assert data_paths(table)[0] < record[CONVERTED_FILES_UNTIL]
    assert table.maintenance.convert_deletes().resumed_data_files_count == 1
    assert [row[1] for row in live_tuples(table)] == [number for number in range(40) if number % 10 != 3]
    assert keyed_deletes(table) == []


def test_conversion_record_covers_only_files_of_its_time(tmp_path: Path) -> None:
    """MT-14: the record does not cover a file that was added later, regardless of its data sequence number: a rewritten
    file has an old one."""
    data = live_data_files(table_of(tmp_path))[0]
    assert data.file_sequence_number == data.sequence_number
    record = ConversionRecord(data.file_sequence_number, data.file_path)
    assert record.speaks_of(data)
    assert not record.speaks_of(replace(data, file_sequence_number=data.file_sequence_number + 1))
    assert not record.speaks_of(replace(data, file_path=data.file_path + "0"))
    assert record.to_summary() == {
        CONVERTED_DELETES_UNTIL: str(data.sequence_number),
        CONVERTED_FILES_UNTIL: data.file_path,
    }


def converting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The data files that tasks were made for, in order."""
    seen: list[str] = []

    def counted(task: ConversionTask, context: ConversionContext) -> Any:
        seen.extend(each.data_file.file_path for each in task.tasks)
        return convert_files(task, context)

    monkeypatch.setattr(conversion_steps, "convert_files", counted)
    return seen


def test_conflict_skips_only_the_affected_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-17, CP-10: a row is deleted by position in one of the files, so its vector lacks that row."""
    table = table_of(tmp_path, "3")
    other = another_handle(table)
    seen = converting(monkeypatch)
    result = table.maintenance.convert_deletes(
        partial_progress=False, progress=Meanwhile(lambda: other.delete("id2 = 2", mode="scan"))
    )
    assert result.commit_count == 1
    assert len(seen) == len(set(seen)) + 1
    assert keyed_deletes(table) == []
    assert 2 not in [row[1] for row in live_tuples(table)]
    assert live_tuples(table) == live_tuples(another_handle(table))
    assert unnamed(table) == set()


def test_puffin_file_with_partly_committed_vectors_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-17: first one Puffin file has the vectors of all data files. After a conflict the slices are single files, and
    only one slice is committed."""
    monkeypatch.setattr(conversion_steps, "_AT_ONCE", 1)
    table = table_of(tmp_path, "3", file_count=4)
    table.set_properties(**{"write.target-file-size-bytes": "100000000"})
    other = another_handle(table)

    def disturb() -> None:
        other.set_properties(**EACH_FILE)
        other.delete("id2 = 2", mode="scan")

    disturbed = Meanwhile(disturb)

    def stop(done: int, total: int, what: str) -> None:
        disturbed(done, total, what)
        if another_handle(table).metadata.current_snapshot().summary.additional_properties.get(CONVERTED_FILES_UNTIL):
            raise StoppedError

    before = [row for row in live_tuples(table) if row[1] != 2]
    with pytest.raises(StoppedError):
        table.maintenance.convert_deletes(progress=stop)
    assert live_tuples(another_handle(table)) == before
    assert unnamed(another_handle(table)) == set()


@VERSIONS
def test_unknown_outcome_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """CP-13, MT-17"""
    table = table_of(tmp_path, version)
    before = live_tuples(table)

    def commit_and_lose_the_answer(*arguments: Any, **options: Any) -> Any:
        commit_change(*arguments, **options)
        raise CommitStateUnknownError("no answer")

    monkeypatch.setattr(module, "commit_change", commit_and_lose_the_answer)
    with pytest.raises(CommitStateUnknownError):
        table.maintenance.convert_deletes(partial_progress=False)
    assert keyed_deletes(another_handle(table)) == []
    assert live_tuples(another_handle(table)) == before


@VERSIONS
def test_concurrent_upgrade_rewrites_prepared_files(tmp_path: Path, version: str) -> None:
    """CP-19: files that were prepared for version 2 are written again for version 3, and none of them remains."""
    table = table_of(tmp_path, version)
    other = another_handle(table)
    before = live_tuples(table)
    upgrade = Meanwhile(lambda: other.set_properties(**{"format-version": "3"}))
    result = table.maintenance.convert_deletes(progress=upgrade)
    assert result.added_deletion_vectors_count > 0
    assert result.added_position_delete_files_count == 0
    assert live_tuples(table) == before
    assert unnamed(table) == set()


@VERSIONS
def test_rollback_during_conversion(tmp_path: Path, version: str) -> None:
    """CP-21: the plan relies on positions of the first slices; the branch moves to a snapshot without them."""
    table = table_of(tmp_path, version)
    head, before = table.snapshot_id, live_tuples(table)
    stopped_after(table, 2)
    table, other = another_handle(table), another_handle(table)
    meanwhile = Meanwhile(lambda: other.rollback(snapshot_id=head))
    table.maintenance.convert_deletes(progress=meanwhile)
    assert live_tuples(table) == before
    assert keyed_deletes(table) == []


@VERSIONS
def test_rollback_to_planned_snapshot_between_slices(tmp_path: Path, version: str) -> None:
    """CP-21: what was planned on is in the past of the head, and the first slice is not."""
    table = table_of(tmp_path, version)
    head, before = table.snapshot_id, live_tuples(table)
    rolled_back: list[int] = []

    def roll_back_once(done: int, total: int, what: str) -> None:
        other = another_handle(table)
        if other.snapshot_id != head and not rolled_back:
            rolled_back.append(done)
            other.rollback(snapshot_id=head)

    table.maintenance.convert_deletes(progress=roll_back_once)
    assert rolled_back
    assert live_tuples(another_handle(table)) == before
    assert keyed_deletes(another_handle(table)) == []


def test_permanent_conflicts_stop_the_job_and_leave_no_file(tmp_path: Path) -> None:
    """MT-17: the job gives up, and leaves no file."""
    table = table_of(tmp_path, "3", file_count=3)
    other = another_handle(table)
    left = [0, 1, 2, 4, 8, 9, 10, 11, 12, 14, 15]

    def always(done: int, total: int, what: str) -> None:
        if done == total:
            other.delete(f"id2 = {left.pop(0)}", mode="scan")

    with pytest.raises(CommitConflictError):
        table.maintenance.convert_deletes(partial_progress=False, progress=always)
    assert unnamed(another_handle(table)) == set()


def test_filter_selects_files(tmp_path: Path) -> None:
    """MT-16: deletes that other files need stay, and no record is written."""
    table = keyed_table(tmp_path, partition_by=("id1",), properties=EACH_FILE)
    for name in "ab":
        table.append(rows(name, range(10)))
        table.append(rows(name, range(10, 20)))
    table.delete_range(lower=("a", 5), upper=("a", 15))
    table.delete_range(lower=("a", 18), upper=("b", 5))
    before = live_tuples(table)
    result = table.maintenance.convert_deletes(where="id1 = 'a'")
    assert (result.removed_range_delete_files_count, result.resolved_data_files_count) == (1, 2)
    assert live_tuples(table) == before
    assert keyed_deletes(table) == [DeleteKind.RANGE]
    assert all(CONVERTED_FILES_UNTIL not in each.summary.additional_properties for each in table.metadata.snapshots)
    rest = table.maintenance.convert_deletes()
    assert rest.removed_range_delete_files_count == 1
    assert live_tuples(table) == before


@pytest.mark.parametrize("max_commits", [0, -1, True, 1.5])
def test_invalid_max_commits_is_rejected(tmp_path: Path, max_commits: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_commits must be a whole number"):
        table_of(tmp_path).maintenance.convert_deletes(max_commits=max_commits)
