"""`CommitResult`: the result of a writing verb."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa

from tableformat.commit.change import TableChange
from tableformat.commit.transaction import CommitOutcome
from tableformat.markup.results import HtmlResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult(HtmlResult):
    """One verb, or one transaction: at most one snapshot."""

    snapshot_id: int | None
    """The snapshot that holds the change; the one found in place when nothing had to be committed; None in an empty
    table."""
    sequence_number: int
    """Sequence number of that snapshot; 0 without one."""
    added_row_count: int = 0
    """Rows written into data files."""
    deleted_row_count: int | None = 0
    """Rows deleted, as far as the verb read them; None when a blind delete was written, which reads nothing."""
    added_data_files_count: int = 0
    added_delete_files_count: int = 0
    written_bytes: int = 0
    """Data files, delete files and manifests; manifest list and table metadata, a few kilobytes, come on top."""
    attempts: int = 0
    """Commit attempts; 0 when there was nothing to commit."""
    duration_seconds: float = 0.0
    already_applied: bool = False
    """The batch of this application id was committed before; nothing was written."""
    dry_run: bool = False
    """Nothing was changed; `deleted_row_count` is what would be deleted."""
    refused: pa.Table | None = field(default=None, compare=False, repr=False)
    """With `on_refused="divert"`: the refused rows with `_row_index`, `_refused_column` and `_refused_reason`."""


def committed_result(
    outcome: CommitOutcome,
    change: TableChange | None,
    *,
    added_row_count: int,
    deleted_row_count: int | None,
    started: float,
    refused: pa.Table | None,
) -> CommitResult:
    """The result of a draft; `change`: as it was committed, None where nothing had to be."""
    files = (*change.added_data_files, *change.added_delete_files) if change else ()
    return CommitResult(
        snapshot_id=outcome.snapshot_id,
        sequence_number=outcome.sequence_number or 0,
        added_row_count=added_row_count,
        deleted_row_count=deleted_row_count,
        added_data_files_count=len(change.added_data_files) if change else 0,
        added_delete_files_count=len(change.added_delete_files) if change else 0,
        # Deletion vectors share files, so a file counts once.
        written_bytes=sum({file.file_path: file.file_size_bytes for file in files}.values()) + outcome.metadata_bytes,
        attempts=outcome.attempts if change else 0,
        duration_seconds=time.perf_counter() - started,
        already_applied=outcome.already_applied,
        refused=refused,
    )
