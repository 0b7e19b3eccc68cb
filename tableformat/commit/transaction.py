"""Commits changes of one table, or of several at once: attempt, conflict check, catalog call, retry, and recovery if no
answer arrives."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
)
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

from tableformat.commit.cancellation import check_cancelled
from tableformat.commit.change import TableChange
from tableformat.commit.commit_status import CommitStatus, NoAnswerError, Sent, asked
from tableformat.commit.idempotence import BatchId, BatchName, batch_name
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.multi_table_commit import commit_several_tables
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import FixedChange, PlannedChange
from tableformat.commit.rest_catalog import is_rest
from tableformat.commit.retry import retry_lost_races, status_check_waits_seconds
from tableformat.commit.snapshot_producer import SnapshotProducer, next_timestamp_ms
from tableformat.commit.snapshot_summary import check_snapshot_properties
from tableformat.commit.table_part import PreparedPart, TablePart
from tableformat.errors import (
    BatchPartlyAppliedError,
    CommitConflictError,
    CommitStateUnknownError,
    PartialCommitError,
    StorageError,
    TableFormatError,
    TableNotFoundError,
)
from tableformat.metadata.snapshot_view import last_sequence_number

logger = logging.getLogger(__name__)

_REFUSALS = (BadRequestError, UnauthorizedError, ForbiddenError, AuthorizationExpiredError)
"""Answers of a catalog that applied nothing and will not apply the request later."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """The commit of one table: a whole commit, or one part of it."""

    table: Table
    change: TableChange | PlannedChange
    ref: str = MAIN_BRANCH
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    timestamp_ms: int | None = None
    """The time of the snapshot, in milliseconds since 1970; by default, the time of the commit."""
    was_applied: bool = False
    """The table already had the batch when the change was staged, so the change is empty."""


def commit_change(
    table: Table,
    change: TableChange | PlannedChange,
    *,
    ref: str = MAIN_BRANCH,
    application_id: str | None = None,
    batch_id: BatchId | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    is_staged: bool = False,
    timestamp_ms: int | None = None,
    status: CommitStatus | None = None,
) -> CommitOutcome:
    """Commit the change to a branch as one snapshot, or raise and change nothing.

    A planned change is requested at every attempt, for the current head. A change without files commits nothing.
    Metadata files of a failed commit are removed. Staged files belong to the caller, who removes them after any error
    after which `status` knows that the table does not reference them (`removing_on_failure`). SP-23: `is_staged` does
    not move the branch; the snapshot can be published later. `timestamp_ms` is the time of the snapshot, by default the
    time of the commit.

    Raises CommitConflictError, AlreadyCommittedError, CommitStateUnknownError, TableNotFoundError,
    SnapshotNotFoundError (no such branch), UnsupportedFeatureError, InvalidArgumentError.
    """
    (outcome,) = commit_changes(
        [TableCommit(table, change, ref, snapshot_properties or {}, timestamp_ms)],
        batch=batch_name(application_id, batch_id),
        is_staged=is_staged,
        status=status,
    )
    return outcome


def commit_changes(
    commits: Sequence[TableCommit],
    *,
    batch: BatchName | None = None,
    is_staged: bool = False,
    status: CommitStatus | None = None,
) -> list[CommitOutcome]:
    """CP-74: commit one snapshot for each table that has a change, all of them or none, in the order of `commits`.
    Otherwise like `commit_change`. All tables are in one catalog.

    Raises BatchPartlyAppliedError, PartialCommitError, and SeveralTablesError if the catalog commits one table at a
    time.
    """
    for each in commits:
        check_snapshot_properties(each.snapshot_properties)
    status = status or CommitStatus()
    parts = [
        TablePart(
            each.table,
            FixedChange(each.change) if isinstance(each.change, TableChange) else each.change,
            ref=each.ref,
            batch=batch,
            producer=SnapshotProducer(each.table.metadata, dict(each.snapshot_properties)),
            is_staged=is_staged,
            timestamp_ms=each.timestamp_ms,
        )
        for each in commits
    ]
    return _Commit(parts, batch, status, was_applied=any(each.was_applied for each in commits)).run()


class _Commit:
    """One commit over all its attempts. Its state, the progress of the catalog call, decides which files may be
    removed."""

    def __init__(
        self, parts: Sequence[TablePart], batch: BatchName | None, status: CommitStatus, *, was_applied: bool
    ) -> None:
        self._parts = parts
        self._batch = batch
        self._status = status
        self._was_applied = was_applied
        self._subject = " and ".join(part.subject for part in parts)
        self._attempts = 0
        self._sent: set[TablePart] = set()
        """Parts whose snapshot was in a request."""
        self._is_refusal_unsure = False
        """LK-37: a refused request may have been applied to some tables."""
        status.subject, status.snapshot_id = self._subject, parts[0].producer.snapshot_id

    def run(self) -> list[CommitOutcome]:
        """CP-13, CP-18, CP-51: remove the files of a commit that was not applied, and keep the files of one that may
        have been applied.

        An interrupt can arrive anywhere, so the progress of the request decides, not the kind of error.
        """
        started = time.perf_counter()
        try:
            outcomes = self._run_attempts()
            for part, outcome in zip(self._parts, outcomes, strict=True):
                remove_leftovers(part.handle.io, part.unused_locations(outcome))
            for part, outcome in zip(self._parts, outcomes, strict=True):
                part.report(outcome, time.perf_counter() - started)
        except CommitStateUnknownError:
            raise
        except BaseException as error:
            if not self._status.may_be_named:
                for part in self._parts:
                    remove_leftovers(part.handle.io, part.producer.written_locations)
                raise
            raise self._status.told(error) from error
        return outcomes

    def _run_attempts(self) -> list[CommitOutcome]:
        try:
            return retry_lost_races(self._attempt, *(part.handle for part in self._parts))
        except CommitFailedException as error:
            # The catalog may have refused the repetition of a request that it had already applied.
            landed = self._landed(self._load())
            if landed is not None:
                return landed
            self._note_refusal()
            raise CommitConflictError(
                f"commit to {self._subject} lost the race against other writers {self._attempts} times: {error}. "
                "Nothing was changed. Run the operation again, or raise commit.retry.num-retries."
            ) from error

    def _attempt(self) -> list[CommitOutcome]:
        self._attempts += 1
        # Loaded from the catalog even the first time: the record of applied batches and the last sequence number must
        # be current.
        tables = self._load()
        landed = self._landed(tables)
        if landed is not None:
            return landed
        self._note_refusal()
        applied = self._already_applied(tables)
        if applied is not None:
            return applied
        planned = [part.plan(table, self._attempts) for part, table in zip(self._parts, tables, strict=True)]
        # CP-76: the snapshots of several tables share one timestamp, so that a read at a point in time sees all or
        # none.
        time_ms = max(next_timestamp_ms(each.base) for each in planned) if len(planned) > 1 else None
        prepared = [part.prepare(each, timestamp_ms=time_ms) for part, each in zip(self._parts, planned, strict=True)]
        if all(each.snapshot is None for each in prepared):
            return [
                part.committed(each, None, self._attempts) for part, each in zip(self._parts, prepared, strict=True)
            ]
        return self._send(prepared)

    def _send(self, prepared: Sequence[PreparedPart]) -> list[CommitOutcome]:
        for part, each in zip(self._parts, prepared, strict=True):
            part.sync(each)
        check_cancelled()
        sent = [(part, each) for part, each in zip(self._parts, prepared, strict=True) if each.is_sent]
        self._sent = {part for part, each in sent if each.snapshot is not None}
        requests = [each.request for _, each in sent]
        catalog = self._parts[0].handle.catalog
        try:
            answers = asked(self._status, partial(commit_several_tables, catalog, requests))
        except CommitFailedException:
            if len(requests) > 1 and is_rest(catalog):
                self._status.sent, self._is_refusal_unsure = Sent.IN_FLIGHT, True
            raise
        except NoAnswerError as no_answer:
            return self._after_no_answer(no_answer.error, [each for _, each in sent if each.snapshot is not None])
        answered = {part: answer for (part, _), answer in zip(sent, answers, strict=True)}
        return [
            part.committed(each, answered.get(part), self._attempts)
            for part, each in zip(self._parts, prepared, strict=True)
        ]

    def _note_refusal(self) -> None:
        """No table has the request that was refused."""
        if self._is_refusal_unsure:
            self._status.sent, self._is_refusal_unsure = Sent.NO, False

    def _after_no_answer(self, error: Exception, sent: Sequence[PreparedPart]) -> list[CommitOutcome]:
        """CP-13, CP-77: check whether the commit was applied. Only a clear refusal counts as a failure whose files may
        be removed."""
        refused = isinstance(error, (*_REFUSALS, NoSuchTableError))
        waits = (0.0,) if refused else status_check_waits_seconds(self._parts[0].handle.metadata.properties)
        seen: list[Table] = []
        for wait_seconds in waits:
            time.sleep(wait_seconds)
            try:
                seen = self._load()
            except TableNotFoundError:
                if refused:
                    self._status.sent = Sent.NO
                    raise
                break
            except Exception as unseen:
                # The error of an unreachable service has one line; an unexpected error is logged with its traceback.
                told = None if isinstance(unseen, StorageError) else unseen
                logger.warning(
                    "could not check whether the commit to %s was applied: %s", self._subject, unseen, exc_info=told
                )
                continue
            landed = self._landed(seen)
            if landed is not None:
                return landed
            self._check_possible(error, sent, seen, refused=refused)
            if refused:
                break
        if refused and seen:
            self._status.sent = Sent.NO
            raise TableFormatError(f"the catalog refused the commit to {self._subject}: {error}") from error
        raise self._status.told(error) from error

    def _check_possible(
        self, error: Exception, sent: Sequence[PreparedPart], seen: Sequence[Table], *, refused: bool
    ) -> None:
        """Raise CommitFailedException if the request can no longer be applied, so that another attempt is possible."""
        metadata_of = {table.metadata.table_uuid: table.metadata for table in seen}
        for each in sent:
            metadata, snapshot = metadata_of[each.planned.table.metadata.table_uuid], each.snapshot
            assert snapshot is not None, "parts without a snapshot are not searched for"
            if last_sequence_number(metadata) >= (snapshot.sequence_number or 0):
                # Another ref took the sequence number; some catalogs report this as a generic error. If the request is
                # applied after all, the snapshot id and the asserted head prevent a second commit.
                raise CommitFailedException(f"sequence number {snapshot.sequence_number} was already used") from error
            if refused and metadata.format_version >= 3 and snapshot.first_row_id is None:
                raise CommitFailedException("the table was upgraded to format version 3 concurrently") from error

    def _load(self) -> list[Table]:
        return [part.load() for part in self._parts]

    def _landed(self, tables: Sequence[Table]) -> list[CommitOutcome] | None:
        """The outcomes, if an earlier attempt was applied although its answer was a refusal or missing.

        CP-77: tables are loaded one at a time, and the request may be applied in between, so a table without the
        snapshot is loaded again. Raises PartialCommitError if the catalog applied the request to some tables only.
        """
        looked = dict(zip(self._parts, tables, strict=True))
        found = {part: part.landed(table, self._attempts) for part, table in looked.items()}
        if not any(found.values()):
            return None
        self._status.sent = Sent.APPLIED
        for part in self._sent:
            if found[part] is None:
                looked[part] = part.load()
                found[part] = part.landed(looked[part], self._attempts)
        lacking = [part.subject for part in self._parts if part in self._sent and found[part] is None]
        if lacking:
            raise PartialCommitError(having=[part.subject for part in found if found[part]], lacking=lacking)
        return [found[part] or part.unchanged(looked[part], self._attempts) for part in self._parts]

    def _already_applied(self, tables: Sequence[Table]) -> list[CommitOutcome] | None:
        """CP-14, CP-78: the outcomes of a batch that all tables already have. Raises BatchPartlyAppliedError if only
        some have it."""
        applied = [part.applied(table) for part, table in zip(self._parts, tables, strict=True)]
        pairs = list(zip(self._parts, tables, applied, strict=True))
        if all(applied):
            return [part.already_applied(table, stored, self._attempts) for part, table, stored in pairs if stored]
        if any(applied) or self._was_applied:
            assert self._batch is not None, "only named batches are applied"
            raise BatchPartlyAppliedError(
                self._batch.application_id,
                self._batch.batch_id,
                having=[part.subject for part, _, stored in pairs if stored],
                lacking=[part.subject for part, _, stored in pairs if not stored],
            )
        return None
