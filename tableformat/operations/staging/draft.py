"""`Draft`: the files and deletes that operations stage for one snapshot.

    operation 1: append          file a
    operation 2: delete_prefix   spans            reach a, by position deletes: RD-2 spares rows of the same commit
    operation 3: replace         spans, file b    reach a, but not b

Operations are numbered. Inside the draft, a staged file's sequence number is the last number of the table plus the
number of its operation. So the rules that apply between snapshots also apply between operations, and an operation that
reads sees the earlier changes of the draft. The commit then gives all files one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable

from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.idempotence import applied_batch, batch_name, is_applied
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.publish_target import publish_target_of
from tableformat.commit.read_only import refuse_read_only
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.errors import InvalidKeyError
from tableformat.keys.table_key import key_names
from tableformat.merge_on_read.deleted_positions import MergeCaches, MergeContext
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.evolution.column_names import metadata_with_names
from tableformat.operations.evolution.global_spec import global_spec_id
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.blind_deletes import BlindDeletes
from tableformat.operations.staging.carried_rows import CarriedFile, Carry, CarryContext, carry_here
from tableformat.operations.staging.covered_positions import Find, covered_by_any, find_here, in_threads
from tableformat.operations.staging.order import DraftOrder, Holds
from tableformat.operations.staging.pending import PendingCommit, commit_alone, dry_run_result_of, result_of
from tableformat.operations.staging.replaced_files import ReplacedSpans
from tableformat.operations.staging.result import CommitResult, unchanged_result
from tableformat.operations.staging.scope import Scope
from tableformat.operations.staging.staged_change import StagedChange, StagedChangeByVersion
from tableformat.properties import (
    BLIND_DELETES,
    BLIND_DELETES_DEFAULT,
    BLIND_OFF,
    COPY_ON_WRITE,
    ISOLATION_LEVELS,
    PREFIX_ENCODING,
    PREFIX_ENCODINGS,
    RANGE_PARTITIONS,
    blind_deletes,
    copies_rows_on_write,
    property_one_of,
    row_level_mode,
)
from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_conformed
from tableformat.write.delete_files.equality_deletes import write_equality_deletes
from tableformat.write.delete_files.range_deletes import write_range_delete_file
from tableformat.write.rows.checks import RowTest
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.range_partition_checks import row_tests
from tableformat.write.rows.rows import as_reader
from tableformat.write.staged import StagedFiles


class Draft:
    """The operations of one snapshot, based on one existing snapshot. Not thread-safe."""

    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        *,
        caches: MergeCaches | None = None,
        carry: Carry = carry_here,
        find: Find = find_here,
        status: CommitStatus | None = None,
    ) -> None:
        """`caches`: delete files and footers that were read before. `carry` and `find` copy and find rows, here or in
        other processes. `status`: the outcome of a commit that several drafts share."""
        refuse_read_only(iceberg)
        self._iceberg = iceberg
        self._branch = branch
        self.view: SnapshotView = head_view(iceberg.metadata, iceberg.io, branch)
        """The snapshot that the operations are based on."""
        self.context = WriteContext.of(iceberg.metadata, iceberg.io)
        self.merge_context = MergeContext(iceberg.metadata, iceberg.io, caches or MergeCaches())
        self._change = StagedChange(
            self.view, self.merge_context, carries_rows=copies_rows_on_write(self.context.properties)
        )
        self._blind = BlindDeletes(self.schema)
        self._carry = carry
        self.find = find
        self._written: list[str] = []
        self._status = status or CommitStatus()
        self._row_count = 0
        self.attempt = 0
        """How often the operation has been staged, starting at 1; 0 if it is staged only once."""
        self.carried_row_count = 0
        """Number of rows that copy-on-write has copied unchanged to other files."""
        self.said: dict[str, str] = {}
        """Summary properties that are not in the commit options, see `say`."""
        self.recorded = self._change.recorded
        self.ranges_note = ""  # for the error about rows outside of the range partitions
        self._refused: list[pa.Table] = []
        self._statement = "delete"

    # -- information for operations ------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        return self.context.schema

    @property
    def name(self) -> str:
        """The dotted identifier of the table."""
        return ".".join(self._iceberg.name())

    @property
    def order(self) -> DraftOrder:
        """The comparisons of the operations by the order column (CP-69)."""
        return self._change.order

    @property
    def branch(self) -> str:
        return self._branch

    @property
    def has_key(self) -> bool:
        return bool(self.context.key_field_ids)

    @property
    def key_field_ids(self) -> tuple[int, ...]:
        """Field ids of the key. Raises InvalidKeyError for a table without a key."""
        if not self.has_key:
            raise InvalidKeyError(
                f"table {self.name} has no key. Create it with key=[...], or set a key with set_key([...])."
            )
        return self.context.key_field_ids

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the key columns in key order. Raises InvalidKeyError for a table without a key."""
        return key_names(self.schema, self.key_field_ids)

    @property
    def prefix_encoding(self) -> str:
        """How prefix deletes and replacements are written: "range" or "equality"."""
        if self.blind_deletes == "equality":
            return "equality"
        return property_one_of(self.context.properties, PREFIX_ENCODING, PREFIX_ENCODINGS)

    @property
    def blind_deletes(self) -> str:
        """SP-22: the blind deletes that this table allows, one of BLIND_DELETES_VALUES. Forbidden ones can be staged
        too, but then their rows are found and deleted by position."""
        return blind_deletes(self.context.properties)

    def plan(
        self,
        where: BooleanExpression | None = None,
        *,
        may_match: Callable[[DataFile], bool] | None = None,
        covered: SpanArray | None = None,
    ) -> tuple[RowTask, ...]:
        """Tasks for the rows that the current operation finds in the base and in the changes of earlier operations.

        `may_match`: decides which concurrently added data files would have mattered; by default, the files that may
        match the filter. `covered`: the operation looks for the rows that these spans cover (CP-83).
        """
        self._write_blind_deletes()
        return self._change.plan(where, may_match, covered)

    def plan_before_verb(self, where: BooleanExpression | None, holds: Holds) -> tuple[RowTask, ...]:
        """Like `plan`, but without the changes of the current operation. Its blind deletes are not written yet."""
        return self._change.plan_before_verb(where=where, may_match=holds)

    def look(self, where: BooleanExpression) -> tuple[RowTask, ...]:
        """Like `plan`, but the commit does not check the read, because the operation does not depend on it yet."""
        self._write_blind_deletes()
        return self._change.look(where)

    @property
    def next_sequence_number(self) -> int:
        """A sequence number greater than the numbers of all files that `plan` returns."""
        return self._change.next_sequence_number

    def act_as(self, statement: str) -> None:
        """SP-20, SP-21: from now on, the current operation has the isolation level and the mode that the table sets for
        `statement`: "delete" (the default), "update" or "merge"."""
        self._statement = statement
        name = f"write.{statement}.isolation-level"
        self._change.isolate(property_one_of(self.context.properties, name, ISOLATION_LEVELS))

    # -- staging by operations -----------------------------------------------------------------------------------------

    def begin_verb(self) -> None:
        """Start the next operation: everything staged from now on belongs to it."""
        self._write_blind_deletes()
        self._change.begin_verb()
        self._statement = "delete"

    def conformed(
        self,
        rows: Any,
        on_refused: str | None = None,
        *,
        whole_groups: Sequence[str] = (),
        tests: Sequence[RowTest] = (),
        numbered_by: str | None = None,
    ) -> ConformedRows:
        """The caller's rows as a stream of batches in the table's schema.

        A diverted row takes along the rows with the same values in the columns `whole_groups` (CP-24). `tests`: further
        conditions on rows. `numbered_by`: a column with the indexes of the rows in the caller's input. `on_refused` is
        None in operations without this option.
        """
        given = as_reader(rows, schema=arrow_schema(self.schema))
        checks = (*row_tests(self.context, table=self.name), *tests)
        conformed = ConformedRows(
            given, self.schema, on_refused=on_refused, checks=checks, whole_groups=whole_groups, numbered_by=numbered_by
        )
        conformed.ranges_note = self.ranges_note
        return conformed

    def add_rows(
        self,
        rows: ConformedRows,
        batches: Iterable[pa.RecordBatch] | None = None,
        *,
        memory_bytes: int | None = None,
    ) -> None:
        """Write rows to data files. `batches` is an iterator over `rows` that may do more with each batch."""
        self.add_batches(rows if batches is None else batches, memory_bytes=memory_bytes)
        self.note_refused(rows)

    def add_batches(self, batches: Iterable[pa.RecordBatch], *, memory_bytes: int | None = None) -> None:
        """Write batches in the table's schema to data files, within the table's memory budget or `memory_bytes`."""
        context = self.context if memory_bytes is None else self.context.with_memory(memory_bytes)
        staged = write_conformed(context, batches)
        self._written.extend(staged.file_paths)
        self._add(staged)

    def note_refused(self, rows: ConformedRows) -> None:
        """Report the rows that the stream diverted. Call it when the stream is exhausted."""
        if rows.refused is not None:
            self._refused.append(rows.refused)

    def adopt_files(
        self, staged: StagedFiles, *, since: int | None = None, held_against: Mapping[str, str] | None = None
    ) -> None:
        """Add data files of another writer. If the commit fails, files that the draft did not write remain.

        `held_against`: the table's properties at the time when each row was checked against its range partitions. None
        if the rows were not checked; then the bounds of the files decide (RP-6).

        `since`: the table's last sequence number before the files were written, to check that they were not committed
        before (CP-23). None if their batch id already shows this (CP-14).
        """
        if since is not None:
            self._change.note_adopted(staged.file_paths, since)
        if held_against is None or held_against.get(RANGE_PARTITIONS) != self.context.properties.get(RANGE_PARTITIONS):
            self._change.note_unchecked(data.file_path for data in staged.data_files)
        self._add(staged)

    def note_written(self, locations: Iterable[str]) -> None:
        """Remove these files if the draft fails."""
        self._written.extend(locations)

    def name_columns(self) -> None:
        """LK-19: let the commit add the table's column names to its name mapping. The draft reads files by them."""
        self.view = replace(self.view, metadata=metadata_with_names(self.view.metadata))
        self._change.rebase(self.view)
        self._change.names_columns = True

    def _add(self, staged: StagedFiles) -> None:
        self._change.add_data_files(staged.data_files)
        self._row_count += staged.row_count
        if staged.refused is not None:
            self._refused.append(staged.refused)

    def add_keys(self, keys: pa.Table, *, beside: str | None = None) -> None:
        """Delete the rows whose columns equal a row of `keys`, by an equality delete. `beside`: a column of `keys` that
        is not compared."""
        self._blind.add_keys(keys, beside=beside)
        if self._blind.are_many and self.blind_deletes != BLIND_OFF:
            self._write_blind_deletes()

    def add_spans(self, spans: SpanArray) -> None:
        """Delete the rows that the spans cover, by a range delete."""
        self._blind.add_spans(spans)

    def replaces_whole_rows(self) -> None:
        """CP-27: the current operation has values for all columns. It is committed only if no column was added."""
        self._change.replaces_whole_rows = True

    def keep_unchanged(self, since: int | None) -> None:
        """CP-83: commit only if no row was added since this snapshot to what the operations delete or read."""
        if since is not None:
            self._blind.scope = self._change.scope = Scope(since)

    def deletes_where(self, where: BooleanExpression) -> None:
        """CP-83: state that all rows that the current operation deletes match the filter."""
        if self._change.scope is not None:
            self._change.scope.state(where)

    def check_unchanged(self) -> None:
        """CP-83: for a dry run, perform the check of the commit."""
        self._write_blind_deletes()
        self._change.check_unchanged(self.view, self.name)

    def replace_spans(self, spans: SpanArray) -> None:
        """RP-19: delete the rows that the spans cover at the time of the commit. Only for drafts with one operation."""
        if self.blind_deletes != BLIND_DELETES_DEFAULT:
            self.add_spans(spans)
            return
        spec_id = self._global_spec_id()

        def write() -> DeleteFile:
            delete = write_range_delete_file(self.context, spans, spec_id=spec_id)
            self._written.append(delete.file_path)
            return delete

        self._change.replaced = ReplacedSpans(self._branch, spans, write)

    def delete_positions(self, task: RowTask, positions: PositionSet, *, written_anew: bool = False) -> None:
        """Delete live rows of a planned file by position; see `delete_positions_in`."""
        self.delete_positions_in([(task, positions)], written_anew=written_anew)

    def delete_positions_in(
        self, deleted: Iterable[tuple[RowTask, PositionSet]], *, written_anew: bool = False
    ) -> None:
        """Delete live rows of planned files by position. A file without remaining rows is removed from the table.

        SP-21: in copy-on-write mode the files are removed and their other rows are rewritten, many files at once if
        `carry` can do so. `written_anew`: the adopted files contain the updated versions of the deleted rows.
        """
        copies = row_level_mode(self.context.properties, self._statement) == COPY_ON_WRITE
        carried: list[CarriedFile] = []
        for task, positions in deleted:
            if copies and self._change.may_leave(task):
                carried.append(CarriedFile(task, positions, self._change.is_staged(task)))
            else:
                self._change.delete_positions(task, positions, written_anew=written_anew)
        if carried:
            with closing(self._carry(carried, CarryContext.of(self.view, self.context))) as written:
                for index, staged in written:
                    self._written.extend(staged.file_paths)
                    self.carried_row_count += staged.row_count
                    self._change.replace_file(carried[index].task, carried[index].deleted, staged.data_files)

    def rely_on(self, find: Callable[[], Iterable[tuple[RowTask, PositionSet]]], row_count: int) -> None:
        """CP-38: some of the given rows are left out because these live rows exist; see `StagedChange.rely_on`."""
        self._change.rely_on(find, row_count)

    def say(self, name: str, value: str) -> None:
        """Add a property to the summary of the snapshot."""
        self.said[name] = value

    @property
    def is_published(self) -> bool:
        """Whether this branch is published to another one. That branch may have rows that this branch gets later, with
        unchanged sequence numbers (MT-31)."""
        return publish_target_of(self.view.metadata, self._branch) is not None

    def remove_files(self, tasks: Sequence[RowTask], where: BooleanExpression) -> bool:
        """Remove planned files whose rows all match. False if one of them has to stay; then none is removed."""
        return self._change.remove_files(tasks, where)

    # -- commit -------------------------------------------------------------------------------------------------------

    def is_applied(self, options: CommitOptions) -> bool:
        """Whether the batch was committed before, according to this handle's metadata. The commit checks it again."""
        name = batch_name(options.application_id, options.batch_id)
        if name is None:
            return False
        stored = applied_batch(self._iceberg.metadata.properties, self._branch, name.application_id)
        return is_applied(stored, name.batch_id)

    def commit(self, options: CommitOptions, *, started: float) -> CommitResult:
        """Commit everything staged as one snapshot. Commits nothing if nothing is staged."""
        pending = self.pending(options)
        outcome = commit_alone(pending, options, self._status)
        return self.conclude(pending, outcome, started=started)

    def pending(self, options: CommitOptions) -> PendingCommit:
        """Everything staged, in the form that the commit takes. Call `conclude` afterwards."""
        self._write_blind_deletes()
        return PendingCommit(
            self._iceberg,
            StagedChangeByVersion(self._change, self.context, self._written, table=self.name),
            ref=self._branch,
            snapshot_properties={**(options.snapshot_properties or {}), **self.said, **self._change.summary()},
        )

    def conclude(self, pending: PendingCommit, outcome: CommitOutcome, *, started: float) -> CommitResult:
        """The result of the commit. The handle moves to the committed snapshot."""
        if not outcome.committed:
            self.discard()
        self._written.clear()
        outcome.move(self._iceberg)
        committed = pending.change.committed(outcome, self._iceberg.io)
        return result_of(self._change, outcome, committed, refused=self._all_refused(), started=started)

    def unchanged(self, *, already_applied: bool, started: float) -> CommitResult:
        """The result of a call that had nothing to commit."""
        return unchanged_result(self.view, already_applied=already_applied, started=started)

    @property
    def counts_deleted_rows(self) -> bool:
        """Whether every row that the draft deletes was found. A blind delete finds no rows."""
        return not self._blind and self._change.deleted_row_count is not None

    def find_deleted_rows(self) -> None:
        """For a dry run: find the rows that blind deletes would delete (SP-22), so that they are counted."""
        self.context = replace(self.context, properties={**self.context.properties, BLIND_DELETES: BLIND_OFF})

    def dry_run_result(self, *, started: float) -> CommitResult:
        """The numbers of rows that a commit of the draft would add and delete."""
        self._write_blind_deletes()
        unchanged = self.unchanged(already_applied=False, started=started)
        return dry_run_result_of(self._change, unchanged, refused=self._all_refused())

    def refresh(self) -> None:
        """Move the table's handle to the newest metadata, for the next draft."""
        move_to_newest(self._iceberg)

    def has_expired(self) -> bool:
        """Whether the snapshot that the operations are based on has been removed from the table. Moves the handle to
        the newest metadata, for the next draft."""
        self.refresh()
        snapshot = self.view.snapshot
        return snapshot is not None and snapshot_by_id(self._iceberg.metadata, snapshot.snapshot_id) is None

    def discard(self) -> None:
        """Remove the files that this draft wrote."""
        for location in self._written:
            delete_if_present(self._iceberg.io, location)
        self._written.clear()

    @contextmanager
    def removing_files_on_failure(self) -> Iterator[None]:
        """Remove the draft's files when the block fails, unless the commit may have happened."""
        with removing_on_failure(self._status, self.discard):
            yield

    def _write_blind_deletes(self) -> None:
        """Write the deletes of the current operation, one file for each list of columns. If the table does not allow
        them, find their rows instead (SP-22)."""
        if self._blind and self.blind_deletes != BLIND_DELETES_DEFAULT:
            self._find_blindly_deleted()
        if not self._blind:
            return
        # A blind delete is global, because the partitions of its rows are unknown (`specs/decisions`).
        spec_id = self._global_spec_id()
        for keys, beside in self._blind.take_keys():
            self._keep(write_equality_deletes(self.context, keys, spec_id=spec_id, beside=beside))
        for spans in self._blind.take_spans():
            self._keep([write_range_delete_file(self.context, spans, spec_id=spec_id)])

    def _find_blindly_deleted(self) -> None:
        """SP-22: delete by position the earlier rows that the spans of the current operation cover, or its keys as
        spans."""
        spans = self._blind.take_spans()
        if self.blind_deletes == BLIND_OFF:
            spans += self._blind.take_keys_as_spans()
        self.recorded.add_spans(spans)
        find = covered_by_any(spans, self.next_sequence_number, self.merge_context)
        touching = sort_and_merge(spans[0]) if len(spans) == 1 else None
        found = in_threads(self._change.plan_before_verb(touching) if spans else (), find)
        self.delete_positions_in((task, positions) for task, positions in found if positions)

    def _keep(self, deletes: Iterable[DeleteFile]) -> None:
        for delete in deletes:
            self._written.append(delete.file_path)
            self._change.add_delete_file(delete)

    def _global_spec_id(self) -> int:
        spec_id = global_spec_id(self._iceberg)
        if spec_id not in self.context.specs:
            self.context = replace(self.context, specs=self._iceberg.metadata.specs())
            self.view = replace(self.view, metadata=self._iceberg.metadata)
            self._change.rebase(self.view)
        return spec_id

    def _all_refused(self) -> pa.Table | None:
        return self.order.with_diverted(self._refused)
