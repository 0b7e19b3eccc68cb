"""Procedures that move branches between snapshots. They write no files with rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from spark_ext.service.procedures.procedure import Parameter, Rows, not_null, procedure
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.operations.history.cherrypick import cherrypick, staged_snapshot
from tableformat.table import Table

_MOVED = pa.schema(
    [pa.field("previous_snapshot_id", pa.int64()), pa.field("current_snapshot_id", pa.int64(), nullable=False)]
)
_SNAPSHOT_ID = Parameter("snapshot_id", "long", "The snapshot to roll back to.", is_required=True)


@procedure(_SNAPSHOT_ID, columns=_MOVED)
def rollback_to_snapshot(table: Table, *, snapshot_id: int) -> Rows:
    """Reset the branch to an ancestor of its snapshot."""
    return [_moved(table, lambda: table.rollback(snapshot_id=snapshot_id))]


@procedure(Parameter("timestamp", "timestamp", "The time to roll back to.", is_required=True), columns=_MOVED)
def rollback_to_timestamp(table: Table, *, timestamp: datetime) -> Rows:
    """Reset the branch to the snapshot that was its head at a given time."""
    return [_moved(table, lambda: table.rollback(as_of=timestamp))]


@procedure(
    Parameter("snapshot_id", "long", "The snapshot, which does not have to be an ancestor."),
    Parameter("ref", "string", "The branch or tag whose snapshot to use; pass this or snapshot_id."),
    columns=_MOVED,
)
def set_current_snapshot(table: Table, *, snapshot_id: int | None = None, ref: str | None = None) -> Rows:
    """Set the branch to any snapshot of the table."""
    if (snapshot_id is None) == (ref is None):
        raise InvalidArgumentError("set_current_snapshot: pass either snapshot_id or ref.")
    return [_moved(table, lambda: table.set_current_snapshot(snapshot_id, ref_name=ref))]


@procedure(
    Parameter("branch", "string", "The branch to move.", is_required=True),
    Parameter("to", "string", "The branch or tag with the snapshot to move forward to.", is_required=True),
    columns=pa.schema(
        [
            *not_null(pa.string(), "branch_updated"),
            pa.field("previous_ref", pa.int64()),
            *not_null(pa.int64(), "updated_ref"),
        ]
    ),
    on_branch=False,
)
def fast_forward(table: Table, *, branch: str, to: str) -> Rows:
    """Move a branch forward to the snapshot of another branch or tag, if that is a descendant."""
    before = table.metadata.refs.get(branch)
    table.fast_forward(branch, to)
    after = table.metadata.refs[branch].snapshot_id
    return [{"branch_updated": branch, "previous_ref": before.snapshot_id if before else None, "updated_ref": after}]


@procedure(
    Parameter("snapshot_id", "long", "The snapshot to begin with; the head of the branch by default."),
    columns=pa.schema([("snapshot_id", pa.int64()), ("timestamp", pa.int64())]),
    changes_table=False,
)
def ancestors_of(table: Table, *, snapshot_id: int | None = None) -> Iterator[dict[str, Any]]:
    """The snapshot and its ancestors, newest first, each with its time in milliseconds since 1970."""
    for snapshot in ancestors(table.metadata, table.at(snapshot_id=snapshot_id).snapshot):
        yield {"snapshot_id": snapshot.snapshot_id, "timestamp": snapshot.timestamp_ms}


_PUBLISHED = pa.schema(not_null(pa.int64(), "source_snapshot_id", "current_snapshot_id"))


@procedure(
    Parameter("snapshot_id", "long", "The snapshot, which is outside the history of the branch.", is_required=True),
    columns=_PUBLISHED,
)
def cherrypick_snapshot(table: Table, *, snapshot_id: int) -> Rows:
    """Apply the changes of a snapshot that is not in the branch's history to the branch."""
    current = cherrypick(table.iceberg, table.branch, snapshot_id)
    return [{"source_snapshot_id": snapshot_id, "current_snapshot_id": current}]


@procedure(
    Parameter("wap_id", "string", "The spark.wap.id that the snapshot was staged with.", is_required=True),
    columns=_PUBLISHED,
)
def publish_changes(table: Table, *, wap_id: str) -> Rows:
    """Apply the changes of the snapshot that was staged with a WAP id to the branch."""
    snapshot_id = staged_snapshot(table.iceberg, wap_id)
    current = cherrypick(table.iceberg, table.branch, snapshot_id)
    return [{"source_snapshot_id": snapshot_id, "current_snapshot_id": current}]


def _moved(table: Table, move: Callable[[], object]) -> dict[str, int | None]:
    before = table.snapshot_id
    move()
    return {"previous_snapshot_id": before, "current_snapshot_id": table.snapshot_id}
