"""Manifest entries, and manifest files as entries of a manifest list.

Source: Iceberg table specification, "Manifests" and "Manifest Lists".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tableformat.metadata.content_file import DataFile, DeleteFile


class EntryStatus(IntEnum):
    """Field 0 of a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """Field 517 of a manifest file: the kind of its entries."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file in a manifest, with its status and snapshot."""

    status: EntryStatus
    snapshot_id: int
    """The snapshot that added the file, or removed it if the status is DELETED."""
    file: DataFile | DeleteFile
    """The file, with inherited sequence numbers (DA-9)."""


@dataclass(frozen=True, slots=True)
class PartitionFieldSummary:
    """Field 507: bounds of one partition field over all files of a manifest."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """FM-26: bounds of one column over all live data files of a manifest."""

    field_id: int
    contains_null: bool
    """Whether the column may contain a null."""
    lower_bound: bytes | None
    """In Iceberg's single-value binary form; None if the bound of a file is unknown."""
    upper_bound: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """A manifest as an entry of a manifest list."""

    manifest_path: str
    manifest_length_bytes: int
    partition_spec_id: int
    content: ManifestContent
    sequence_number: int | None
    """Sequence number of the snapshot that added the manifest; None until the commit assigns it."""
    min_sequence_number: int | None
    """Smallest data sequence number of its live files; None while all of them inherit."""
    added_snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    columns: tuple[ColumnSummary, ...] | None = None
    """FM-26: summaries of key columns; None if another writer wrote the manifest or the list."""
    first_row_id: int | None = None
    """v3 only: first row id assigned to data files of this manifest that have none."""

    @property
    def has_live_files(self) -> bool:
        """Whether a reader opens the manifest. It does not if all entries are deleted."""
        return self.added_files_count + self.existing_files_count > 0
