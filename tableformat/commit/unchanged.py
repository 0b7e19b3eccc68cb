"""Checks whether rows were added to the scope of an operation after a snapshot that the caller names (CP-83 to
CP-85)."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import NO_SNAPSHOT, UnchangedScope
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import diff_snapshots
from tableformat.errors import ScopeChangedError
from tableformat.metadata.snapshot_index import snapshots_by_id
from tableformat.metadata.snapshot_view import SnapshotView

_SHOWN = 3


def check_unchanged(scope: UnchangedScope, head: SnapshotView, subject: str) -> None:
    """CP-83: raise ScopeChangedError if a snapshot after the named one added a data file that may hold a row in the
    scope.

    CP-84: also if the history of the head does not lead back to the named snapshot. CP-85: snapshots that only store
    the same rows in other files do not count.
    """
    steps = _steps_since(head, scope.snapshot_id)
    if steps is None:
        raise ScopeChangedError(
            f"the operation on {subject} requires that its rows are unchanged since snapshot {scope.snapshot_id}, "
            "but this snapshot is not in the history of the branch: it has expired, or the branch was moved. Nothing "
            "was changed. Read the rows again, and pass the snapshot that you read."
        )
    came = list(_files_that_came(scope, head, steps))
    if came:
        more = f" and {len(came) - _SHOWN} more files" if len(came) > _SHOWN else ""
        raise ScopeChangedError(
            f"the operation on {subject} requires that its rows are unchanged since snapshot {scope.snapshot_id}, "
            f"but {', '.join(came[:_SHOWN])}{more} was added since then and may hold rows in its scope. Nothing was "
            "changed. Read the rows again, and pass the snapshot that you read."
        )


def _steps_since(head: SnapshotView, since: int) -> list[tuple[Snapshot | None, Snapshot]] | None:
    """Each later snapshot with its parent, newest first; None if the history does not lead back."""
    known = snapshots_by_id(head.metadata)
    steps: list[tuple[Snapshot | None, Snapshot]] = []
    current = head.snapshot
    while current is not None and current.snapshot_id != since:
        parent_id = current.parent_snapshot_id
        parent = None if parent_id is None else known.get(parent_id)
        if parent is None and (parent_id is not None or since != NO_SNAPSHOT):
            return None
        steps.append((parent, current))
        current = parent
    if current is None and since != NO_SNAPSHOT:
        return None
    return steps


def _files_that_came(
    scope: UnchangedScope, head: SnapshotView, steps: list[tuple[Snapshot | None, Snapshot]]
) -> Iterator[str]:
    for parent, snapshot in steps:
        if changes_no_row(snapshot):
            continue
        diff = diff_snapshots(head.io, head.metadata, parent, snapshot)
        yield from (data.file_path for data in diff.added_data_files if scope.may_hold(data))
