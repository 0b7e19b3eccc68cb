"""Compaction commits group by group: the state after a conflict, an error or a cancelled job (MT-47)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from maintenance_tables import Meanwhile, another_handle, five_files, keyed_table, rows

import tableformat as tf
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError, CommitStateUnknownError
from tableformat.maintenance.compaction import compact
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.testing.table_files import files_on_disk, live_data_files
from tableformat.testing.table_rows import live_tuples


def test_permanent_conflict_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    """MT-47"""
    table = five_files(tmp_path)
    other = another_handle(table)
    keys = iter(range(50))

    def always(done: int, total: int, what: str) -> None:
        other.delete(f"id2 = {next(keys)}", mode="scan")

    before = {path for path in files_on_disk(table) if "deletes" not in path and path.endswith(".parquet")}
    result = table.maintenance.compact(progress=always)
    after = {path for path in files_on_disk(table) if "deletes" not in path and path.endswith(".parquet")}
    assert (result.group_count, result.failed_group_count, result.commit_count) == (0, 1, 0)
    assert after == before
    assert [row[1] for row in live_tuples(table.refresh())] == list(range(next(keys), 50))


def test_conflicting_group_does_not_block_other_groups(tmp_path: Path) -> None:
    """MT-47: the groups of its snapshot are committed one by one."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for start in range(5):
        for name in ("a", "b", "c"):
            table.append(rows(name, range(start, 25, 5)))
    other = another_handle(table)
    seen: list[str] = []

    def always(done: int, total: int, what: str) -> None:
        alive = [row[1] for row in live_tuples(other.refresh()) if row[0] == "b"]
        other.delete(f"id1 = 'b' and id2 = {alive[0]}", mode="scan")
        seen.append(what)

    result = table.maintenance.compact(progress=always)
    assert (result.group_count, result.failed_group_count, result.commit_count) == (2, 1, 2)
    assert result.failed_data_files_count == 5
    partitions = sorted(data.partition for data in live_data_files(table.refresh()))
    assert partitions == [("a",), *[("b",)] * 5, ("c",)]
    assert set(seen) == {"rows"}


def test_without_partial_progress_all_groups_commit_together(tmp_path: Path) -> None:
    """MT-47"""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for start in range(5):
        for name in ("a", "b"):
            table.append(rows(name, range(start, 25, 5)))
    before = len(table.metadata.snapshots)
    result = table.maintenance.compact(partial_progress=False, target_file_size_bytes=1500, min_input_files=2)
    assert (result.group_count, result.commit_count, len(table.metadata.snapshots)) == (2, 1, before + 1)


def partitioned(tmp_path: Path, names: str) -> tf.Table:
    """A partition for each letter, with ids 0 to 24 in five files."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for start in range(5):
        table.append(pa.concat_tables([rows(name, range(start, 25, 5)) for name in names]))
    return table


def test_without_partial_progress_a_conflict_replans_all_groups(tmp_path: Path) -> None:
    """MT-47: the other groups are not committed alone."""
    table = partitioned(tmp_path, "ab")
    other = another_handle(table)
    before = len(table.metadata.snapshots)
    meanwhile = Meanwhile(lambda: other.delete("id1 = 'b' and id2 = 3", mode="scan"))
    result = table.maintenance.compact(partial_progress=False, progress=meanwhile)
    assert (result.group_count, result.commit_count, len(table.metadata.snapshots)) == (2, 1, before + 2)
    assert sorted(data.record_count for data in live_data_files(table)) == [24, 25]
    assert live_tuples(table) == [
        (name, number, "x") for name in "ab" for number in range(25) if (name, number) != ("b", 3)
    ]
    assert {path for path in files_on_disk(table) if path.endswith(".parquet")} == referenced(table)


def test_without_partial_progress_a_permanent_conflict_is_raised(tmp_path: Path) -> None:
    """MT-47: no group is committed, and no new file is left."""
    table = partitioned(tmp_path, "ab")
    other = another_handle(table)
    keys = iter(range(25))

    def always(done: int, total: int, what: str) -> None:
        other.delete(f"id1 = 'b' and id2 = {next(keys)}", mode="scan")

    with pytest.raises(CommitConflictError):
        table.maintenance.compact(partial_progress=False, progress=always)
    table.refresh()
    assert len(live_data_files(table)) == 10
    assert [row[1] for row in live_tuples(table) if row[0] == "a"] == list(range(25))
    assert {path for path in files_on_disk(table) if path.endswith(".parquet")} == referenced(table)


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
@pytest.mark.parametrize("error", [RuntimeError, CommitStateUnknownError])
def test_error_between_group_commits_keeps_committed_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: type[Exception]
) -> None:
    """MT-47, CP-13: what was committed before it stays, files of what may have happened too; the others go."""
    table = partitioned(tmp_path, "abc")
    before, files = live_tuples(table), files_on_disk(table)
    calls = itertools.count(1)

    def commit(*arguments: Any, **options: Any) -> Any:
        call = next(calls)
        if call == failing:
            raise error("told by nobody")
        if call == 1:
            raise CommitConflictError("all of them together")
        return commit_change(*arguments, **options)

    monkeypatch.setattr(compact, "commit_change", commit)
    with pytest.raises(error):
        table.maintenance.compact()
    fresh = another_handle(table)
    assert live_tuples(fresh) == before
    new = {path for path in files_on_disk(fresh) - files if path.endswith(".parquet")}
    committed = max(failing - 2, 0)
    unknown = (3 if failing == 1 else 1) if error is CommitStateUnknownError else 0
    assert len(new & referenced(fresh)) == committed
    assert len(new) == committed + unknown


def test_partial_progress_is_limited_to_max_commits(tmp_path: Path) -> None:
    """MT-47"""
    table = keyed_table(tmp_path, partition_by=("id1",))
    names = [chr(ord("a") + number) for number in range(6)]
    for start in range(5):
        table.append(pa.concat_tables([rows(name, range(start, 25, 5)) for name in names]))
    before = live_tuples(table)
    result = table.maintenance.compact(max_commits=3, target_file_size_bytes=4000, min_input_files=2)
    assert (result.group_count, result.commit_count) == (6, 3)
    assert live_tuples(table) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_cancelled_job_keeps_commits_and_removes_other_files(tmp_path: Path, error: type[BaseException]) -> None:
    """MT-47: an exception of the progress callback, at each of its calls."""
    for calls in range(1, 9):
        table = keyed_table(tmp_path / f"{calls}", partition_by=("id1",))
        for start in range(5):
            table.append(pa.concat_tables([rows(name, range(start, 25, 5)) for name in "abcd"]))
        before = live_tuples(table)
        left = [calls]

        def cancel(done: int, total: int, what: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise error("stop")

        with pytest.raises(error):
            table.maintenance.compact(max_commits=4, target_file_size_bytes=1500, min_input_files=2, progress=cancel)
        fresh = another_handle(table)
        assert live_tuples(fresh) == before
        assert {path for path in files_on_disk(fresh) if path.endswith(".parquet")} == referenced(fresh)


def referenced(table: tf.Table) -> set[str]:
    """Every file that an entry of some retained snapshot names."""
    views = [table.at(snapshot_id=snapshot.snapshot_id) for snapshot in table.metadata.snapshots]
    return {
        entry.file.file_path
        for view in views
        for manifest in manifests_of(view)
        for entry in read_manifest(view.io, manifest, view.metadata)
    }


def test_commit_without_response_keeps_the_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-13: the commit may have happened."""
    table = five_files(tmp_path, properties={"commit.status-check.num-retries": "1"})
    before = files_on_disk(table)

    def no_answer(*_arguments: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(type(table.iceberg.catalog), "commit_table", no_answer)
    with pytest.raises(CommitStateUnknownError):
        table.maintenance.compact()
    assert len([path for path in files_on_disk(table) - before if path.endswith(".parquet")]) == 1
