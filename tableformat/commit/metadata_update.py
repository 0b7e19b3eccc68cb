"""Applies the updates of a commit to table metadata, for catalogs that keep metadata files themselves.

PyIceberg's `update_table_metadata` ends with a deep copy of all snapshots, which costs more than the rest of a small
commit. It also cannot upgrade to format version 3. The updates themselves are PyIceberg's.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1, TableMetadataV3
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    RemovePartitionSpecsUpdate,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
    _update_table_metadata_log,
)

from tableformat.commit.assigned_ids import with_assigned_ids
from tableformat.errors import SnapshotNotFoundError
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import last_sequence_number
from tableformat.metadata.staged_conversions import source_of


def apply_updates(base: TableMetadata, base_location: str, updates: Sequence[TableUpdate]) -> TableMetadata:
    """The metadata with the updates applied and `base_location` logged; `base` itself if nothing changes.

    Metadata models are frozen, so unchanged parts are shared instead of copied. Raises CommitFailedException if a new
    snapshot was made for an older state of the table.
    """
    refuse_stale_snapshots(base, updates)
    updates = with_assigned_ids(base, updates)
    context = _TableMetadataUpdateContext()
    metadata = base
    for update in updates:
        if is_upgrade_to_v3(update):
            if metadata.format_version < 3:
                metadata = upgraded_to_v3(metadata)
                context.add_update(update)
        else:
            _refuse_unknown_snapshot(metadata, update)
            before, metadata = metadata, _applied(update, metadata, context)
            if isinstance(update, RemoveSnapshotsUpdate):
                metadata = _with_parents_of(before, metadata)
    if not context.has_changes():
        return base
    metadata = _update_table_metadata_log(metadata, base_location, base.last_updated_ms)
    if metadata.last_updated_ms == base.last_updated_ms:
        metadata = metadata.model_copy(update={"last_updated_ms": _now_ms()})
    metadata.spec().check_compatible(metadata.schema())
    metadata.sort_order().check_compatible(metadata.schema())
    return with_fields_of_version_1(metadata)


def with_fields_of_version_1(metadata: TableMetadata) -> TableMetadata:
    """The metadata; in version 1 with the current schema and the default spec in the fields that readers of version 1
    have for them. PyIceberg 0.12 leaves these fields as they are."""
    if not isinstance(metadata, TableMetadataV1):
        return metadata
    spec = [field.model_dump() for field in metadata.spec().fields]
    return metadata.model_copy(update={"schema_": metadata.schema(), "partition_spec": spec})


def _applied(update: TableUpdate, metadata: TableMetadata, context: _TableMetadataUpdateContext) -> TableMetadata:
    """Apply an update like PyIceberg. The two updates that each commit has are applied here, because PyIceberg searches
    all snapshots for each of them."""
    match update:
        case AddSnapshotUpdate() if metadata.format_version > 1:
            changed = _with_snapshot(metadata, update.snapshot)
        case SetSnapshotRefUpdate():
            changed = _with_ref(metadata, update, context.is_added_snapshot(update.snapshot_id))
        case _:
            known = _of_what_is_there(update, metadata)
            return metadata if known is None else _apply_table_update(known, metadata, context)
    if changed is not metadata:
        context.add_update(update)
    return changed


def _of_what_is_there(update: TableUpdate, metadata: TableMetadata) -> TableUpdate | None:
    """CP-92: an update that removes something, without what the table does not have: another writer may have removed
    it. None if nothing is left."""
    match update:
        case RemovePropertiesUpdate():
            names = [name for name in update.removals if name in metadata.properties]
            return update.model_copy(update={"removals": names}) if names else None
        case RemoveSchemasUpdate():
            ids = [each.schema_id for each in metadata.schemas if each.schema_id in update.schema_ids]
            return update.model_copy(update={"schema_ids": ids}) if ids else None
        case RemovePartitionSpecsUpdate():
            ids = [each.spec_id for each in metadata.partition_specs if each.spec_id in update.spec_ids]
            return update.model_copy(update={"spec_ids": ids}) if ids else None
        case RemoveStatisticsUpdate():
            return update if any(each.snapshot_id == update.snapshot_id for each in metadata.statistics) else None
        case RemovePartitionStatisticsUpdate():
            files = metadata.partition_statistics
            return update if any(each.snapshot_id == update.snapshot_id for each in files) else None
        case _:
            return update


def _with_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    """Add a snapshot, whose sequence number and row ids are the next ones (`refuse_stale_snapshots`)."""
    if snapshot_by_id(metadata, snapshot.snapshot_id) is not None:
        raise CommitFailedException(f"the table already has a snapshot {snapshot.snapshot_id}")
    changes: dict[str, Any] = {
        "snapshots": [*metadata.snapshots, snapshot],
        # A staged conversion has the time of its source (SV-3).
        "last_updated_ms": max(metadata.last_updated_ms, snapshot.timestamp_ms),
        "last_sequence_number": max(last_sequence_number(metadata), snapshot.sequence_number or 0),
    }
    if isinstance(metadata, TableMetadataV3):
        changes["next_row_id"] = (metadata.next_row_id or 0) + (snapshot.added_rows or 0)
    return metadata.model_copy(update=changes)


def _with_ref(metadata: TableMetadata, update: SetSnapshotRefUpdate, is_of_this_commit: bool) -> TableMetadata:
    """Point a ref to a snapshot. The log entry has the time of the snapshot if this commit adds it or if it is the
    conversion of the head (SV-3), and the current time otherwise."""
    stated = update.model_dump(by_alias=True, exclude={"action", "ref_name"})
    ref = SnapshotRef.model_validate(stated)
    if metadata.refs.get(update.ref_name) == ref:
        return metadata
    changes: dict[str, Any] = {"refs": {**metadata.refs, update.ref_name: ref}}
    snapshot = snapshot_by_id(metadata, update.snapshot_id)
    added = snapshot if is_of_this_commit else None
    if added is not None:
        changes["last_updated_ms"] = max(metadata.last_updated_ms, added.timestamp_ms)
    if update.ref_name == MAIN_BRANCH:
        is_conversion = snapshot is not None and source_of(snapshot) == metadata.current_snapshot_id
        has_own_time = snapshot is not None and (added is not None or is_conversion)
        moment = snapshot.timestamp_ms if snapshot is not None and has_own_time else _now_ms()
        entry = SnapshotLogEntry.model_validate({"snapshot-id": update.snapshot_id, "timestamp-ms": moment})
        changes |= {
            "current_snapshot_id": update.snapshot_id,
            "last_updated_ms": max(metadata.last_updated_ms, moment),
            "snapshot_log": [*metadata.snapshot_log, entry],
        }
    return metadata.model_copy(update=changes)


def _refuse_unknown_snapshot(metadata: TableMetadata, update: TableUpdate) -> None:
    """Raise SnapshotNotFoundError if a ref is set to a snapshot that has expired since the table was loaded."""
    if isinstance(update, SetSnapshotRefUpdate) and snapshot_by_id(metadata, update.snapshot_id) is None:
        raise SnapshotNotFoundError(
            f"{update.ref_name!r} cannot be set to snapshot {update.snapshot_id}: the table does not have this "
            "snapshot, or it has expired. Nothing was changed. refresh() moves the handle to the newest state; "
            "history() lists its snapshots."
        )


def _with_parents_of(before: TableMetadata, after: TableMetadata) -> TableMetadata:
    """Restore the parent ids of the snapshots. PyIceberg clears the parent of a snapshot when the parent expires, as if
    the table had begun with it. A reader that follows a table snapshot by snapshot must see that history is missing."""
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in before.snapshots}
    snapshots = [
        snapshot.model_copy(update={"parent_snapshot_id": parents[snapshot.snapshot_id]})
        for snapshot in after.snapshots
    ]
    return after.model_copy(update={"snapshots": snapshots})


def refuse_stale_snapshots(base: TableMetadata, updates: Sequence[TableUpdate]) -> None:
    """CP-2, CP-19: refuse a snapshot that must be made again. Another commit took its sequence number (in v3, its row
    id) on any ref, or it was made before an upgrade. The number of a snapshot without a parent may be taken: no file of
    an earlier snapshot is in it. Iceberg's clients replace tables so."""
    if isinstance(base, TableMetadataV1):
        return
    for update in updates:
        if not isinstance(update, AddSnapshotUpdate):
            continue
        snapshot = update.snapshot
        is_taken = snapshot.sequence_number is not None and snapshot.sequence_number <= base.last_sequence_number
        if is_taken and snapshot.parent_snapshot_id is not None:
            raise CommitFailedException(
                f"sequence number {snapshot.sequence_number} is taken; the table is at {base.last_sequence_number}"
            )
        if isinstance(base, TableMetadataV3) and snapshot.first_row_id is None:
            raise CommitFailedException("the table was upgraded to format version 3, whose snapshots assign row ids")
        if isinstance(base, TableMetadataV3) and (snapshot.first_row_id or 0) < (base.next_row_id or 0):
            raise CommitFailedException(f"row id {snapshot.first_row_id} is taken; the table is at {base.next_row_id}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def is_upgrade_to_v3(update: TableUpdate) -> bool:
    """Whether the update is the one that PyIceberg 0.12 cannot apply."""
    return isinstance(update, UpgradeFormatVersionUpdate) and update.format_version == 3


def upgraded_to_v3(metadata: TableMetadata) -> TableMetadataV3:
    """The metadata in version 3, which adds row ids. The next commit assigns the ids of existing rows."""
    fields = {name: value for name, value in dict(metadata).items() if name in TableMetadataV3.model_fields}
    return TableMetadataV3.model_construct(**{**fields, "format_version": 3, "next_row_id": 0})
