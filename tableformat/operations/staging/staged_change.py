"""The staged files of a draft, operation by operation, and the one change that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyiceberg.expressions import BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.by_format_version import ChangeByFormatVersion
from tableformat.commit.change import ChangeKind, FileKey, TableChange, UnchangedScope, file_key, operation_of
from tableformat.commit.coverage_change import coverage_for
from tableformat.commit.delete_scope import check_columns_are_there
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.commit.required_columns import refuse_nulls_of_before
from tableformat.commit.unchanged import check_unchanged
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CommitConflictError, InvalidArgumentError
from tableformat.keys.table_key import key_field_ids, key_names
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask, scan_of
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.named_twice import named_twice_error, paths_named_twice
from tableformat.metadata.snapshot_view import SnapshotView, last_sequence_number
from tableformat.operations.evolution.column_names import metadata_with_names, naming_columns
from tableformat.operations.staging.delete_filters import RecordedDeletes
from tableformat.operations.staging.head_filter import filter_at
from tableformat.operations.staging.order import DraftOrder
from tableformat.operations.staging.reached_rows import ReachedRows
from tableformat.operations.staging.relied_rows import ReliedRows
from tableformat.operations.staging.replaced_files import ReplacedSpans
from tableformat.operations.staging.scope import Scope
from tableformat.operations.staging.staged_verbs import StagedVerb, files_on_top
from tableformat.properties import NAME_MAPPING, RANGE_PARTITIONS, SERIALIZABLE, SNAPSHOT
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import StagedFilesOnTop, plan_scan
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.row_deletes import RowsToDelete, own_row_deletes, write_row_deletes
from tableformat.write.rows.checks import refuse_changed_checks


@dataclass(frozen=True, slots=True)
class _Read:
    """A read on which an operation depends."""

    where: BooleanExpression | None
    may_match: Callable[[DataFile], bool] | None
    """Whether a data file may hold rows that it would have read. None: the files that may match the filter."""
    isolation: str
    is_of_spans: bool = False
    """Whether it searched by spans, which are in the scope (CP-83)."""


class StagedChange:
    """The staged changes, on top of the snapshot that the draft is based on."""

    def __init__(self, view: SnapshotView, context: MergeContext, *, carries_rows: bool = False) -> None:
        """`carries_rows`: whether operations may rewrite rows of planned files that they did not ask for."""
        self._view = view
        self._context = context
        self._carries_rows = carries_rows
        self._verbs: list[StagedVerb] = []
        self._positions: dict[str, RowsToDelete] = {}
        """Rows of committed and staged files that the draft deletes by position."""
        self._removed: dict[str, DataFile] = {}
        """Files without remaining rows."""
        self._removed_deletes: dict[FileKey, DeleteFile] = {}
        self._updated: dict[str, DataFile] = {}
        """Committed files with rows that are rewritten by an update."""
        self._added_paths: set[str] = set()
        """Data files of all operations."""
        self._carried: set[str] = set()
        """New files with rows that were copied from removed files."""
        self._reads: list[_Read] = []
        self._read_files: dict[str, DataFile] = {}
        """Data files that operations searched for rows (CP-88)."""
        self._isolation = SERIALIZABLE
        """The isolation level of the current operation, which decides which concurrent changes conflict (SP-20)."""
        self._reached_rows = ReachedRows()
        self._relied = ReliedRows()
        self._counted_row_count = 0
        self._is_uncounted = False
        """Whether files were removed whose rows had been partly deleted before."""
        self._unchecked: set[str] = set()
        """Data files whose rows were not checked against the table's range partitions."""
        self._adopted: dict[str, int] = {}
        """Files that other processes staged, each with the table's last sequence number before it was written."""
        self.replaced: ReplacedSpans | None = None
        """The replacement that is planned again on the head of each attempt. The draft then has no other operation."""
        self.order = DraftOrder(view)
        """The comparisons of the operations by the order column."""
        self.replaces_whole_rows = False
        """CP-27: stored rows with the same keys are deleted, with their values in columns that the new rows lack."""
        self.scope: Scope | None = None
        """CP-83: None if the caller does not ask for unchanged rows."""
        self.recorded = RecordedDeletes(view)
        """The deletes that scanned for rows while a range is retired (RP-13)."""
        self.names_columns = False
        """LK-19: whether foreign files were added whose columns are found by the table's column names."""
        self._named_twice: frozenset[str] = frozenset()
        """Planned data files that stay in the table even without a row (MT-64)."""

    def begin_verb(self) -> None:
        self._verbs.append(StagedVerb())
        self._isolation = SERIALIZABLE
        if self.scope is not None:
            self.scope.begin_verb()

    def isolate(self, level: str) -> None:
        """SP-20: read at this level from now on in the current operation; one of ISOLATION_LEVELS."""
        self._isolation = level

    def add_data_files(self, files: Iterable[DataFile]) -> None:
        added = list(files)
        self._added_paths.update(data.file_path for data in added)
        self._verbs[-1].data_files.extend(added)

    def note_adopted(self, paths: Iterable[str], since: int) -> None:
        """CP-23: these files may have been committed before, by a snapshot with a number above `since`."""
        self._adopted.update(dict.fromkeys(paths, since))

    def note_unchecked(self, paths: Iterable[str]) -> None:
        """RP-6: the rows of these files were not checked against the table's range partitions."""
        self._unchecked.update(paths)

    @property
    def unchecked_paths(self) -> frozenset[str]:
        return frozenset(self._unchecked)

    def add_delete_file(self, delete: DeleteFile) -> None:
        self._verbs[-1].delete_files.append(delete)

    @property
    def deleted_row_count(self) -> int | None:
        """Number of rows that operations found and deleted. None if a blind delete was staged, which counts no rows."""
        if self.replaced is not None:
            return self.replaced.deleted_row_count
        is_blind = any(verb.delete_files for verb in self._verbs)
        return None if is_blind or self._is_uncounted else self._counted_row_count

    def rebase(self, view: SnapshotView) -> None:
        """Continue with the same snapshot in newer metadata."""
        self._view = view

    @property
    def view(self) -> SnapshotView:
        """The snapshot that the draft is based on."""
        return self._view

    @property
    def next_sequence_number(self) -> int:
        """Greater than the sequence numbers of all files in a plan of the current operation."""
        return last_sequence_number(self._view.metadata) + len(self._verbs) + 1

    def plan(
        self,
        where: BooleanExpression | None,
        may_match: Callable[[DataFile], bool] | None = None,
        covered: SpanArray | None = None,
    ) -> tuple[RowTask, ...]:
        """Tasks for an operation that reads: the base, with the changes of all earlier operations on top.

        The commit then checks that no other commit added a file that could have mattered (CP-5). `may_match` decides
        which files could, if the operation knows this better than the filter.

        SP-71: if the other rows of a file are carried, its task has all deletes of the file, including deletes that
        reach no row selected by the filter.
        """
        self._reads.append(_Read(where, may_match, self._isolation, is_of_spans=covered is not None))
        if self.scope is not None and covered is not None:
            self.scope.add_spans(covered)
        plan = plan_scan(
            self._view,
            where,
            staged=self._on_top(self._verbs),
            keeps_deletes=self._carries_rows,
            touching=covered,
        )
        return self._noted(plan)

    def _noted(self, plan: ScanPlan) -> tuple[RowTask, ...]:
        self._read_files.update((task.data_file.file_path, task.data_file) for task in plan.tasks)
        self._named_twice |= paths_named_twice((*(task.data_file for task in plan.tasks), *plan.covered))
        return tuple(self._with_staged(plan.tasks))

    @property
    def read_files(self) -> tuple[DataFile, ...]:
        """CP-88: the data files that were searched for rows, without duplicates."""
        return tuple(self._read_files.values())

    def plan_before_verb(
        self,
        touching: SpanArray | None = None,
        *,
        where: BooleanExpression | None = None,
        may_match: Callable[[DataFile], bool] | None = None,
    ) -> tuple[RowTask, ...]:
        """The rows that existed before the current operation, because its deletes spare its own rows. The filter and
        the conflicts work as in `plan`."""
        self._reads.append(_Read(where, may_match, self._isolation, is_of_spans=may_match is None))
        plan = plan_scan(
            self._view,
            where,
            staged=self._on_top(self._verbs[:-1]),
            keeps_deletes=self._carries_rows,
            touching=touching,
        )
        return self._noted(plan)

    def look(self, where: BooleanExpression | None) -> tuple[RowTask, ...]:
        """Like `plan`, for an operation that has not decided yet whether to depend on the read."""
        return tuple(self._with_staged(plan_scan(self._view, where, staged=self._on_top(self._verbs)).tasks))

    def remove_files(self, tasks: Sequence[RowTask], where: BooleanExpression | None) -> bool:
        """RP-17: remove files, found by `look`, whose rows are all deleted. False if one has to stay (MT-64)."""
        if paths_named_twice(tuple(task.data_file for task in tasks)):
            return False
        self._reads.append(_Read(where, None, self._isolation))
        for task in tasks:
            scan = scan_of(task)
            self._is_uncounted |= scan.has_deletes or task is not scan
            self._counted_row_count += task.data_file.record_count
            self._remove(scan)
        return True

    def delete_positions(self, task: RowTask, positions: PositionSet, *, written_anew: bool = False) -> None:
        """Delete live rows of a planned file. If no row remains, the file leaves the table with its row deletes.

        `written_anew`: the staged files contain the updated versions of these rows (CP-6).
        """
        data = task.data_file
        if written_anew:
            self._updated[data.file_path] = data
        self._counted_row_count += len(positions)
        scan = scan_of(task)
        if data.file_path in self._named_twice:
            self._check_entries_agree(scan)
        self._positions[data.file_path] = RowsToDelete(scan, self._staged_positions(data).union(positions))
        if data.file_path in self._named_twice:
            return
        if len(deleted_positions(task, self._context).union(positions)) == data.record_count:
            self._remove(scan)

    def rely_on(self, find: Callable[[], Iterable[tuple[RowTask, PositionSet]]], row_count: int) -> None:
        """CP-38: the current operation does not add some rows because these rows of planned files exist. `row_count`:
        the number of rows whose keys `find` holds in memory. The commit may call `find`."""
        if self._isolation == SERIALIZABLE:
            self._relied.add(lambda: self._committed(find()), row_count)

    def _committed(self, found: Iterable[tuple[RowTask, PositionSet]]) -> Iterator[tuple[DataFile, PositionSet]]:
        """The found rows, without rows that the draft itself adds."""
        for task, positions in found:
            if positions and not self.is_staged(task):
                yield task.data_file, positions

    def may_leave(self, task: RowTask) -> bool:
        """Whether the file can be replaced by other files. It cannot if another entry also names it (MT-64)."""
        return task.data_file.file_path not in self._named_twice

    def is_staged(self, task: RowTask) -> bool:
        """Whether the draft added the file, so that it is not in the table yet."""
        return task.data_file.file_path in self._added_paths

    def replace_file(self, task: RowTask, deleted: PositionSet, carried: Sequence[DataFile]) -> None:
        """SP-21: remove a planned file with all of its rows, and add the files with its remaining rows."""
        self._counted_row_count += len(deleted)
        self._remove(scan_of(task))
        self._carried.update(data.file_path for data in carried)
        self.add_data_files(carried)

    @property
    def added_data_files(self) -> tuple[DataFile, ...]:
        return tuple(data for verb in self._verbs for data in verb.data_files if data.file_path not in self._removed)

    def new_row_count(self, added: Sequence[DataFile]) -> int:
        """The number of rows in the added files that were not in the table before."""
        return sum(data.record_count for data in added if data.file_path not in self._carried)

    def _check_entries_agree(self, task: FileScanTask) -> None:
        """MT-64: check that all entries of a path have the same row deletes: a row delete reaches all of them."""
        earlier = self._positions.get(task.data_file.file_path)
        if earlier is not None and own_row_deletes(earlier.task) != own_row_deletes(task):
            raise named_twice_error(task.data_file.file_path, "rows cannot be deleted in it by position")

    def summary(self) -> dict[str, str]:
        """Properties of the summary about the operations."""
        return {**self.recorded.summary, **self.order.summary()}

    def finish(self, context: WriteContext, written: list[str]) -> TableChange:
        """Write the row deletes in the form of the context's format version, and return the change that the draft
        commits.

        The paths of new files are added to `written`. It may be called again for another format version.
        """
        self._apply_to_earlier_verbs()
        staged_paths = {data.file_path for verb in self._verbs for data in verb.data_files}
        row_deletes = write_row_deletes(
            context, [rows for path, rows in self._positions.items() if path not in self._removed], self._context
        )
        written.extend(delete.file_path for delete in row_deletes.added)
        removed = tuple(data for path, data in self._removed.items() if path not in staged_paths)
        added = self.added_data_files
        added_deletes = (*(delete for verb in self._verbs for delete in verb.delete_files), *row_deletes.added)
        removed_deletes = (*self._removed_deletes.values(), *row_deletes.replaced)
        return TableChange(
            operation=operation_of(added, (*added_deletes, *removed)),
            kind=ChangeKind.SCAN_BASED if self._reads else ChangeKind.BLIND,
            deleted_row_count=self.deleted_row_count,
            records_deletes=self.recorded.needs_snapshot,
            added_data_files=added,
            added_delete_files=added_deletes,
            removed_data_files=removed,
            removed_delete_files=removed_deletes,
            updated_data_files=tuple(
                data for path, data in self._updated.items() if path not in {*self._removed, *staged_paths}
            ),
            narrowed_data_files=tuple(
                rows.task.data_file
                for path, rows in self._positions.items()
                if path not in {*self._removed, *staged_paths}
            ),
            adopted_paths=frozenset(self._adopted),
            adopted_since=min(self._adopted.values(), default=0),
            planned_snapshot_id=self._view.snapshot.snapshot_id if self._view.snapshot else None,
            planned_sequence_number=self._view.sequence_number,
        )

    def judged_by(self, change: TableChange, head: SnapshotView) -> TableChange:
        """CP-5, CP-6, CP-38, SP-20: the change, with its reads stated in the types and specs of this head. Other
        commits may have added files with a spec, or with wider columns, that the planned metadata does not have."""
        if not self._reads:
            return change
        removed = {data.file_path for data in change.removed_data_files}
        rows = {path: rows.positions for path, rows in self._positions.items() if path not in removed}
        return replace(
            change,
            may_match=self._read_at(SERIALIZABLE, head),
            may_hold_moved_rows=self._read_at(SNAPSHOT, head),
            reached=lambda deletes, data_files: self._reached_rows.files(head, deletes, data_files, rows),
            relied_data_files=self._relied.data_files,
            relied_reached=lambda deletes, data_files: self._relied.reached(head, deletes, data_files),
        )

    def _read_at(self, level: str, head: SnapshotView) -> Callable[[DataFile], bool]:
        """A test whether a data file can hold rows that were read at this isolation level."""
        reads = [read for read in self._reads if read.isolation == level]
        filters = [read.may_match or filter_at(head, read.where, self._view.schema) for read in reads]
        return lambda data: any(may_match(data) for may_match in filters)

    def unchanged_on(self, head: SnapshotView) -> UnchangedScope | None:
        """CP-83: the ranges that must not get new rows. Raises InvalidArgumentError if operations only add rows."""
        if self.scope is None:
            return None
        if self.replaced is not None:
            self.scope.add_spans(self.replaced.spans)
        reads = [read for read in self._reads if not read.is_of_spans]
        if self._added_paths and not (reads or self.scope):
            raise InvalidArgumentError(
                "if_unchanged_since applies to rows that an operation deletes or reads, but this operation only adds "
                "rows. Nothing was changed. Remove the option."
            )
        schema = self._view.schema
        return self.scope.on(head, [read.may_match or filter_at(head, read.where, schema) for read in reads], schema)

    def check_unchanged(self, head: SnapshotView, subject: str) -> None:
        """CP-83: perform the check of a commit on this head."""
        scope = self.unchanged_on(head)
        if scope is not None:
            check_unchanged(scope, head, subject)

    def _apply_to_earlier_verbs(self) -> None:
        """Equality and range deletes spare rows of their own commit (DA-2, RD-2). So rows of earlier operations are
        deleted by position."""
        if len(self._verbs) < 2:
            return
        plan = plan_scan(replace(self._view, snapshot=None), staged=self._on_top(self._verbs))
        self._removed.update({data.file_path: data for data in plan.covered})
        for task in plan.tasks:
            if task.has_deletes:
                deleted = deleted_positions(task, self._context).union(self._staged_positions(task.data_file))
                self._positions[task.data_file.file_path] = RowsToDelete(task, deleted)
                if len(deleted) == task.data_file.record_count:
                    self._removed[task.data_file.file_path] = task.data_file

    def _remove(self, task: FileScanTask) -> None:
        """DA-7: remove a data file with its deletion vector and its path-scoped position delete files."""
        data = task.data_file
        self._removed[data.file_path] = data
        self._removed_deletes.update({file_key(delete): delete for delete in own_row_deletes(task)})

    def _with_staged(self, tasks: Iterable[FileScanTask]) -> Iterator[RowTask]:
        """The tasks of files that are not removed, with the rows that the draft deleted by position."""
        for task in tasks:
            path = task.data_file.file_path
            if path not in self._removed:
                staged = self._positions.get(path)
                yield task if staged is None else NarrowedTask(scan=task, known_positions=staged.positions)

    def _staged_positions(self, data: DataFile) -> PositionSet:
        staged = self._positions.get(data.file_path)
        return PositionSet.empty() if staged is None else staged.positions

    def _on_top(self, verbs: list[StagedVerb]) -> StagedFilesOnTop:
        return files_on_top(verbs, last_sequence_number(self._view.metadata) + 1)


class StagedChangeByVersion(ChangeByFormatVersion):
    """The change that a draft commits. Its rows meet the constraints of the table that they were staged for (CK-3)."""

    def __init__(self, staged: StagedChange, context: WriteContext, written: list[str], *, table: str) -> None:
        """The paths of new files are added to `written`. `table` is for messages."""
        super().__init__()
        self._staged = staged
        self._context = context
        self._written = written
        self._table = table

    def make(self, format_version: int) -> TableChange:
        return self._staged.finish(replace(self._context, format_version=format_version), self._written)

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        """CK-3, RP-6, LK-9: the change on this head. Raises CommitConflictError if the added rows may not meet the
        constraints, ranges or required columns of the head."""
        change = self._staged.judged_by(super().change_on(head, attempt), head)
        change = replace(change, unchanged=self._staged.unchanged_on(head))
        if change.added_data_files:
            refuse_changed_checks(self._context.properties, head.metadata.properties, table=self._table)
            refuse_nulls_of_before(
                change.added_data_files, self._context.schema, head.metadata.schema(), table=self._table
            )
            coverage = coverage_for(
                change.added_data_files,
                head.metadata,
                held_against=self._context.properties.get(RANGE_PARTITIONS),
                unchecked=self._staged.unchecked_paths,
                table=self._table,
            )
            change = replace(change, coverage=coverage)
        replaced = self._staged.replaced
        self._staged.order.check(head, table=self._table)
        if self._staged.names_columns:
            self._refuse_changed_names(head)
        if change.scoped_deletes:
            self._refuse_changed_key(head)
        if change.added_data_files and self._staged.replaces_whole_rows:
            self._refuse_new_columns(head)
        if replaced is None:
            return change
        check_columns_are_there(replaced.field_ids, head, self._table)
        return replaced.added_to(change, head, attempt)

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """LK-19: the files and the names by which their columns are found are committed together."""
        return naming_columns(head.metadata) if self._staged.names_columns else super().beside(head, snapshot)

    def _refuse_changed_names(self, head: SnapshotView) -> None:
        """LK-19: raise CommitConflictError if a name in the files may now belong to another column."""
        planned, now = (
            (metadata.current_schema_id, metadata_with_names(metadata).properties.get(NAME_MAPPING))
            for metadata in (self._staged.view.metadata, head.metadata)
        )
        if planned != now:
            raise CommitConflictError(
                f"the columns of {self._table} were changed while files whose columns are found by name were "
                "checked. Nothing was changed. Run the operation again."
            )

    def _refuse_changed_key(self, head: SnapshotView) -> None:
        """CP-36: raise CommitConflictError if the table's key differs from the key that the deletes may use."""
        metadata = head.metadata
        found = key_field_ids(metadata.schema(), metadata.properties)
        if set(found) != set(self._context.key_field_ids):
            names = ", ".join(key_names(metadata.schema(), found)) or "nothing"
            raise CommitConflictError(
                f"the key of {self._table} was changed concurrently and is now {names}: deletes by the previous key "
                "could match other rows. Nothing was changed. Run the operation again."
            )

    def _refuse_new_columns(self, head: SnapshotView) -> None:
        """CP-27: raise CommitConflictError if the table has columns that did not exist when the rows were staged."""
        known = {field.field_id for field in self._context.schema.fields}
        new = [field.name for field in head.metadata.schema().fields if field.field_id not in known]
        if new:
            raise CommitConflictError(
                f"{', '.join(map(repr, new))} was added to {self._table} concurrently. The rows to upsert lack this "
                "column and would replace rows that may have it. Nothing was changed. Run the operation again."
            )

    def committed(self, outcome: CommitOutcome, io: FileIO) -> TableChange | None:
        change, replaced = super().committed(outcome, io), self._staged.replaced
        if change is None or replaced is None:
            return change
        if outcome.change is None:
            return replaced.change
        replaced.remove_unused(change, io)
        return change
