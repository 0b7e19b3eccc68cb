"""`Draft`: the files and deletes that verbs stage for one snapshot.

    verb 1: append          file a
    verb 2: delete_prefix   spans                  reach a, by position deletes: RD-2 spares rows of the same commit
    verb 3: replace         spans, file b          reach a, not b

Verbs are numbered, and inside the draft a staged file's sequence number is the table's last one plus the number of
its verb: the rules that decide between snapshots decide between verbs as well, and a verb that reads sees what the
draft did before. The commit then gives all files one number.
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

from tableformat.commit.fate import CommitFate, removing_on_failure
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
from tableformat.operations.definition.column_names import metadata_with_names
from tableformat.operations.definition.global_spec import global_spec_id
from tableformat.operations.drafts.blind_deletes import BlindDeletes
from tableformat.operations.drafts.carried_rows import CarriedFile, Carry, CarryContext, carry_here
from tableformat.operations.drafts.covered_positions import Find, covered_by_any, find_here, in_threads
from tableformat.operations.drafts.order import DraftOrder, Holds
from tableformat.operations.drafts.pending import PendingCommit, commit_alone, dry_run_result_of, result_of
from tableformat.operations.drafts.replaced_files import ReplacedSpans
from tableformat.operations.drafts.result import CommitResult, unchanged_result
from tableformat.operations.drafts.scope import Scope
from tableformat.operations.drafts.staging import StagedChange, StagedChangeByVersion
from tableformat.operations.options import CommitOptions
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
from tableformat.write.rows.covered import row_tests
from tableformat.write.rows.rows import as_reader
from tableformat.write.staged import StagedFiles


class Draft:
    """The verbs of one snapshot, over one base. Not thread-safe."""

    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        *,
        caches: MergeCaches | None = None,
        carry: Carry = carry_here,
        find: Find = find_here,
        fate: CommitFate | None = None,
    ) -> None:
        """`caches`: delete files and footers that were read before. `carry`, `find`: where rows are copied, found.
        `fate`: of a commit of several drafts."""
        refuse_read_only(iceberg)
        self._iceberg = iceberg
        self._branch = branch
        self.view: SnapshotView = head_view(iceberg.metadata, iceberg.io, branch)
        """The snapshot that the verbs start from."""
        self.context = WriteContext.of(iceberg.metadata, iceberg.io)
        self.merge_context = MergeContext(iceberg.metadata, iceberg.io, caches or MergeCaches())
        self._change = StagedChange(
            self.view, self.merge_context, carries_rows=copies_rows_on_write(self.context.properties)
        )
        self._blind = BlindDeletes(self.schema)
        self._carry = carry
        self.find = find
        self._written: list[str] = []
        self._fate = fate or CommitFate()
        self._row_count = 0
        self.attempt = 0
        """How often the verb has been staged, from 1; 0 where it is staged once."""
        self.carried_row_count = 0
        """Rows that copy-on-write has written to other files as they are."""
        self.said: dict[str, str] = {}
        """Properties of the summary besides those of the options, see `say`."""
        self._refused: list[pa.Table] = []
        self._statement = "delete"

    # -- what verbs ask -----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        return self.context.schema

    @property
    def name(self) -> str:
        """The dotted identifier of the table."""
        return ".".join(self._iceberg.name())

    @property
    def order(self) -> DraftOrder:
        """What verbs found out by the order column (CP-69)."""
        return self._change.order

    @property
    def branch(self) -> str:
        return self._branch

    @property
    def has_key(self) -> bool:
        return bool(self.context.key_field_ids)

    @property
    def key_field_ids(self) -> tuple[int, ...]:
        """Field ids of the key. InvalidKeyError for a table without one."""
        if not self.has_key:
            raise InvalidKeyError(
                f"table {self.name} has no key: create it with key=[...] or name one with set_key([...])."
            )
        return self.context.key_field_ids

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the key columns in key order. InvalidKeyError for a table without a key."""
        return key_names(self.schema, self.key_field_ids)

    @property
    def prefix_encoding(self) -> str:
        """How prefix deletes and replacements are written: "range" or "equality"."""
        if self.blind_deletes == "equality":
            return "equality"
        return property_one_of(self.context.properties, PREFIX_ENCODING, PREFIX_ENCODINGS)

    @property
    def blind_deletes(self) -> str:
        """SP-22: what blind deletes of this table may leave, one of BLIND_DELETES_VALUES. Those that it forbids are
        staged all the same, and their rows are found instead."""
        return blind_deletes(self.context.properties)

    def plan(
        self,
        where: BooleanExpression | None = None,
        *,
        may_match: Callable[[DataFile], bool] | None = None,
        covered: SpanArray | None = None,
    ) -> tuple[RowTask, ...]:
        """Tasks of the rows that the current verb finds: those of the base with everything that earlier verbs staged.

        `may_match`: which data files that others add would have mattered; by default those that may match the filter.
        `covered`: the verb looks for the rows that these spans cover (CP-83).
        """
        self._write_blind_deletes()
        return self._change.plan(where, may_match, covered)

    def plan_before_verb(self, where: BooleanExpression | None, holds: Holds) -> tuple[RowTask, ...]:
        """What `plan` gives, without what the current verb staged, whose deletes wait on."""
        return self._change.plan_before_verb(where=where, may_match=holds)

    def look(self, where: BooleanExpression) -> tuple[RowTask, ...]:
        """What `plan` would give, without having decided by it."""
        self._write_blind_deletes()
        return self._change.look(where)

    @property
    def next_sequence_number(self) -> int:
        """The sequence number that stands for "newer than everything that `plan` shows"."""
        return self._change.next_sequence_number

    def act_as(self, statement: str) -> None:
        """SP-20, SP-21: what the current verb reads from now on, it reads as a "delete", "update" or "merge" of the
        table does, and deletes as one. Without a word it deletes as a "delete"."""
        self._statement = statement
        name = f"write.{statement}.isolation-level"
        self._change.isolate(property_one_of(self.context.properties, name, ISOLATION_LEVELS))

    # -- what verbs stage ---------------------------------------------------------------------------------------------

    def begin_verb(self) -> None:
        """Everything staged from now on belongs to the next verb."""
        self._write_blind_deletes()
        self._change.begin_verb()
        self._statement = "delete"

    def conformed(
        self,
        rows: Any,
        on_refused: str = "fail",
        *,
        whole_groups: Sequence[str] = (),
        tests: Sequence[RowTest] = (),
        numbered_by: str | None = None,
    ) -> ConformedRows:
        """Rows as the caller gave them, as a stream of batches in the table's schema.

        A diverted row takes along the rows with the same values in the columns `whole_groups` (CP-24). `tests`: what
        the verb asks of rows besides the table's constraints. `numbered_by`: a column with the indexes of the rows in
        the caller's input.
        """
        given = as_reader(rows, schema=arrow_schema(self.schema))
        checks = (*row_tests(self.context, table=self.name), *tests)
        return ConformedRows(
            given, self.schema, on_refused=on_refused, checks=checks, whole_groups=whole_groups, numbered_by=numbered_by
        )

    def add_rows(
        self,
        rows: ConformedRows,
        batches: Iterable[pa.RecordBatch] | None = None,
        *,
        memory_bytes: int | None = None,
    ) -> None:
        """Write rows to data files. `batches` come from `rows` by way of what the verb does to them."""
        self.add_batches(rows if batches is None else batches, memory_bytes=memory_bytes)
        self.note_refused(rows)

    def add_batches(self, batches: Iterable[pa.RecordBatch], *, memory_bytes: int | None = None) -> None:
        """Write batches in the table's schema to data files, within the table's memory or a part of it."""
        context = self.context if memory_bytes is None else self.context.with_memory(memory_bytes)
        staged = write_conformed(context, batches)
        self._written.extend(staged.file_paths)
        self._add(staged)

    def note_refused(self, rows: ConformedRows) -> None:
        """Report the rows that the stream diverted; call it when the stream is exhausted."""
        if rows.refused is not None:
            self._refused.append(rows.refused)

    def adopt_files(
        self, staged: StagedFiles, *, since: int | None = None, held_against: Mapping[str, str] | None = None
    ) -> None:
        """Take data files of another writer; if the commit fails, those of them stay that the draft did not write.

        `held_against`: the table's properties when each row was held against its range partitions; None where rows were
        not, so that the files' bounds decide (RP-6).

        `since`: the table's last sequence number before they were written, for the check that they were not committed
        before (CP-23); None where the batch that they belong to says so (CP-14).
        """
        if since is not None:
            self._change.note_adopted(staged.file_paths, since)
        if held_against is None or held_against.get(RANGE_PARTITIONS) != self.context.properties.get(RANGE_PARTITIONS):
            self._change.note_unchecked(data.file_path for data in staged.data_files)
        self._add(staged)

    def note_written(self, locations: Iterable[str]) -> None:
        """These files go with the draft if it fails."""
        self._written.extend(locations)

    def name_columns(self) -> None:
        """LK-19: the commit gives the table's name mapping the names of its columns; the draft reads by them."""
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
        """CP-27: the current verb was given every column of the table, and is committed while those are all."""
        self._change.replaces_whole_rows = True

    def keep_unchanged(self, since: int | None) -> None:
        """CP-83: commit only if no row came into what the verbs delete or read after this snapshot."""
        if since is not None:
            self._blind.scope = self._change.scope = Scope(since)

    def deletes_where(self, where: BooleanExpression) -> None:
        """CP-83: all rows that the current verb deletes match the filter."""
        if self._change.scope is not None:
            self._change.scope.state(where)

    def check_unchanged(self) -> None:
        """CP-83: for a dry run, what the commit would check."""
        self._write_blind_deletes()
        self._change.check_unchanged(self.view, self.name)

    def replace_spans(self, spans: SpanArray) -> None:
        """RP-19: delete what the spans cover, as the commit finds it. For drafts of one verb."""
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
        """Delete live rows of planned files by position; with its last row gone a file leaves the table.

        SP-21: in copy-on-write the files leave, and their other rows are written anew, many files at once where the
        draft has a place for that. `written_anew`: among the adopted files are these rows as they are after an update.
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
        """CP-38: because these live rows of planned files are there, the verb leaves out rows that it was given; see
        `StagedChange.rely_on`."""
        self._change.rely_on(find, row_count)

    def say(self, name: str, value: str) -> None:
        """Let the summary of the snapshot have a property besides those of the options."""
        self.said[name] = value

    @property
    def is_published(self) -> bool:
        """Whether another branch may have rows that this one gets later, with the numbers that they have (MT-31)."""
        return publish_target_of(self.view.metadata, self._branch) is not None

    def remove_files(self, tasks: Sequence[RowTask], where: BooleanExpression) -> bool:
        """Remove planned files of which every row matches; False where one has to stay."""
        return self._change.remove_files(tasks, where)

    # -- commit -------------------------------------------------------------------------------------------------------

    def is_applied(self, options: CommitOptions) -> bool:
        """Whether this handle's metadata shows that the batch was committed before; the commit asks again."""
        name = batch_name(options.application_id, options.batch_id)
        if name is None:
            return False
        stored = applied_batch(self._iceberg.metadata.properties, self._branch, name.application_id)
        return is_applied(stored, name.batch_id)

    def commit(self, options: CommitOptions, *, started: float) -> CommitResult:
        """Commit everything staged as one snapshot; nothing staged commits nothing."""
        pending = self.pending(options)
        outcome = commit_alone(pending, options, self._fate)
        return self.conclude(pending, outcome, started=started)

    def pending(self, options: CommitOptions) -> PendingCommit:
        """Everything staged, as the commit takes it; `conclude` follows."""
        self._write_blind_deletes()
        return PendingCommit(
            self._iceberg,
            StagedChangeByVersion(self._change, self.context, self._written, table=self.name),
            ref=self._branch,
            snapshot_properties={**(options.snapshot_properties or {}), **self.said, **self.order.summary()},
        )

    def conclude(self, pending: PendingCommit, outcome: CommitOutcome, *, started: float) -> CommitResult:
        """The result of the commit. The handle moves to it."""
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
        """Whether every row that the draft deletes was found; a blind delete finds none."""
        return not self._blind and self._change.deleted_row_count is not None

    def find_deleted_rows(self) -> None:
        """For a dry run: rows that blind deletes would take are found (SP-22), and so counted."""
        self.context = replace(self.context, properties={**self.context.properties, BLIND_DELETES: BLIND_OFF})

    def dry_run_result(self, *, started: float) -> CommitResult:
        """What committing the draft would delete."""
        self._write_blind_deletes()
        unchanged = self.unchanged(already_applied=False, started=started)
        return dry_run_result_of(self._change, unchanged, refused=self._all_refused())

    def refresh(self) -> None:
        """Move the table's handle to the newest metadata, for the next draft."""
        move_to_newest(self._iceberg)

    def has_expired(self) -> bool:
        """Whether the snapshot that the verbs start from is not in the table any more; the handle is at the newest
        metadata then, for the next draft."""
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
        with removing_on_failure(self._fate, self.discard):
            yield

    def _write_blind_deletes(self) -> None:
        """Write the deletes of the current verb, one file for each list of columns; find the rows of those that may not
        be left in the table (SP-22)."""
        if self._blind and self.blind_deletes != BLIND_DELETES_DEFAULT:
            self._find_blindly_deleted()
        if not self._blind:
            return
        # A blind delete is global: it knows no partition of the rows that it is for (`specs/decisions`).
        spec_id = self._global_spec_id()
        for keys, beside in self._blind.take_keys():
            self._keep(write_equality_deletes(self.context, keys, spec_id=spec_id, beside=beside))
        for spans in self._blind.take_spans():
            self._keep([write_range_delete_file(self.context, spans, spec_id=spec_id)])

    def _find_blindly_deleted(self) -> None:
        """SP-22: delete by position the earlier rows that the current verb's spans, or keys as spans, cover."""
        spans = self._blind.take_spans()
        if self.blind_deletes == BLIND_OFF:
            spans += self._blind.take_keys_as_spans()
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
