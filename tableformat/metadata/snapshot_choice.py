"""Finds the snapshot of a ref, an id or a timestamp.

Source: Iceberg table specification, "Point in Time Reads (Time Travel)" and "Snapshot References".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError, nearest_hint
from tableformat.metadata.snapshot_index import snapshot_by_id, snapshots_by_id
from tableformat.metadata.snapshot_view import SnapshotView


def head_view(metadata: TableMetadata, io: FileIO, branch: str = MAIN_BRANCH) -> SnapshotView:
    """The head of a branch, read with the table's current schema.

    `main` may have no snapshot yet. Raises SnapshotNotFoundError if another branch does not exist.
    """
    ref = metadata.refs.get(branch)
    if ref is None:
        if branch != MAIN_BRANCH:
            raise SnapshotNotFoundError(f"no branch {branch!r}.{nearest_hint(branch, _names(metadata, 'branch'))}")
        return SnapshotView(metadata, io, None, metadata.schema())
    if ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise SnapshotNotFoundError(f"{branch!r} is a tag, not a branch; read it with tag={branch!r}.")
    return SnapshotView(metadata, io, _snapshot(metadata, ref.snapshot_id), metadata.schema())


def view_of_tag(metadata: TableMetadata, io: FileIO, tag: str) -> SnapshotView:
    """The snapshot of a tag, with the schema of that snapshot."""
    ref = metadata.refs.get(tag)
    if ref is None or ref.snapshot_ref_type != SnapshotRefType.TAG:
        raise SnapshotNotFoundError(f"no tag {tag!r}.{nearest_hint(tag, _names(metadata, 'tag'))}")
    return view_at(metadata, io, ref.snapshot_id)


def view_at(metadata: TableMetadata, io: FileIO, snapshot_id: int) -> SnapshotView:
    """A snapshot by id, with the schema of that snapshot."""
    snapshot = _snapshot(metadata, snapshot_id)
    return SnapshotView(metadata, io, snapshot, schema_of(metadata, snapshot))


def view_as_of(metadata: TableMetadata, io: FileIO, moment: datetime | str | int, branch: str) -> SnapshotView:
    """PR-6: the snapshot that was current on the branch at a time, which may be later than the snapshot's commit time.

    `main` uses the snapshot log, which includes rollbacks. Other branches use their ancestors. A datetime or text
    without a time zone is UTC; a number is milliseconds since 1970-01-01 UTC.
    """
    moment_ms = to_epoch_ms(moment)
    if branch == MAIN_BRANCH:
        visible = [entry.snapshot_id for entry in metadata.snapshot_log if entry.timestamp_ms <= moment_ms][-1:]
    else:
        head = head_view(metadata, io, branch).snapshot
        visible = [s.snapshot_id for s in ancestors(metadata, head) if s.timestamp_ms <= moment_ms][:1]
    if not visible:
        raise SnapshotNotFoundError(
            f"branch {branch!r} had no snapshot at {_moment_text(moment_ms)}.{_first_hint(metadata, branch)}"
        )
    return view_at(metadata, io, visible[0])


def ancestors(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """The snapshot, its parent, and so on, up to the oldest retained one."""
    by_id = snapshots_by_id(metadata)
    while snapshot is not None:
        yield snapshot
        parent_id = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent_id) if parent_id is not None else None


def schema_of(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """The schema that was current when the snapshot was written."""
    if snapshot.schema_id is not None:
        for schema in metadata.schemas:
            if schema.schema_id == snapshot.schema_id:
                return schema
    return metadata.schema()


def to_epoch_ms(moment: datetime | str | int, name: str = "as_of") -> int:
    """Milliseconds since 1970-01-01 UTC. `name` is the argument for error messages."""
    if isinstance(moment, bool):
        raise InvalidArgumentError(f"{name} must be a datetime, ISO 8601 text or milliseconds, not a bool.")
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            age = " Pass an age as a timedelta, such as timedelta(days=7)." if name == "older_than" else ""
            raise InvalidArgumentError(
                f"{name} {moment!r} is not ISO 8601, such as '2026-01-31T12:00:00'.{age}"
            ) from error
    if not isinstance(moment, datetime):
        raise InvalidArgumentError(
            f"{name} must be a datetime, ISO 8601 text or milliseconds, not {type(moment).__name__}."
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _moment_text(epoch_ms: int) -> str:
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{epoch_ms} ms, which is outside the years of the calendar"


def _first_hint(metadata: TableMetadata, branch: str) -> str:
    """The time of the first known snapshot of `main`."""
    log = metadata.snapshot_log
    return (
        f" The first known snapshot is of {_moment_text(log[0].timestamp_ms)}." if log and branch == MAIN_BRANCH else ""
    )


def _snapshot(metadata: TableMetadata, snapshot_id: int | str) -> Snapshot:
    if isinstance(snapshot_id, str):
        raise InvalidArgumentError(f"snapshot_id must be a whole number, not the text {snapshot_id!r}.")
    snapshot = snapshot_by_id(metadata, snapshot_id)
    if snapshot is None:
        raise SnapshotNotFoundError(
            f"no snapshot {snapshot_id}; the table retains {len(metadata.snapshots)} other snapshots. `history()` "
            "lists them; an expired snapshot cannot be read."
        )
    return snapshot


def _names(metadata: TableMetadata, kind: str) -> list[str]:
    return [name for name, ref in metadata.refs.items() if ref.snapshot_ref_type == kind]


def at_most_one(**choices: Any) -> None:
    """Raise InvalidArgumentError if more than one of the named arguments was given."""
    given = [name for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise InvalidArgumentError(f"pass only one of {', '.join(given)}: each chooses a snapshot.")


def exactly_one(**choices: Any) -> None:
    """Raise InvalidArgumentError if none or more than one of the named arguments was given."""
    at_most_one(**choices)
    if all(value is None for value in choices.values()):
        raise InvalidArgumentError(f"pass one of {', '.join(choices)} to choose the snapshot.")
