"""A draft that is ready for the commit, and its commit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from tableformat.commit.change import TableChange
from tableformat.commit.commit_status import CommitStatus
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.transaction import TableCommit, commit_change
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.result import CommitResult, committed_result, read_of
from tableformat.operations.staging.staged_change import StagedChange, StagedChangeByVersion


@dataclass(frozen=True, slots=True)
class PendingCommit(TableCommit):
    """The commit of a draft."""

    change: StagedChangeByVersion


def commit_alone(pending: PendingCommit, options: CommitOptions, status: CommitStatus) -> CommitOutcome:
    """Commit the draft of one table."""
    return commit_change(
        pending.table,
        pending.change,
        ref=pending.ref,
        application_id=options.application_id,
        batch_id=options.batch_id,
        snapshot_properties=pending.snapshot_properties,
        is_staged=options.is_staged,
        status=status,
    )


def result_of(
    staged: StagedChange,
    outcome: CommitOutcome,
    committed: TableChange | None,
    *,
    refused: pa.Table | None,
    started: float,
) -> CommitResult:
    """The result of a commit. `committed`: the committed change; None if nothing had to be committed."""
    return committed_result(
        outcome,
        committed,
        added_row_count=staged.new_row_count(committed.added_data_files) if committed else 0,
        deleted_row_count=staged.deleted_row_count if committed else 0,
        read_files=staged.read_files,
        started=started,
        refused=refused,
        stale_row_count=staged.order.stale_row_count,
    )


def dry_run_result_of(staged: StagedChange, unchanged: CommitResult, *, refused: pa.Table | None) -> CommitResult:
    """The numbers of rows that a commit would add and delete."""
    return replace(
        unchanged,
        added_row_count=staged.new_row_count(staged.added_data_files),
        deleted_row_count=staged.deleted_row_count,
        stale_row_count=staged.order.stale_row_count,
        refused=refused,
        dry_run=True,
        **read_of(staged.read_files),
    )
