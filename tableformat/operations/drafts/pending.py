"""A draft that is ready for the commit, and its commit."""

from __future__ import annotations

from dataclasses import dataclass

from tableformat.commit.fate import CommitFate
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.transaction import TableCommit, commit_change
from tableformat.operations.drafts.staging import StagedChangeByVersion
from tableformat.operations.options import CommitOptions


@dataclass(frozen=True, slots=True)
class PendingCommit(TableCommit):
    """The commit of a draft."""

    change: StagedChangeByVersion


def commit_alone(pending: PendingCommit, options: CommitOptions, fate: CommitFate) -> CommitOutcome:
    """Commit the draft of one table."""
    return commit_change(
        pending.table,
        pending.change,
        ref=pending.ref,
        application_id=options.application_id,
        batch_id=options.batch_id,
        snapshot_properties=pending.snapshot_properties,
        is_staged=options.is_staged,
        fate=fate,
    )
