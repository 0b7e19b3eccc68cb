"""Expires old snapshots, and removes the files that nothing else needs (MT-1 to MT-4).

plan        which snapshots, refs and batch records are past retention (`snapshot_retention.py`)
commit      removes them from the table's metadata
remove      files that only they needed, after the commit and by the metadata that it left (`expired_files.py`)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat import properties as names
from tableformat.commit.metadata_commit import commit_metadata, refresh, refs_are_unchanged
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.maintenance.expiry.ages import older_than_ms
from tableformat.maintenance.expiry.expired_files import (
    FileRole,
    UnneededFile,
    remove_files,
    split_foreign,
    unneeded_files,
)
from tableformat.maintenance.expiry.expired_metadata import UnneededMetadata, unneeded_metadata
from tableformat.maintenance.expiry.flink_history import warn_where_flink_stops
from tableformat.maintenance.expiry.snapshot_retention import Expiry, RetentionRequest, plan_expiry
from tableformat.maintenance.publishing.publish_scope import tag_publish_bases
from tableformat.maintenance.running.progress import Progress
from tableformat.markup.results import HtmlResult
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.owned_files import OwnedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireResult(HtmlResult):
    """The result of expiry. With `dry_run`: the expected result."""

    expired_snapshots_count: int = 0
    expired_snapshot_ids: tuple[int, ...] = ()
    removed_refs: tuple[str, ...] = ()
    """Branches and tags that exceeded their maximum age."""
    removed_schema_ids: tuple[int, ...] = ()
    removed_spec_ids: tuple[int, ...] = ()
    """Schemas and partition specs that are no longer needed; only with `clean_expired_metadata`."""
    forgotten_batches_count: int = 0
    """Writers whose last batch was removed from the properties (MT-4)."""
    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    """Includes Puffin files with deletion vectors."""
    deleted_equality_delete_files_count: int = 0
    deleted_range_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    freed_bytes: int = 0
    undeleted_file_locations: tuple[str, ...] = ()
    """Unneeded files that the store did not remove. `remove_orphan_files` tries again."""
    foreign_file_locations: tuple[str, ...] = ()
    """Files that only expired snapshots name and that are outside the table's directories. They stay (MT-53)."""
    duration_seconds: float = 0.0
    dry_run: bool = False


def expire_snapshots(
    iceberg: IcebergTable,
    *,
    older_than: datetime | timedelta | str | int | None = None,
    retain_last: int | None = None,
    snapshot_ids: Collection[int] = (),
    dry_run: bool = False,
    clean_expired_files: bool = True,
    clean_expired_metadata: bool = False,
    progress: Progress | None = None,
) -> ExpireResult:
    """Expire snapshots like Iceberg's procedure of that name, and move the handle to the result.

    Raises the errors of `plan_expiry`, CommitStateUnknownError if the outcome of the commit is unknown (no file is
    removed then), UnsupportedFeatureError if the table forbids the removal of files.
    """
    started = time.perf_counter()
    request = _request(older_than, retain_last, snapshot_ids)
    refresh(iceberg)
    if clean_expired_files:
        _check_may_remove_files(iceberg.metadata)
    if not dry_run:
        tag_publish_bases(iceberg)
    planned = plan_expiry(iceberg.metadata, request)
    removes_files = clean_expired_files and bool(planned.snapshot_ids)
    # Read before the commit too: an unreadable manifest then raises an error before anything has changed.
    files = _files_of(iceberg, iceberg.metadata, _without(iceberg.metadata, planned)) if removes_files else ()
    owned = OwnedFiles.of(iceberg)
    warn_where_flink_stops(identifier_text(iceberg.name()), iceberg.metadata, planned.snapshot_ids)
    cleaned = _unneeded(iceberg, planned) if clean_expired_metadata else UnneededMetadata()
    if dry_run or (planned.is_empty and cleaned == UnneededMetadata()):
        files, foreign = split_foreign(owned, files)
        return _describe(planned, cleaned, files, (), foreign, started, dry_run=dry_run)
    expiry = planned

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        nonlocal expiry, cleaned
        still_there = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
        expiry = plan_expiry(table.metadata, replace(request, snapshot_ids=request.snapshot_ids & still_there))
        cleaned = _unneeded(table, expiry) if clean_expired_metadata else UnneededMetadata()
        requirements = refs_are_unchanged(table, but_gone=expiry.batch_refs)
        return (
            [*_updates(table.metadata, expiry), *cleaned.updates()],
            [*requirements, *cleaned.requirements(table.metadata)],
        )

    before, after = commit_metadata(iceberg, prepare)
    files = _files_of(iceberg, before, after) if removes_files else ()
    files, foreign = split_foreign(owned, files)
    left = remove_files(owned, files, progress)
    return _describe(expiry, cleaned, files, left, foreign, started, dry_run=False)


def _request(
    older_than: datetime | timedelta | str | int | None, retain_last: int | None, snapshot_ids: Collection[int]
) -> RetentionRequest:
    if retain_last is not None and (isinstance(retain_last, bool) or retain_last < 1):
        raise InvalidArgumentError(
            f"retain_last must be at least 1, not {retain_last!r}, because the head of a branch cannot expire."
        )
    now_ms = time.time_ns() // 1_000_000
    return RetentionRequest(
        now_ms=now_ms,
        older_than_ms=None if older_than is None else older_than_ms(older_than, now_ms),
        retain_last=retain_last,
        snapshot_ids=frozenset(snapshot_ids),
    )


def _check_may_remove_files(metadata: TableMetadata) -> None:
    if not names.may_remove_files(metadata.properties):
        raise UnsupportedFeatureError(
            f"the table property {names.GC_ENABLED} is false: other tables may use its files. Pass "
            "clean_expired_files=False to expire the snapshots and keep all files."
        )


def _updates(metadata: TableMetadata, expiry: Expiry) -> list[TableUpdate]:
    expired = set(expiry.snapshot_ids)
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate.model_validate({"ref-name": name}) for name in expiry.refs]
    # Statistics of a snapshot are removed with it. Partition statistics need a separate update.
    updates.extend(
        RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": file.snapshot_id})
        for file in metadata.partition_statistics
        if file.snapshot_id in expired
    )
    if expired:
        updates.append(RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(expiry.snapshot_ids)}))
    if forgotten := [*expiry.batch_properties, *expiry.retired_properties]:
        updates.append(RemovePropertiesUpdate(removals=forgotten))
    return updates


def _unneeded(iceberg: IcebergTable, expiry: Expiry) -> UnneededMetadata:
    return unneeded_metadata(iceberg.io, _without(iceberg.metadata, expiry))


def _without(metadata: TableMetadata, expiry: Expiry) -> TableMetadata:
    """The metadata after the commit, as far as files are concerned."""
    expired = set(expiry.snapshot_ids)
    return metadata.model_copy(
        update={
            name: [each for each in getattr(metadata, name) if each.snapshot_id not in expired]
            for name in ("snapshots", "statistics", "partition_statistics")
        }
    )


def _files_of(iceberg: IcebergTable, before: TableMetadata, after: TableMetadata) -> tuple[UnneededFile, ...]:
    kept = {snapshot.snapshot_id for snapshot in after.snapshots}
    expired = {snapshot.snapshot_id for snapshot in before.snapshots} - kept
    return unneeded_files(iceberg.io, before, after, expired)


def _describe(
    expiry: Expiry,
    cleaned: UnneededMetadata,
    files: Sequence[UnneededFile],
    left: Sequence[UnneededFile],
    foreign: tuple[str, ...],
    started: float,
    *,
    dry_run: bool,
) -> ExpireResult:
    undeleted = {file.location for file in left}
    removed = [file for file in files if file.location not in undeleted]
    counts = Counter(file.role for file in removed)
    return ExpireResult(
        expired_snapshots_count=len(expiry.snapshot_ids),
        expired_snapshot_ids=expiry.snapshot_ids,
        removed_refs=expiry.refs,
        removed_schema_ids=cleaned.schema_ids,
        removed_spec_ids=cleaned.spec_ids,
        forgotten_batches_count=len(expiry.batch_properties),
        deleted_data_files_count=counts[FileRole.DATA],
        deleted_position_delete_files_count=counts[FileRole.POSITION_DELETES],
        deleted_equality_delete_files_count=counts[FileRole.EQUALITY_DELETES],
        deleted_range_delete_files_count=counts[FileRole.RANGE_DELETES],
        deleted_manifest_files_count=counts[FileRole.MANIFEST],
        deleted_manifest_lists_count=counts[FileRole.MANIFEST_LIST],
        deleted_statistics_files_count=counts[FileRole.STATISTICS],
        freed_bytes=sum(file.size_bytes for file in removed),
        undeleted_file_locations=tuple(sorted(undeleted)),
        foreign_file_locations=foreign,
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )
