"""`CommitResult`: the result of an operation that writes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypedDict

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata

from tableformat.commit.change import TableChange
from tableformat.commit.outcome import CommitOutcome
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEstimate:
    """The maximum effect of a delete, according to partitions, column bounds and Bloom filters. No data file was
    opened."""

    data_files_count: int
    """Number of data files that may hold a row to delete."""
    data_bytes: int
    """Size of these files in bytes."""
    row_count_max: int
    """Number of rows in these files, which is the maximum number of deleted rows."""

    @classmethod
    def of(cls, files: Iterable[DataFile]) -> DeleteEstimate:
        found = tuple(files)
        return cls(
            data_files_count=len(found),
            data_bytes=sum(data.file_size_bytes for data in found),
            row_count_max=sum(data.record_count for data in found),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult(HtmlResult):
    """The result of one operation or one transaction, which commits at most one snapshot."""

    snapshot_id: int | None
    """Id of the snapshot that contains the change. If nothing had to be committed, the id of the current snapshot; None
    in an empty table."""
    sequence_number: int
    """Sequence number of that snapshot; 0 without one."""
    added_row_count: int = 0
    """Number of rows written to data files."""
    deleted_row_count: int | None = 0
    """Number of rows that the operation found and deleted. None if it wrote a blind delete, which reads no rows."""
    committed_at: datetime | None = None
    """When that snapshot was committed, in UTC; None without one."""
    read_row_count: int = 0
    """Number of rows in the data files that were searched, deleted rows included; 0 for a blind operation."""
    read_bytes: int = 0
    """Size of these files in bytes. Only the columns that the operation needs are read."""
    stale_row_count: int = 0
    """Number of rows and change events that were left out because the table has, or deleted, newer ones (`on_stale`).
    """
    added_data_files_count: int = 0
    added_delete_files_count: int = 0
    written_bytes: int = 0
    """Size of the written data files, delete files and manifests, without the manifest list and the table metadata (a
    few kilobytes)."""
    attempts: int = 0
    """Number of commit attempts; 0 if nothing had to be committed."""
    duration_seconds: float = 0.0
    already_applied: bool = False
    """Whether the batch of this application id was committed before, so that nothing was written."""
    dry_run: bool = False
    """Whether this is the result of a dry run. Nothing was changed. `added_row_count` and `deleted_row_count` are the
    numbers of rows that would be added and deleted."""
    estimate: DeleteEstimate | None = None
    """With `dry_run="metadata"`: the maximum effect of the operation."""
    refused: pa.Table | None = field(default=None, compare=False, repr=False)
    """With `on_refused="divert"`: the refused rows with `_row_index`, `_refused_column` and `_refused_reason`."""


def committed_result(
    outcome: CommitOutcome,
    change: TableChange | None,
    *,
    added_row_count: int,
    deleted_row_count: int | None,
    read_files: Sequence[DataFile],
    started: float,
    refused: pa.Table | None,
    stale_row_count: int,
) -> CommitResult:
    """The result of a draft. `change`: the committed change; None if nothing had to be committed."""
    files = (*change.added_data_files, *change.added_delete_files) if change else ()
    return CommitResult(
        snapshot_id=outcome.snapshot_id,
        sequence_number=outcome.sequence_number or 0,
        committed_at=_time_of(outcome.metadata, outcome.snapshot_id),
        **read_of(read_files),
        added_row_count=added_row_count,
        deleted_row_count=deleted_row_count,
        added_data_files_count=len(change.added_data_files) if change else 0,
        added_delete_files_count=len(change.added_delete_files) if change else 0,
        # Several deletion vectors may share a file, so each file is counted once.
        written_bytes=sum({file.file_path: file.file_size_bytes for file in files}.values()) + outcome.metadata_bytes,
        attempts=outcome.attempts if change else 0,
        duration_seconds=time.perf_counter() - started,
        already_applied=outcome.already_applied,
        refused=refused,
        stale_row_count=stale_row_count,
    )


def unchanged_result(view: SnapshotView, *, already_applied: bool, started: float) -> CommitResult:
    """The result of a call that had nothing to commit."""
    snapshot_id = view.snapshot.snapshot_id if view.snapshot else None
    return CommitResult(
        snapshot_id=snapshot_id,
        sequence_number=view.sequence_number,
        committed_at=_time_of(view.metadata, snapshot_id),
        already_applied=already_applied,
        duration_seconds=time.perf_counter() - started,
    )


class _Read(TypedDict):
    read_row_count: int
    read_bytes: int


def read_of(files: Iterable[DataFile]) -> _Read:
    """CP-88: the fields about what was read."""
    found = tuple(files)
    return {
        "read_row_count": sum(data.record_count for data in found),
        "read_bytes": sum(data.file_size_bytes for data in found),
    }


def _time_of(metadata: TableMetadata, snapshot_id: int | None) -> datetime | None:
    snapshot = None if snapshot_id is None else snapshot_by_id(metadata, snapshot_id)
    return None if snapshot is None else datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
