"""Erases rows from every snapshot of one table or several, and proves it (MT-111).

plan       the files with rows of the scope, in all snapshots; they are written again without
commit     one compare-and-set of the metadata files of all tables (LK-38)
remove     the files that only the former metadata names
prove      everything that the new metadata names is read; the certificate states what was found
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import RemovePropertiesUpdate

from tableformat.commit.commit_status import CommitStatus, NoAnswerError, Sent, asked
from tableformat.commit.history_change import ERASURE_PENDING, HistoryChange, ReplacesHistories
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.metadata_commit import commit_metadata, refresh
from tableformat.commit.retry import retry_lost_races
from tableformat.errors import (
    CommitConflictError,
    CorruptFileError,
    InvalidArgumentError,
    TableFormatError,
    UnsupportedFeatureError,
)
from tableformat.filters.predicate import Where
from tableformat.keys.table_key import key_field_ids
from tableformat.maintenance.erasure.certificate import ErasedFile, ErasureCertificate, NotReached, TableErasure
from tableformat.maintenance.erasure.leftovers import named_in_order, unnamed_traces, without
from tableformat.maintenance.erasure.plan import Planned, TablePlanner
from tableformat.maintenance.erasure.proof import prove
from tableformat.maintenance.erasure.scope import scope_of
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.metadata.identifiers import identifier_text
from tableformat.metadata.newest import newest_of
from tableformat.metadata.owned_files import OwnedFiles
from tableformat.metadata.reachable_files import reachable_files
from tableformat.metadata.table_file import parse_table_metadata
from tableformat.properties import GC_ENABLED, inflated_bytes_max, is_synced, may_remove_files
from tableformat.storage.storage import exists, read_bytes, sync_files
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseRequest:
    """The rows to erase in one table: `prefix` or `where`."""

    iceberg: IcebergTable
    prefix: Any = None
    where: Where | None = None


@dataclass(slots=True)
class _Job:
    """The erasure in one table."""

    iceberg: IcebergTable
    planner: TablePlanner
    planned: Planned | None = None
    removed: list[str] = field(default_factory=list)
    not_reached: list[NotReached] = field(default_factory=list)
    is_unfinished: bool = False
    """Whether a file of the former metadata could not be removed."""

    @property
    def name(self) -> str:
        return identifier_text(self.iceberg.name())


def erase(
    requests: Sequence[EraseRequest],
    *,
    everywhere: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ErasureCertificate:
    """MT-111: erase the rows of the requests from all snapshots of their tables, which are in one catalog, and move the
    handles to the result.

    Raises UnsupportedFeatureError for a table whose history cannot be changed, InvalidArgumentError for a scope that is
    no filter of rows, CommitConflictError after too many lost races. Nothing is changed then. Raises
    CommitStateUnknownError if the outcome is unknown; erasing again completes it.
    """
    started = time.perf_counter()
    if not everywhere:
        raise InvalidArgumentError(
            "everywhere=False is not an erasure: the rows would stay in earlier snapshots. Nothing was changed. "
            "delete() and delete_prefix() delete them from the current snapshot."
        )
    if not requests:
        raise InvalidArgumentError("there is no table to erase from.")
    jobs = [_job(each, progress or silent) for each in requests]
    if len({each.iceberg.metadata.table_uuid for each in jobs}) < len(jobs):
        raise InvalidArgumentError("a table is named twice. Give all its rows in one prefix or filter.")
    if dry_run:
        for job in jobs:
            job.planned = job.planner.plan(job.iceberg, dry_run=True)
        return _certificate([_of_plan(job) for job in jobs], started, dry_run=True)
    for job in jobs:
        _finish_pending(job)
    _commit(jobs)
    for job in jobs:
        if job.planned is not None and job.planned.metadata is not None:
            _remove_former(job, job.planned.table.metadata, job.planned.table.metadata_location)
        _forget_pending(job)
    return _certificate([_proved(job, progress) for job in jobs], started, dry_run=False)


def erase_from(
    iceberg: IcebergTable,
    prefix: Any,
    where: Where | None,
    *,
    everywhere: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ErasureCertificate:
    """The same for one table."""
    request = EraseRequest(iceberg=iceberg, prefix=prefix, where=where)
    return erase([request], everywhere=everywhere, dry_run=dry_run, progress=progress)


def _job(request: EraseRequest, tell: Progress) -> _Job:
    iceberg = request.iceberg
    refresh(iceberg)
    _check_history_can_change(iceberg)
    metadata = iceberg.metadata
    schema = metadata.schema()
    key = key_field_ids(schema, metadata.properties)
    scope = scope_of(schema, key, prefix=request.prefix, where=request.where)
    created = CreatedFiles(WriteContext.of(metadata, iceberg.io))
    return _Job(iceberg, TablePlanner(scope, created, tell))


_INSTEAD = (
    "Nothing was changed. Instead delete the rows, compact the table (compact(rewrite_all=True)), and expire all "
    "earlier snapshots and tags; then only the current snapshot remains, without the rows."
)


def _check_history_can_change(iceberg: IcebergTable) -> None:
    """MT-111, LK-38: the refusals, by name."""
    name, metadata = identifier_text(iceberg.name()), iceberg.metadata
    if not isinstance(iceberg.catalog, ReplacesHistories):
        raise UnsupportedFeatureError(
            f"rows of {name} cannot be erased from its earlier snapshots: its catalog {iceberg.catalog.name!r} "
            f"({type(iceberg.catalog).__name__}) cannot replace the files of a snapshot. {_INSTEAD}"
        )
    if metadata.format_version < 2:
        raise UnsupportedFeatureError(
            f"{name} has format version {metadata.format_version}, which is not written. Nothing was changed. Upgrade "
            "it to version 2 and erase again."
        )
    if not may_remove_files(metadata.properties):
        raise UnsupportedFeatureError(
            f"the property {GC_ENABLED} of {name} is false: other tables may read its files, so the files with the "
            f"rows cannot be removed. {_INSTEAD} Or remove the property, if no other table reads them."
        )


def _commit(jobs: Sequence[_Job]) -> None:
    """MT-116: plan on the newest metadata of all tables at each attempt, and set all of them or none."""
    status = CommitStatus()
    status.subject = " and ".join(job.name for job in jobs)
    tables = [job.iceberg for job in jobs]

    def attempt() -> None:
        for job in jobs:
            job.planned = job.planner.plan(newest_of(job.iceberg), dry_run=False)
        plans = [job.planned for job in jobs if job.planned is not None]
        changes = [HistoryChange(each.table, each.metadata) for each in plans if each.metadata is not None]
        if not changes:
            return
        for job, change in zip(jobs, plans, strict=True):
            if is_synced(change.table.metadata.properties):
                sync_files(change.table.io, job.planner.written_locations)
        catalog = tables[0].catalog
        assert isinstance(catalog, ReplacesHistories), "checked before"
        asked(status, lambda: catalog.replace_histories(changes))

    try:
        retry_lost_races(attempt, *tables)
    except CommitFailedException as error:
        _undo(jobs)
        raise CommitConflictError(
            f"the erasure in {status.subject} lost the race against other writers: {error}. Nothing was changed. Erase "
            "again."
        ) from error
    except NoAnswerError as error:
        raise status.told(error.error) from error.error
    except BaseException as error:
        if status.sent is Sent.NO:
            _undo(jobs)
            raise
        raise status.told(error) from error
    for job in jobs:
        refresh(job.iceberg)


def _undo(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        job.planner.remove_written(job.iceberg)


def _remove_former(job: _Job, metadata: TableMetadata, metadata_location: str) -> None:
    """MT-118: remove the files that only the former metadata names, and files of earlier attempts.

    If a file cannot be removed, the files that lead to it stay too, so that the next erasure finds it.
    """
    iceberg = job.iceberg
    owned = OwnedFiles.of(iceberg)
    kept = reachable_files(iceberg.metadata, iceberg.metadata_location, iceberg.io)
    remove_leftovers(iceberg.io, sorted(set(job.planner.written_locations) - kept))
    for group in without(named_in_order(metadata, metadata_location, iceberg.io), kept):
        foreign = owned.foreign(group)
        job.not_reached += [NotReached(location=each, reason=_FOREIGN) for each in sorted(foreign)]
        own = [each for each in group if each not in foreign]
        owned.remove_all(own)
        left = [each for each in own if exists(iceberg.io, each)]
        job.not_reached += [
            NotReached(location=each, reason="the store did not remove it. Erase again") for each in left
        ]
        job.removed += [each for each in own if each not in left]
        owned.remove_emptied(own)
        if left:
            job.is_unfinished = True
            return


_FOREIGN = (
    "the file lies outside of the directories of the table, so it may belong to others and was not removed. The table "
    "does not name it any more. Remove it where it belongs"
)


def _finish_pending(job: _Job) -> None:
    """MT-118: complete the removal of an erasure that was interrupted after its commit."""
    iceberg = job.iceberg
    location = iceberg.metadata.properties.get(ERASURE_PENDING)
    if location is None:
        return
    if not exists(iceberg.io, location):
        return  # It is removed last, so nothing is left.
    data = read_bytes(iceberg.io, location)
    former = parse_table_metadata(data, location, inflated_bytes_max(iceberg.io.properties))
    if former.table_uuid != iceberg.metadata.table_uuid:
        raise CorruptFileError(location, f"the property {ERASURE_PENDING} names metadata of another table.")
    _remove_former(job, former, location)
    if job.is_unfinished:
        raise TableFormatError(
            f"files that an earlier erasure replaced cannot be removed from {job.name}, among them "
            f"{job.not_reached[-1].location}. Nothing else was changed. See to the storage, and erase again."
        )


def _forget_pending(job: _Job) -> None:
    if job.is_unfinished or ERASURE_PENDING not in job.iceberg.metadata.properties:
        return

    def prepare(table: IcebergTable) -> tuple[list[Any], tuple[()]]:
        is_pending = ERASURE_PENDING in table.metadata.properties
        return ([RemovePropertiesUpdate(removals=[ERASURE_PENDING])] if is_pending else []), ()

    commit_metadata(job.iceberg, prepare)


# The certificate ------------------------------------------------------------------------------------------------------


def _certificate(tables: list[TableErasure], started: float, *, dry_run: bool) -> ErasureCertificate:
    return ErasureCertificate(
        tables=tuple(tables),
        issued_at=datetime.now(UTC).isoformat(timespec="seconds"),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )


def _of_plan(job: _Job) -> TableErasure:
    """What was planned or done, before anything is proved."""
    outcomes, planned = job.planner.outcomes, job.planned
    assert planned is not None, "a job is planned first"
    return TableErasure(
        table=job.name,
        table_uuid=str(job.iceberg.metadata.table_uuid),
        scope=job.planner.scope.to_json(),
        metadata_location=job.iceberg.metadata_location,
        snapshots_count=len(planned.table.metadata.snapshots),
        rewritten_snapshots_count=planned.rewritten_snapshots_count,
        erased_rows_count=outcomes.row_count,
        rewritten_data_files=tuple(
            ErasedFile(
                location=each.before.file_path,
                new_location=None if each.after is None else each.after.file_path,
                digest=None if each.after is None else _digest(job, each.after.file_path),
                erased_rows_count=len(each.positions),
            )
            for each in outcomes.data.values()
        ),
        rewritten_delete_files=tuple(
            ErasedFile(
                location=outcomes.deletes_before[key].file_path,
                new_location=None if after is None else after.file_path,
                digest=None if after is None else _digest(job, after.file_path),
            )
            for key, after in outcomes.deletes.items()
        ),
        removed_statistics_count=planned.statistics_count,
        changed_entries=planned.changed_entries,
    )


def _digest(job: _Job, location: str) -> str | None:
    try:
        return hashlib.sha256(read_bytes(job.iceberg.io, location)).hexdigest()
    except CorruptFileError:
        return None  # A concurrent job has replaced the file.


def _proved(job: _Job, progress: Progress | None) -> TableErasure:
    """MT-119: read the newest state of the table."""
    refresh(job.iceberg)
    iceberg = job.iceberg
    metadata, location, io = iceberg.metadata, iceberg.metadata_location, iceberg.io
    proof = prove(metadata, location, io, job.planner.scope, progress)
    traces = unnamed_traces(metadata, location, io, job.planner.scope)
    return replace(
        _of_plan(job),
        metadata_location=location,
        removed_files=tuple(job.removed),
        read_data_files_count=proof.data_files_count,
        read_delete_files_count=proof.delete_files_count,
        read_metadata_files_count=proof.metadata_files_count,
        not_reached=tuple(dict.fromkeys([*job.not_reached, *proof.found, *traces])),
    )
