"""Staged files are committed once (CP-23), and a path that another writer committed twice keeps its rows (MT-64)."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from long_forms import every
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import AlreadyCommittedError, InvalidArgumentError, UnsupportedFeatureError
from tableformat.storage.location import local_path
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """Ids 1 and 2."""
    catalog = new_lake(tmp_path / "lake")
    properties = {**FAST_RETRIES, "format-version": request.param}
    created = catalog.create_table("db.t", SCHEMA, key=["id"], properties=properties)
    created.append(rows_of(1, 2))
    return created


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "note": ["x"] * len(ids)}, schema=SCHEMA)


NOTHING: Callable[[tf.Table], Any] = lambda _table: None  # noqa: E731 - one of several acts
SINCE: dict[str, Callable[[tf.Table], Any]] = {
    "nothing": NOTHING,
    "other commits": lambda table: [table.append(rows_of(number)) for number in (11, 12)],
    "compaction": lambda table: table.maintenance.compact(rewrite_all=True),
    "manifests": lambda table: table.maintenance.rewrite_manifests(),
    "deleted": lambda table: table.delete("id = 3 OR id = 4", mode="scan"),
    "expired": lambda table: (
        table.append(rows_of(11)),
        table.maintenance.expire_snapshots(older_than=10**15, retain_last=1),
    ),
}


@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("kind", ["append", "replace"])
def test_committed_files_cannot_be_committed_again(table: tf.Table, kind: str, since: str) -> None:
    """CP-23: regardless of what happened to the files after their commit."""
    write = table.new_write(kind=kind)
    staged = [write.write(rows_of(3)), write.write(rows_of(4))]
    first = table.commit(write, staged)
    SINCE[since](table)
    before = live_values(table.refresh(), "id")
    with pytest.raises(AlreadyCommittedError) as raised:
        table.commit(write, pickle.loads(pickle.dumps(staged)))
    assert sorted(raised.value.file_paths) == sorted(path for each in staged for path in each.file_paths)
    assert since == "expired" or raised.value.snapshot_id == first.snapshot_id
    assert live_values(table.refresh(), "id") == before


@pytest.mark.parametrize("is_tagged", [False, True])
def test_compacted_files_with_expired_history_are_rejected(table: tf.Table, is_tagged: bool) -> None:
    """CP-34: the files are gone, or a tag keeps them, and no snapshot of the branch shows that it had them."""
    write = table.new_write()
    staged = [write.write(rows_of(3)), write.write(rows_of(4))]
    table.commit(write, staged)
    if is_tagged:
        table.create_tag("kept")
    table.maintenance.compact(rewrite_all=True)
    table.append(rows_of(11))
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    with pytest.raises(AlreadyCommittedError) as raised:
        table.commit(write, staged)
    assert (raised.value.snapshot_id is not None) is is_tagged
    assert len(raised.value.file_paths) == 2
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4, 11]
    assert table.verify().is_clean


def test_new_files_are_committed_despite_expired_history(table: tf.Table) -> None:
    """CP-34."""
    table.create_tag("older")
    write = table.new_write()
    staged = [write.write(rows_of(3))]
    table.append(rows_of(11))
    table.append(rows_of(12))
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    assert table.commit(write, staged).added_row_count == 1
    assert live_values(table.refresh(), "id") == [1, 2, 3, 11, 12]


def test_partly_committed_files_are_rejected(table: tf.Table) -> None:
    """CP-23: nothing of the second commit is applied."""
    write = table.new_write()
    staged = [write.write(rows_of(3)), write.write(rows_of(4))]
    table.commit(write, staged[:1])
    with pytest.raises(AlreadyCommittedError):
        table.commit(write, staged)
    table.commit(write, staged[1:])
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4]


def test_duplicate_files_in_one_commit_are_rejected(table: tf.Table) -> None:
    """CP-23."""
    write = table.new_write()
    staged = write.write(rows_of(3))
    with pytest.raises(InvalidArgumentError, match="twice"):
        table.commit(write, [staged, staged])
    assert live_values(table.refresh(), "id") == [1, 2]


def test_repeated_named_batch_is_not_an_error(table: tf.Table) -> None:
    """CP-14 is checked before CP-23; another batch with the same files is rejected."""
    write = table.new_write()
    staged = [write.write(rows_of(3))]
    table.commit(write, staged, application_id="a", batch_id=1)
    assert table.commit(write, staged, application_id="a", batch_id=1).already_applied
    with pytest.raises(AlreadyCommittedError):
        table.commit(write, staged, application_id="a", batch_id=2)
    assert live_values(table.refresh(), "id") == [1, 2, 3]


def test_rolled_back_files_may_be_committed_again(table: tf.Table) -> None:
    """CP-23: it is about what the branch has had."""
    before = table.snapshot_id
    table.create_branch("b")
    write = table.new_write()
    staged = [write.write(rows_of(3))]
    table.commit(write, staged)
    table.rollback(snapshot_id=before)
    table.commit(write, staged)
    assert table.catalog is not None
    table.catalog.load_table("db.t", branch="b").commit(write, staged)
    assert live_values(table.refresh(), "id") == live_values(table.refresh(), "id", branch="b") == [1, 2, 3]


# -- tables of writers that did it all the same


def add_again(table: tf.Table, *, times: int = 1) -> None:
    """Add the newest data file again, as a writer without the check does; each time in its own commit."""
    newest = max(
        live_data_files(table.refresh()),
        key=lambda file: file.sequence_number or 0,
    )
    again = replace(newest, sequence_number=None, file_sequence_number=None, first_row_id=None)
    for _ in range(times):
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(again,)))
        table.refresh()


JOBS: dict[str, Callable[[tf.Table], Any]] = {
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "compact in parts": lambda table: table.maintenance.compact(min_input_files=2, delete_ratio_threshold=0.01),
    "positions": lambda table: table.maintenance.rewrite_position_delete_files(rewrite_all=True),
    "positions, by a filter": lambda table: table.maintenance.rewrite_position_delete_files(
        where="id > 0", rewrite_all=True
    ),
    "drop dead": lambda table: table.maintenance.drop_dead_deletes(),
    "merge ranges": lambda table: table.maintenance.merge_range_deletes(),
    "manifests": lambda table: table.maintenance.rewrite_manifests(),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    "delete",
    [
        NOTHING,
        lambda table: table.delete_prefix({"id": 1}),
        lambda table: table.delete_range(lower=(0,), upper=(9,)),
        lambda table: table.delete("id = 1", mode="scan"),
    ],
    ids=["no delete", "prefix", "whole file", "positions"],
)
def test_jobs_keep_rows_of_duplicate_file_entries(table: tf.Table, delete: Callable[[tf.Table], Any], job: str) -> None:
    """MT-64: deletes apply to the entries that are older than the delete, and jobs do not change such files."""
    add_again(table)
    delete(table)
    add_again(table)
    table.append(rows_of(7))
    table.append(rows_of(8))
    before = Counter(live_values(table.refresh(), "id"))
    JOBS[job](table.refresh())
    assert Counter(live_values(table.refresh(), "id")) == before
    table.append(rows_of(9))
    JOBS[job](table.refresh())
    assert Counter(live_values(table.refresh(), "id")) == before + Counter([9])


def test_conversion_names_the_file_with_duplicate_entries(table: tf.Table) -> None:
    """MT-64: row deletes name paths, so they cannot delete a row of one entry and keep it of the other."""
    table.delete_prefix({"id": 1})
    add_again(table)
    (path, _) = {file.file_path: file for file in live_data_files(table)}.popitem()
    before = live_values(table.refresh(), "id")
    with pytest.raises(UnsupportedFeatureError, match=path):
        table.maintenance.convert_deletes()
    assert live_values(table.refresh(), "id") == before == [1, 2, 2]
    table.delete("id < 3", mode="scan")
    assert live_values(table.refresh(), "id") == []


def test_delete_removes_rows_from_both_duplicate_entries(table: tf.Table) -> None:
    """MT-64: the file stays in the table, its rows are deleted by position."""
    add_again(table)
    assert table.delete("id = 1", mode="scan").deleted_row_count == 2
    assert live_values(table.refresh(), "id") == [2, 2]
    table.overwrite(rows_of(5), where="note = 'x' AND id < 3 AND id <> 0", allow_outside=True)
    assert live_values(table.refresh(), "id") == [5]


def test_staged_files_removed_as_orphans_are_rejected(table: tf.Table) -> None:
    """CP-55: the table used to reference files that were gone."""
    write = table.new_write()
    staged = [write.write(rows_of(number)) for number in range(3, 15)]
    kept = table.new_write().write(rows_of(99))
    gone = staged[4].file_paths[0]
    Path(local_path(gone) or "").unlink()
    with pytest.raises(InvalidArgumentError, match=r"1 of the files staged for .* do not exist") as told:
        table.commit(write, staged)
    assert gone in str(told.value)
    assert live_values(table, "id") == [1, 2]
    table.commit(write, [kept, *(each for each in staged if each is not staged[4])])
    assert table.verify(deep=True).is_clean


def test_staged_file_removed_as_recent_orphan_raises_error(table: tf.Table) -> None:
    """CP-55"""
    write = table.new_write()
    staged = write.write(rows_of(3))
    removed = table.maintenance.remove_orphan_files(older_than=datetime.now() + timedelta(hours=1), allow_recent=True)
    assert removed.deleted_files_count == 1
    with pytest.raises(InvalidArgumentError, match="Stage the rows again"):
        table.commit(write, [staged])
    assert table.verify().is_clean
