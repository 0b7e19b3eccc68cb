"""Commits a change: attempt, conflict check, catalog call, retry, and recovery when no answer comes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from tableformat.commit.cancellation import check_cancelled
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.committed_once import check_committed_once
from tableformat.commit.conflicts import check_conflicts
from tableformat.commit.coverage_change import coverage_is
from tableformat.commit.delete_scope import check_delete_columns, check_delete_scope, has_partition_scoped_deletes
from tableformat.commit.fate import CommitFate, Sent
from tableformat.commit.idempotence import BatchId, BatchName, applied_batch, batch_name, is_applied, remember_batch
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.planned_change import FixedChange, PlannedChange
from tableformat.commit.publish_target import check_publish_target
from tableformat.commit.retry import retry_lost_races, status_check_waits_seconds
from tableformat.commit.snapshot_producer import SnapshotProducer
from tableformat.commit.snapshot_summary import check_snapshot_properties
from tableformat.commit.staged_there import check_staged_there
from tableformat.commit.unchanged import check_unchanged
from tableformat.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    SnapshotNotFoundError,
    StorageError,
    TableFormatError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.newest import newest_of
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView, last_sequence_number
from tableformat.properties import RANGE_PARTITIONS, is_synced
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.reports.report import CommitReport
from tableformat.reports.reporting import is_reported, send
from tableformat.storage.storage import sync_files

logger = logging.getLogger(__name__)

_REFUSALS = (BadRequestError, UnauthorizedError, ForbiddenError, AuthorizationExpiredError)
"""Answers of a catalog that applied nothing and will not."""


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """What a commit did to the table."""

    table: Table
    """The table as it is after the commit; the handle that was passed in stays as it was."""
    snapshot_id: int | None
    """The snapshot of the change; without a change, the head of the branch (None when it has none)."""
    sequence_number: int | None
    """Of that snapshot; None when there is none, or when a batch was applied earlier and its snapshot has expired."""
    attempts: int
    committed: bool
    """False when there was nothing to do or the batch had been applied before."""
    already_applied: bool = False
    base: SnapshotView | None = None
    """The head that the change was committed on."""
    change: TableChange | None = None
    """The change as it was committed, which may have been made anew for that head."""
    metadata_bytes: int = 0
    """Size of the manifests that the snapshot added, rewritten and merged ones included."""

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @property
    def metadata_location(self) -> str:
        return self.table.metadata_location

    def move(self, handle: Table) -> None:
        """Move a handle of the same table to what the commit left."""
        handle.metadata = self.table.metadata
        handle.metadata_location = self.table.metadata_location


def commit_change(
    table: Table,
    change: TableChange | PlannedChange,
    *,
    ref: str = MAIN_BRANCH,
    application_id: str | None = None,
    batch_id: BatchId | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    is_staged: bool = False,
    fate: CommitFate | None = None,
) -> CommitOutcome:
    """Commit the change to a branch as one snapshot, or raise and leave the table as it was.

    A planned change is asked at every attempt, with the head it will meet. A change without files commits nothing.
    Metadata files of a commit that failed are removed; staged files belong to the caller, who removes them on any error
    after which `fate` knows that the table does not name them (`removing_on_failure`). SP-23: `is_staged` leaves the
    branch where it is; the snapshot is in the table for whoever publishes it.

    Raises CommitConflictError, AlreadyCommittedError, CommitStateUnknownError, TableNotFoundError,
    SnapshotNotFoundError (no such branch), UnsupportedFeatureError, InvalidArgumentError.
    """
    properties = dict(snapshot_properties or {})
    check_snapshot_properties(properties)
    commit = _Commit(
        handle=table,
        planned=FixedChange(change) if isinstance(change, TableChange) else change,
        ref=ref,
        batch=batch_name(application_id, batch_id),
        producer=SnapshotProducer(table.metadata, properties),
        is_staged=is_staged,
        fate=fate or CommitFate(),
    )
    return commit.run()


class _Commit:
    """One commit over all its attempts. Its state, how far the catalog call got, decides what may be removed."""

    def __init__(
        self,
        *,
        handle: Table,
        planned: PlannedChange,
        ref: str,
        batch: BatchName | None,
        producer: SnapshotProducer,
        is_staged: bool,
        fate: CommitFate,
    ) -> None:
        self._handle = handle
        self._planned = planned
        self._ref = ref
        self._batch = batch
        self._producer = producer
        self._is_staged = is_staged
        self._subject = f"{'.'.join(handle.name())} (branch {ref})"
        self._attempts = 0
        self._fate = fate
        fate.subject, fate.snapshot_id = self._subject, producer.snapshot_id

    def run(self) -> CommitOutcome:
        """CP-13, CP-18, CP-51: files of a commit that did not happen go, files of one that may have happened stay.

        An interrupt can arrive anywhere, so how far the request got decides, and not the kind of error.
        """
        started = time.perf_counter()
        try:
            outcome = self._run_attempts()
            remove_leftovers(self._handle.io, self._unused_locations(outcome))
            self._report(outcome, time.perf_counter() - started)
        except CommitStateUnknownError:
            raise
        except BaseException as error:
            if not self._fate.may_be_named:
                remove_leftovers(self._handle.io, self._producer.written_locations)
                raise
            raise self._fate.told(error) from error
        return outcome

    def _report(self, outcome: CommitOutcome, duration_seconds: float) -> None:
        if not (outcome.committed and is_reported(self._handle.catalog)):
            return
        snapshot = snapshot_by_id(outcome.metadata, self._producer.snapshot_id)
        if snapshot is None or snapshot.summary is None:
            return  # Others have expired it since.
        report = CommitReport(
            table_name=identifier_text(self._handle.name()),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number or 0,
            operation=snapshot.summary.operation.value,
            duration_seconds=duration_seconds,
            attempts=outcome.attempts,
            summary=dict(snapshot.summary.additional_properties),
        )
        send(self._handle.catalog, report)

    def _unused_locations(self, outcome: CommitOutcome) -> tuple[str, ...]:
        """Metadata files of attempts that came to nothing."""
        if not outcome.committed:
            return self._producer.written_locations
        snapshot = snapshot_by_id(outcome.metadata, self._producer.snapshot_id)
        # A catalog whose answer lacks the snapshot it has just applied is no ground to remove anything.
        return self._producer.locations_not_of(snapshot.manifest_list) if snapshot is not None else ()

    def _run_attempts(self) -> CommitOutcome:
        try:
            return retry_lost_races(self._attempt, self._handle)
        except CommitFailedException as error:
            # The catalog may have refused the repetition of a request that it had applied.
            landed = self._landed(self._load())
            if landed is not None:
                return landed
            raise CommitConflictError(
                f"commit to {self._subject} lost the race against other writers {self._attempts} times: {error}. "
                "Nothing was changed. Run the operation again, or raise commit.retry.num-retries."
            ) from error

    def _attempt(self) -> CommitOutcome:
        self._attempts += 1
        # Loaded anew even the first time: the record of applied batches and the last sequence number must be the
        # catalog's own.
        table = self._load()
        landed = self._landed(table)
        if landed is not None:
            return landed
        head = head_view(table.metadata, table.io, self._ref)
        base = self._planned.base_on(head)
        if self._batch is not None:
            stored = applied_batch(table.metadata.properties, self._ref, self._batch.application_id)
            if stored is not None and is_applied(stored, self._batch.batch_id):
                return self._already_applied(table, stored.snapshot_id)
        change = self._planned.change_on(base, self._attempts)
        if change.unchanged is not None:
            check_unchanged(change.unchanged, base, self._subject)
        if change.is_empty:
            if change.kind is ChangeKind.SCAN_BASED:
                # That nothing matched, or that every key was there, is a decision on what was read like any other.
                check_conflicts(change, base, self._subject)
            return self._nothing_to_do(table, base)
        if base is head:
            check_publish_target(change, table.metadata, self._ref)
        check_writable(change, table.metadata, self._subject)
        check_delete_scope(change, base, self._subject)
        check_delete_columns(change, base, self._subject)
        check_committed_once(change, base, self._subject)
        check_conflicts(change, base, self._subject)
        check_staged_there(change, table, self._subject)
        snapshot = self._producer.produce(base, change)
        return self._send(table, base, change, snapshot)

    def _send(
        self,
        table: Table,
        base: SnapshotView,
        change: TableChange,
        snapshot: Snapshot,
    ) -> CommitOutcome:
        updates, requirements = self._updates_and_requirements(base, change, snapshot)
        if is_synced(table.metadata.properties):
            # Data and delete files may come from other processes; here is where all are known and none is named yet.
            staged = (file.file_path for file in (*change.added_data_files, *change.added_delete_files))
            sync_files(table.io, (*staged, *self._producer.written_locations))
        check_cancelled()
        self._fate.sent = Sent.IN_FLIGHT
        try:
            response = table.catalog.commit_table(table, requirements, updates)
        except CommitFailedException:
            self._fate.sent = Sent.NO
            raise
        except SnapshotNotFoundError as error:
            # CP-62: a snapshot expired since the head was read; the next attempt names it.
            self._fate.sent = Sent.NO
            raise CommitFailedException(str(error)) from error
        except StorageError as error:
            if not error.nothing_changed:
                return self._after_no_answer(error, snapshot)
            self._fate.sent = Sent.NO
            raise
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the commit may have happened
            return self._after_no_answer(error, snapshot)
        self._fate.sent = Sent.APPLIED
        after = _at(table, response.metadata, response.metadata_location)
        return CommitOutcome(
            after,
            snapshot.snapshot_id,
            snapshot.sequence_number,
            self._attempts,
            True,
            base=base,
            change=change,
            metadata_bytes=self._producer.manifest_bytes_of(snapshot.manifest_list),
        )

    def _updates_and_requirements(
        self, base: SnapshotView, change: TableChange, snapshot: Snapshot
    ) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
        """CP-1: the table and the head of the branch are the ones that the snapshot was made for."""
        updates: list[TableUpdate] = [AddSnapshotUpdate(snapshot=snapshot)]
        if not self._is_staged:
            updates.append(_move_ref(base, self._ref, snapshot))
        head = base.metadata.refs.get(self._ref)
        head_id = head.snapshot_id if head is not None else None
        requirements: list[TableRequirement] = [
            AssertTableUUID(uuid=base.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": self._ref, "snapshot-id": head_id}),
        ]
        if has_partition_scoped_deletes(change, base):
            requirements.append(AssertDefaultSpecId.model_validate({"default-spec-id": base.metadata.default_spec_id}))
        if change.scoped_deletes or change.coverage is not None:
            # What exists is said of columns that the table has (RP-2).
            schema_id = base.metadata.current_schema_id
            requirements.append(AssertCurrentSchemaId.model_validate({"current-schema-id": schema_id}))
        if self._batch is not None:
            record = remember_batch(self._ref, self._batch, snapshot.snapshot_id, snapshot.timestamp_ms)
            updates.append(SetPropertiesUpdate(updates=record))
        if change.coverage is not None:
            updates.extend(change.coverage.updates)
        if change.coverage is not None or (change.added_data_files and RANGE_PARTITIONS in base.metadata.properties):
            requirements.extend(coverage_is(base.metadata.properties.get(RANGE_PARTITIONS), self._handle.catalog))
        more_updates, more_requirements = self._planned.beside(base, snapshot)
        updates.extend(more_updates)
        requirements.extend(more_requirements)
        return tuple(updates), tuple(requirements)

    def _after_no_answer(self, error: Exception, snapshot: Snapshot) -> CommitOutcome:
        """CP-13: look whether the commit happened. Only a clear refusal makes it a failure whose files may go."""
        refused = isinstance(error, (*_REFUSALS, NoSuchTableError))
        waits = (0.0,) if refused else status_check_waits_seconds(self._handle.metadata.properties)
        seen: Table | None = None
        for wait_seconds in waits:
            time.sleep(wait_seconds)
            try:
                seen = self._load()
            except TableNotFoundError:
                if refused:
                    self._fate.sent = Sent.NO
                    raise
                break
            except Exception as unseen:
                # A service that is away has said so in one line; what nobody foresaw is told with its traceback.
                told = None if isinstance(unseen, StorageError) else unseen
                logger.warning("cannot see whether the commit to %s happened: %s", self._subject, unseen, exc_info=told)
                continue
            landed = self._landed(seen)
            if landed is not None:
                return landed
            if last_sequence_number(seen.metadata) >= (snapshot.sequence_number or 0):
                # Another ref took the sequence number; some catalogs say so with a plain error. Should the request be
                # applied after all, the snapshot id and the asserted head keep the repetition from being a second
                # commit.
                raise CommitFailedException(f"sequence number {snapshot.sequence_number} was taken") from error
            if refused and seen.metadata.format_version >= 3 and snapshot.first_row_id is None:
                raise CommitFailedException("the table was upgraded to version 3 meanwhile") from error
            if refused:
                break
        if refused and seen is not None:
            self._fate.sent = Sent.NO
            raise TableFormatError(f"the catalog refused the commit to {self._subject}: {error}") from error
        raise self._fate.told(error) from error

    def _load(self) -> Table:
        return newest_of(self._handle)

    def _landed(self, table: Table) -> CommitOutcome | None:
        """The outcome, if an earlier attempt was applied although its answer said otherwise or never came."""
        snapshot = snapshot_by_id(table.metadata, self._producer.snapshot_id)
        if snapshot is None:
            return None
        self._fate.sent = Sent.APPLIED
        return CommitOutcome(table, snapshot.snapshot_id, snapshot.sequence_number, self._attempts, True)

    def _already_applied(self, table: Table, snapshot_id: int) -> CommitOutcome:
        snapshot = snapshot_by_id(table.metadata, snapshot_id)
        number = snapshot.sequence_number if snapshot is not None else None
        return CommitOutcome(table, snapshot_id, number, self._attempts, False, already_applied=True)

    def _nothing_to_do(self, table: Table, base: SnapshotView) -> CommitOutcome:
        """CP-17: no files, no snapshot."""
        if base.snapshot is None:
            return CommitOutcome(table, None, None, self._attempts, False, base=base)
        return CommitOutcome(
            table, base.snapshot.snapshot_id, base.snapshot.sequence_number, self._attempts, False, base=base
        )


def check_writable(change: TableChange, metadata: TableMetadata, subject: str) -> None:
    """Raise UnsupportedFeatureError for what the table's format version does not allow, or what we do not write; rows
    are not added beside range partitions that this version does not know (RP-1)."""
    version = metadata.format_version
    kinds = {delete.kind for delete in change.added_delete_files}
    if version not in (2, 3):
        raise UnsupportedFeatureError(
            f"{subject} has format version {version}; upgrade it to version 2 to write to it."
        )
    if version == 2 and DeleteKind.DELETION_VECTOR in kinds:
        raise UnsupportedFeatureError(
            f"{subject} has format version 2, which has no deletion vectors; write position deletes."
        )
    if version == 3 and DeleteKind.POSITION in kinds:
        raise UnsupportedFeatureError(
            f"{subject} has format version 3, which takes no new position delete files; write deletion vectors."
        )
    if change.added_data_files:
        range_partitions_of(metadata.properties, metadata.schema())


def _move_ref(base: SnapshotView, ref: str, snapshot: Snapshot) -> SetSnapshotRefUpdate:
    """The branch at its new head, its retention settings as they were."""
    current = base.metadata.refs.get(ref)
    return SetSnapshotRefUpdate.model_validate(
        {
            "ref-name": ref,
            "type": SnapshotRefType.BRANCH,
            "snapshot-id": snapshot.snapshot_id,
            "max-ref-age-ms": current.max_ref_age_ms if current is not None else None,
            "max-snapshot-age-ms": current.max_snapshot_age_ms if current is not None else None,
            "min-snapshots-to-keep": current.min_snapshots_to_keep if current is not None else None,
        }
    )


def _at(table: Table, metadata: TableMetadata, metadata_location: str) -> Table:
    return Table(
        identifier=table.name(),
        metadata=metadata,
        metadata_location=metadata_location,
        io=table.io,
        catalog=table.catalog,
        config=table.config,
    )
