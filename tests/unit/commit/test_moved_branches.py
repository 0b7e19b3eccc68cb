"""CP-22: a branch is moved to a snapshot with rows that a scan-based operation has seen as deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from long_forms import crossed, every
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CommitConflictError, DuplicateKeyError
from tableformat.testing.acts import interrupted_by
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])


def rows_of(*ids: int, note: str = "old") -> pa.Table:
    return pa.table({"id": list(ids), "note": [note] * len(ids)}, schema=SCHEMA)


DELETES: dict[str, Callable[[tf.Table], Any]] = {
    "equality": lambda table: table.delete_rows(pa.table({"id": pa.array([2], pa.int64())})),
    "range": lambda table: table.delete_prefix({"id": 2}),
    "positions": lambda table: table.delete("id = 2", mode="scan"),
    "data file": lambda table: table.delete("id > 0", mode="scan"),
}
"""Operations that delete the row with id 2; the last one deletes all rows of its file."""

MOVES: dict[str, Callable[[tf.Table, int], Any]] = {
    "rollback": lambda table, before: table.rollback(snapshot_id=before),
    "set_current_snapshot": lambda table, before: table.set_current_snapshot(before),
    "replaced branch": lambda table, before: table.drop_branch("b").create_branch("b", before),
}


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """The branch b with ids 1 to 3 in one file, and `main`, which has no writer."""
    catalog = new_lake(tmp_path / "lake")
    properties = {**FAST_RETRIES, "format-version": request.param}
    main = catalog.create_table("db.t", SCHEMA, key=["id"], properties=properties)
    main.append(rows_of(1, 2, 3))
    main.create_branch("b")
    return catalog.load_table("db.t", branch="b")


def moved_back(table: tf.Table, delete: str, move: str) -> Callable[[], None]:
    """Delete rows, and return a function that moves the branch to a snapshot in which they are live."""
    before = table.snapshot_id
    assert before is not None
    DELETES[delete](table)
    catalog, name = table.catalog, table.name
    assert catalog is not None
    return lambda: MOVES[move](catalog.load_table(name, branch="b"), before)


every_pair = pytest.mark.parametrize(("move", "delete"), crossed(list(MOVES), list(DELETES)))
every_delete = pytest.mark.parametrize("delete", DELETES)


@every_pair
def test_restored_key_is_a_duplicate(table: tf.Table, delete: str, move: str) -> None:
    """CP-22: the key check is repeated on the head that has the rows."""
    with interrupted_by(moved_back(table, delete, move)), pytest.raises(DuplicateKeyError):
        table.append(rows_of(2, note="new"), on_duplicate="error")
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "old"), (3, "old")]


@every_pair
def test_restored_key_is_ignored_by_insert_ignore(table: tf.Table, delete: str, move: str) -> None:
    """CP-22."""
    with interrupted_by(moved_back(table, delete, move)):
        table.append(rows_of(2, 4, note="new"), on_duplicate="ignore")
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "old"), (3, "old"), (4, "new")]


@every_delete
@pytest.mark.parametrize(
    "verb",
    [
        lambda table: table.delete("note = 'old' AND id < 3 AND id <> 0", mode="scan"),
        lambda table: table.delete_range(lower=(1,), upper=(3,), mode="scan"),
        lambda table: table.delete_prefix(pa.table({"id": pa.array([1, 2], pa.int64())}), mode="scan"),
        lambda table: table.overwrite(
            rows_of(1, 2, note="new"), where="note = 'old' AND id < 3 AND id <> 0", allow_outside=True
        ),
    ],
    ids=["delete", "delete_range", "delete_prefix", "overwrite"],
)
def test_restored_rows_are_deleted(table: tf.Table, delete: str, verb: Callable[[tf.Table], Any]) -> None:
    """CP-22, CP-17: positions do not cover rows that did not exist for the search, nor does an empty result."""
    with interrupted_by(moved_back(table, delete, "rollback")):
        verb(table)
    assert (2, "old") not in live_tuples(table.refresh())
    assert (3, "old") in live_tuples(table.refresh())


@pytest.mark.parametrize("move", MOVES)
def test_scan_based_transaction_conflicts_with_moved_branch(table: tf.Table, move: str) -> None:
    """CP-22: what it read cannot be read again."""

    def fill_and_delete() -> None:
        with table.transaction() as tx:
            tx.append(rows_of(2, note="new"), on_duplicate="ignore")
            tx.delete_prefix({"id": 3})

    with (
        interrupted_by(moved_back(table, "positions", move)),
        pytest.raises(CommitConflictError),
    ):
        fill_and_delete()
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "old"), (3, "old")]


@pytest.mark.parametrize("move", MOVES)
def test_blind_change_is_committed_on_the_moved_branch(table: tf.Table, move: str) -> None:
    """CP-3: it read nothing, so there is nothing that it could have missed."""
    with interrupted_by(moved_back(table, "positions", move)):
        result = table.upsert(rows_of(2, note="new"))
    assert result.attempts == 1
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "new"), (3, "old")]


def test_branch_moved_away_and_back_does_not_conflict(table: tf.Table) -> None:
    """CP-22: the head is the planned snapshot again, so the rows that were read are still current."""
    before, catalog = table.snapshot_id, table.catalog
    assert before is not None
    assert catalog is not None
    table.delete_prefix({"id": 2})
    after = table.snapshot_id
    other = catalog.load_table("db.t", branch="b")
    with interrupted_by(lambda: other.rollback(snapshot_id=before).set_current_snapshot(after)):
        result = table.append(rows_of(2, note="new"), on_duplicate="error")
    assert result.attempts == 1
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "new"), (3, "old")]


def test_stale_handle_without_matches_searches_again(table: tf.Table) -> None:
    """CP-17: "nothing to commit" is a conclusion from rows that were read, which others have changed in the
    meantime."""
    catalog = table.catalog
    assert catalog is not None
    behind, also_behind = (catalog.load_table("db.t", branch="b") for _ in range(2))
    table.append(rows_of(4, 5))
    assert behind.delete("id = 4", mode="scan").deleted_row_count == 1
    table.refresh().delete("id = 3", mode="scan")
    also_behind.append(rows_of(3, 5, note="new"), on_duplicate="ignore")
    assert live_tuples(table.refresh()) == [(1, "old"), (2, "old"), (3, "new"), (5, "old")]
