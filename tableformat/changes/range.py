"""The range of snapshots that a change feed covers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.snapshot_choice import ancestors, schema_of
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Snapshots of one line of ancestors, whose parents are all retained."""

    view: SnapshotView
    """The last snapshot, and the schema of the returned rows."""
    from_snapshot_id: int | None
    """The snapshot after which the range begins; None for the beginning of the table."""
    snapshots: tuple[Snapshot, ...]
    """The snapshots, oldest first."""

    @property
    def to_snapshot_id(self) -> int | None:
        """The last snapshot. The next range begins after it. None for a table without snapshots."""
        return None if self.view.snapshot is None else self.view.snapshot.snapshot_id


def change_range(view: SnapshotView, from_snapshot_id: int | None) -> ChangeRange:
    """CF-1: the ancestors of the view's snapshot after `from_snapshot_id`, and the snapshot itself.

    Raises SnapshotNotFoundError if a required snapshot has expired (CF-2), and names the oldest snapshot after which a
    range can begin. Raises InvalidArgumentError if the first snapshot is not an ancestor of the last.
    """
    path: list[Snapshot] = []
    for snapshot in ancestors(view.metadata, view.snapshot):
        if snapshot.snapshot_id == from_snapshot_id:
            return ChangeRange(view, from_snapshot_id, tuple(path[::-1]))
        path.append(snapshot)
    if from_snapshot_id is None and not (path and had_parent(view.io, path[-1])):
        return ChangeRange(view, None, tuple(path[::-1]))
    if not path:
        raise SnapshotNotFoundError(
            f"the changes cannot begin after snapshot {from_snapshot_id}: at their end, the branch had no snapshot yet."
        )
    raise _unavailable(view, from_snapshot_id, path)


def change_range_of_times(
    view: SnapshotView, *, from_snapshot_id: int | None, from_ms: int | None, to_ms: int | None
) -> ChangeRange:
    """CF-1: the same range with a start time instead of `from_snapshot_id`, and with an end time."""
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise InvalidArgumentError(
            "the changes cannot end before they begin: from_timestamp is later than to_timestamp."
        )
    until = view if to_ms is None else view_until(view, to_ms)
    if from_ms is None:
        return change_range(until, from_snapshot_id)
    begin = newest_at(until, from_ms)
    return change_range(until, None if begin is None else begin.snapshot_id)


def parent_of(view: SnapshotView, snapshot: Snapshot) -> Snapshot | None:
    """CF-2: the parent of the snapshot; None for the first one of a line.

    Raises SnapshotNotFoundError if the parent has expired: without it every row would look like a new one.
    """
    parent_id = snapshot.parent_snapshot_id
    parent = None if parent_id is None else snapshot_by_id(view.metadata, parent_id)
    if parent is None and had_parent(view.io, snapshot):
        raise _expired(snapshot, f"the parent of snapshot {snapshot.snapshot_id}")
    return parent


def view_until(view: SnapshotView, moment_ms: int) -> SnapshotView:
    """CF-1: the view at the newest of its snapshot and ancestors that was committed at or before the given time.

    The view has no snapshot if all of them are younger. Raises SnapshotNotFoundError if older ones have expired.
    """
    snapshot = newest_at(view, moment_ms)
    if snapshot is None:
        oldest = list(ancestors(view.metadata, view.snapshot))[-1:]
        if oldest and had_parent(view.io, oldest[0]):
            raise _expired(oldest[0], "the snapshots that the range ends with")
        return replace(view, snapshot=None)
    return replace(view, snapshot=snapshot, schema=schema_of(view.metadata, snapshot))


def newest_at(view: SnapshotView, moment_ms: int) -> Snapshot | None:
    """The newest of the view's snapshot and its retained ancestors that was committed at or before the given time."""
    line = ancestors(view.metadata, view.snapshot)
    return next((snapshot for snapshot in line if snapshot.timestamp_ms <= moment_ms), None)


def _unavailable(
    view: SnapshotView, from_snapshot_id: int | None, line: list[Snapshot]
) -> SnapshotNotFoundError | InvalidArgumentError:
    """CF-2: the error for a range that is not available. `line` has the retained ancestors of its end, newest first."""
    if from_snapshot_id is None:
        return _expired(line[-1], "the first snapshots")
    first = snapshot_by_id(view.metadata, from_snapshot_id)
    is_cut = had_parent(view.io, line[-1])
    if first is None:
        return _expired(line[-1], f"snapshot {from_snapshot_id}")
    last = line[0].snapshot_id
    if any(snapshot.snapshot_id == last for snapshot in ancestors(view.metadata, first)):
        return InvalidArgumentError(
            f"the changes cannot begin after snapshot {from_snapshot_id} and end with {last}, because {last} is older."
        )
    if is_cut and (first.sequence_number or 0) <= (line[-1].sequence_number or 0):
        return _expired(line[-1], f"snapshots between {from_snapshot_id} and {last}")
    return InvalidArgumentError(
        f"snapshot {from_snapshot_id} is not an ancestor of {last}: it was rolled back, or it belongs to another "
        "branch. `history()` lists the snapshots of the branch. Rebuild what you derived from later changes from a "
        "full scan."
    )


def _expired(oldest: Snapshot, what: str) -> SnapshotNotFoundError:
    begin = oldest.snapshot_id
    return SnapshotNotFoundError(
        f"the changes are incomplete: {what} expired, or never belonged to this branch. The oldest snapshot after "
        f"which changes can begin is {begin}: scan(snapshot_id={begin}) returns its rows, and "
        f"changes(from_snapshot_id={begin}) returns all later changes."
    )
