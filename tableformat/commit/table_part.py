"""The part of a commit that changes one table, over all attempts. Most commits have one part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.committed_once import check_committed_once
from tableformat.commit.conflicts import check_conflicts
from tableformat.commit.coverage_change import coverage_is
from tableformat.commit.delete_scope import check_delete_columns, check_delete_scope, has_partition_scoped_deletes
from tableformat.commit.idempotence import AppliedBatch, BatchName, applied_batch, is_applied, remember_batch
from tableformat.commit.metadata_commit import branch_at
from tableformat.commit.multi_table_commit import TableRequest
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import PlannedChange
from tableformat.commit.publish_target import check_publish_target
from tableformat.commit.snapshot_producer import SnapshotProducer, next_timestamp_ms
from tableformat.commit.staged_there import check_staged_there
from tableformat.commit.unchanged import check_unchanged
from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.newest import newest_of
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RANGE_PARTITIONS, is_synced
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.reports.report import CommitReport
from tableformat.reports.reporting import is_reported, send
from tableformat.storage.storage import sync_files


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """The change of one attempt, without conflicts on the head."""

    table: Table
    """The table as loaded for the attempt."""
    base: SnapshotView
    change: TableChange

    @property
    def reads(self) -> bool:
        """Whether the change is valid only on this head, even if it has no files."""
        return self.change.kind is ChangeKind.SCAN_BASED


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """The request of an attempt for one table."""

    planned: PlannedPart
    snapshot: Snapshot | None
    """None if the change has no files."""
    request: TableRequest

    @property
    def is_sent(self) -> bool:
        """Whether the catalog must apply or check something."""
        return bool(self.request.updates) or self.planned.reads


class TablePart:
    """One table of a commit."""

    def __init__(
        self,
        handle: Table,
        planned: PlannedChange,
        *,
        ref: str,
        batch: BatchName | None,
        producer: SnapshotProducer,
        is_staged: bool,
        timestamp_ms: int | None = None,
    ) -> None:
        """`timestamp_ms` is the time of the snapshot in milliseconds since 1970, by default the time of the commit."""
        self.handle = handle
        self.subject = f"{'.'.join(handle.name())} (branch {ref})"
        self.producer = producer
        self._planned = planned
        self._ref = ref
        self._batch = batch
        self._is_staged = is_staged
        self._timestamp_ms = timestamp_ms

    def load(self) -> Table:
        """The current table of the catalog."""
        return newest_of(self.handle)

    def landed(self, table: Table, attempts: int) -> CommitOutcome | None:
        """The outcome, if an earlier attempt was applied although its answer was a refusal or missing."""
        snapshot = snapshot_by_id(table.metadata, self.producer.snapshot_id)
        if snapshot is None:
            return None
        return CommitOutcome(table, snapshot.snapshot_id, snapshot.sequence_number, attempts, True)

    def applied(self, table: Table) -> AppliedBatch | None:
        """CP-14: the record of the batch, if the table has it."""
        if self._batch is None:
            return None
        stored = applied_batch(table.metadata.properties, self._ref, self._batch.application_id)
        return stored if is_applied(stored, self._batch.batch_id) else None

    def plan(self, table: Table, attempt: int) -> PlannedPart:
        """The change on the head of the table, checked for conflicts."""
        head = head_view(table.metadata, table.io, self._ref)
        base = self._planned.base_on(head)
        change = self._planned.change_on(base, attempt)
        planned = PlannedPart(table, base, change)
        if change.unchanged is not None:
            check_unchanged(change.unchanged, base, self.subject)
        if change.is_empty:
            if planned.reads:
                # The result that no row matched, or that every key existed, also depends on the rows that were read.
                check_conflicts(change, base, self.subject)
            return planned
        if base is head:
            check_publish_target(change, table.metadata, self._ref)
        check_writable(change, table.metadata, self.subject)
        check_delete_scope(change, base, self.subject)
        check_delete_columns(change, base, self.subject)
        check_committed_once(change, base, self.subject)
        check_conflicts(change, base, self.subject)
        check_staged_there(change, table, self.subject)
        return planned

    def prepare(self, planned: PlannedPart, *, timestamp_ms: int | None) -> PreparedPart:
        """Write the manifests of the snapshot. `timestamp_ms` is its time, if several tables share one (CP-76)."""
        if planned.change.is_empty:
            return PreparedPart(planned, None, self._request_without_snapshot(planned))
        if timestamp_ms is None:
            timestamp_ms = self._timestamp_ms
        snapshot = self.producer.produce(planned.base, planned.change, timestamp_ms=timestamp_ms)
        return PreparedPart(planned, snapshot, self._request(planned, snapshot))

    def sync(self, prepared: PreparedPart) -> None:
        """If the table requires it, write the files of the snapshot to disk before the catalog references them."""
        table, change = prepared.planned.table, prepared.planned.change
        if prepared.snapshot is not None and is_synced(table.metadata.properties):
            # Data and delete files may come from other processes. At this point all of them are known, and none is
            # referenced yet.
            staged = (file.file_path for file in (*change.added_data_files, *change.added_delete_files))
            sync_files(table.io, (*staged, *self.producer.written_locations))

    def committed(self, prepared: PreparedPart, response: CommitTableResponse | None, attempts: int) -> CommitOutcome:
        """The outcome according to the answer of the catalog. Without an answer, the part was not in the request."""
        table, base = prepared.planned.table, prepared.planned.base
        after = table if response is None else _at(table, response.metadata, response.metadata_location)
        snapshot = prepared.snapshot
        if snapshot is None:
            return _unchanged(after, base, attempts)
        return CommitOutcome(
            after,
            snapshot.snapshot_id,
            snapshot.sequence_number,
            attempts,
            True,
            base=base,
            change=prepared.planned.change,
            metadata_bytes=self.producer.manifest_bytes_of(snapshot.manifest_list),
        )

    def unchanged(self, table: Table, attempts: int) -> CommitOutcome:
        """CP-17: the outcome of a part without files, for which no snapshot is made."""
        return _unchanged(table, head_view(table.metadata, table.io, self._ref), attempts)

    def already_applied(self, table: Table, stored: AppliedBatch, attempts: int) -> CommitOutcome:
        """The outcome of a batch that the table already has."""
        snapshot = snapshot_by_id(table.metadata, stored.snapshot_id)
        number = snapshot.sequence_number if snapshot is not None else None
        return CommitOutcome(table, stored.snapshot_id or None, number, attempts, False, already_applied=True)

    def unused_locations(self, outcome: CommitOutcome) -> tuple[str, ...]:
        """Metadata files of attempts that were not applied."""
        if not outcome.committed:
            return self.producer.written_locations
        snapshot = snapshot_by_id(outcome.metadata, self.producer.snapshot_id)
        # If the answer of the catalog lacks the snapshot that it has just applied, nothing is removed.
        return self.producer.locations_not_of(snapshot.manifest_list) if snapshot is not None else ()

    def report(self, outcome: CommitOutcome, duration_seconds: float) -> None:
        """Send the report of the snapshot, if the catalog has a reporter."""
        if not (outcome.committed and is_reported(self.handle.catalog)):
            return
        snapshot = snapshot_by_id(outcome.metadata, self.producer.snapshot_id)
        if snapshot is None or snapshot.summary is None:
            return  # It has expired in the meantime.
        report = CommitReport(
            table_name=identifier_text(self.handle.name()),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number or 0,
            operation=snapshot.summary.operation.value,
            duration_seconds=duration_seconds,
            attempts=outcome.attempts,
            summary=dict(snapshot.summary.additional_properties),
        )
        send(self.handle.catalog, report)

    def _request(self, planned: PlannedPart, snapshot: Snapshot) -> TableRequest:
        """CP-1: the request, which requires the table and the head of the branch that the snapshot was made for."""
        base, change = planned.base, planned.change
        updates: list[TableUpdate] = [AddSnapshotUpdate(snapshot=snapshot)]
        if not self._is_staged:
            updates.append(branch_at(base.metadata, self._ref, snapshot.snapshot_id))
        requirements = self._head_is(base)
        if has_partition_scoped_deletes(change, base):
            requirements.append(AssertDefaultSpecId.model_validate({"default-spec-id": base.metadata.default_spec_id}))
        if change.scoped_deletes or change.coverage is not None:
            # Range partitions refer to columns of the table (RP-2).
            schema_id = base.metadata.current_schema_id
            requirements.append(AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id}))
        if self._batch is not None:
            record = remember_batch(self._ref, self._batch, snapshot.snapshot_id, snapshot.timestamp_ms)
            updates.append(SetPropertiesUpdate(updates=record))
        if change.coverage is not None:
            updates.extend(change.coverage.updates)
        if change.coverage is not None or (change.added_data_files and RANGE_PARTITIONS in base.metadata.properties):
            requirements.extend(coverage_is(base.metadata.properties.get(RANGE_PARTITIONS), self.handle.catalog))
        more_updates, more_requirements = self._planned.beside(base, snapshot)
        return TableRequest(planned.table, (*requirements, *more_requirements), (*updates, *more_updates))

    def _request_without_snapshot(self, planned: PlannedPart) -> TableRequest:
        """CP-75, CP-78: the request of a part without a snapshot. The other tables of the commit change only if this
        one still has the head that was read. It also records the batch of the commit."""
        base = planned.base
        is_table, is_head = self._head_is(base)
        requirements = (is_table, is_head) if planned.reads else (is_table,)
        if self._batch is None:
            return TableRequest(planned.table, requirements, ())
        record = remember_batch(self._ref, self._batch, _OTHER_TABLES_ONLY, next_timestamp_ms(base))
        return TableRequest(planned.table, requirements, (SetPropertiesUpdate(updates=record),))

    def _head_is(self, base: SnapshotView) -> list[TableRequirement]:
        head = base.metadata.refs.get(self._ref)
        head_id = head.snapshot_id if head is not None else None
        return [
            AssertTableUUID(uuid=base.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": self._ref, "snapshot-id": head_id}),
        ]


_OTHER_TABLES_ONLY: Final = 0
"""The snapshot id in the record of a batch that changed only other tables. No snapshot has this id."""


def check_writable(change: TableChange, metadata: TableMetadata, subject: str) -> None:
    """Raise UnsupportedFeatureError if the format version of the table does not allow the change, or this library does
    not write it. Rows are not added if the table has range partitions that this library version does not know (RP-1).
    """
    version = metadata.format_version
    kinds = {delete.kind for delete in change.added_delete_files}
    if version not in (2, 3):
        raise UnsupportedFeatureError(
            f"{subject} has format version {version}, which is read-only here. Upgrade the table to version 2 to "
            "write to it."
        )
    if version == 2 and DeleteKind.DELETION_VECTOR in kinds:
        raise UnsupportedFeatureError(
            f"{subject} has format version 2, which has no deletion vectors; write position deletes."
        )
    if version == 3 and DeleteKind.POSITION in kinds:
        raise UnsupportedFeatureError(
            f"{subject} has format version 3, which does not accept new position delete files; write deletion vectors."
        )
    if change.added_data_files:
        range_partitions_of(metadata.properties, metadata.schema())


def _unchanged(table: Table, base: SnapshotView, attempts: int) -> CommitOutcome:
    """CP-17: without files, no snapshot is made."""
    if base.snapshot is None:
        return CommitOutcome(table, None, None, attempts, False, base=base)
    return CommitOutcome(table, base.snapshot.snapshot_id, base.snapshot.sequence_number, attempts, False, base=base)


def _at(table: Table, metadata: TableMetadata, metadata_location: str) -> Table:
    return Table(
        identifier=table.name(),
        metadata=metadata,
        metadata_location=metadata_location,
        io=table.io,
        catalog=table.catalog,
        config=table.config,
    )
