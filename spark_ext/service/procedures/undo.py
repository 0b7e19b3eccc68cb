"""Procedures that undo a commit, or a part of it, and keep the later commits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from spark_ext.service.procedures.conditions import Part, exact_condition
from spark_ext.service.procedures.deletes import COMMIT, named_commit
from spark_ext.service.procedures.procedure import Parameter, Rows, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN
from tableformat.operations.staging.result import CommitResult
from tableformat.table import Table

_UNDONE = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        *not_null(pa.int64(), "added_rows_count"),
        ("deleted_rows_count", pa.int64()),
        *not_null(pa.bool_(), "already_applied"),
    ]
)


@procedure(
    Parameter("snapshot_id", "long", "The snapshot to revert.", is_required=True),
    DRY_RUN,
    *COMMIT,
    columns=_UNDONE,
)
def revert_snapshot(table: Table, *, snapshot_id: int, dry_run: bool = False, **commit: Any) -> Rows:
    """Undo one commit and keep the later ones."""
    return [_row(table.revert(snapshot_id, dry_run=dry_run, **named_commit(commit)))]


@procedure(
    Parameter("where", "string", "The rows to restore.", is_required=True, role="condition"),
    Parameter("snapshot_id", "long", "The snapshot with the earlier state."),
    Parameter("timestamp", "timestamp", "The time of the earlier state."),
    Parameter("tag", "string", "The tag of the earlier state; pass only one of the three."),
    DRY_RUN,
    *COMMIT,
    columns=_UNDONE,
)
def restore_rows(
    table: Table,
    *,
    where: Sequence[Part],
    snapshot_id: int | None = None,
    timestamp: datetime | None = None,
    tag: str | None = None,
    dry_run: bool = False,
    **commit: Any,
) -> Rows:
    """Restore the matching rows to their state in an earlier snapshot."""
    condition = exact_condition(where, table, "restore_rows")
    result = table.restore_rows(
        condition, snapshot_id=snapshot_id, as_of=timestamp, tag=tag, dry_run=dry_run, **named_commit(commit)
    )
    return [_row(result)]


def _row(result: CommitResult) -> dict[str, object]:
    return {
        "snapshot_id": result.snapshot_id,
        "added_rows_count": result.added_row_count,
        "deleted_rows_count": result.deleted_row_count,
        "already_applied": result.already_applied,
    }
