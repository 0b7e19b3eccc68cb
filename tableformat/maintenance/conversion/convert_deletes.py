"""Converts equality and range deletes to position deletes, on v3 tables to deletion vectors (decision 13).

    plan        which data files the keyed deletes may match, in slices                    conversion_plan.py
    convert     find the deleted rows of these files; reads only their delete columns      convert_files.py
    commit      one slice at a time: adds row deletes, removes files without rows, and removes the keyed deletes
                for which every older data file was searched (CP-11)

The job reads one snapshot. Deletes that others commit in the meantime are not converted. The conflict rules ensure that
none of them is lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation, Snapshot

from tableformat.commit.by_format_version import OnlyInVersion
from tableformat.commit.change import (
    KEYED_KINDS,
    ChangeKind,
    TableChange,
    file_key,
    file_keys,
    is_keyed,
)
from tableformat.commit.commit_status import CommitStatus
from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.commit.snapshot_summary import ROWS_UNCHANGED
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError
from tableformat.filters.predicate import Where, parse_where
from tableformat.maintenance.conversion.conversion_plan import (
    ConversionPlan,
    ConversionSlice,
    plan_conversion,
)
from tableformat.maintenance.conversion.conversion_steps import (
    ConversionKey,
    ConversionProgress,
    change_of_slice,
    convert_slice,
    dead_after,
)
from tableformat.maintenance.conversion.convert_files import ConversionContext, ConvertedFile, discard
from tableformat.maintenance.delete_files.dead_deletes import DeadDelete
from tableformat.maintenance.publishing.carry_appends import TargetRule, carry_appends, keeping_target
from tableformat.maintenance.running.executors import LOCAL, Executor, task_runner
from tableformat.maintenance.running.progress import MAX_COMMITS_DEFAULT, Progress, silent
from tableformat.maintenance.running.tasks import TaskRunner
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB
from tableformat.scan.context import merge_context

_ATTEMPTS: Final = 5
"""How many times in a row the job plans again after a concurrent commit made its plan out of date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertResult(HtmlResult):
    """The result of a conversion. With `dry_run`: the expected result."""

    snapshot_id: int | None
    """The last snapshot of the conversion. If there was nothing to convert, or with `dry_run`: the head of the branch.
    """
    added_position_delete_files_count: int = 0
    """Version 2: one for each data file that has deleted and live rows."""
    added_deletion_vectors_count: int = 0
    """Version 3: one for each data file that has deleted and live rows."""
    removed_position_delete_files_count: int = 0
    """Files that named rows of a single data file. That data file has a new delete file with the same rows, or was
    removed."""
    removed_deletion_vectors_count: int = 0
    """Vectors that were replaced by a new one of their data file, or removed with it."""
    removed_equality_delete_files_count: int = 0
    removed_range_delete_files_count: int = 0
    removed_data_files_count: int = 0
    """Data files without a live row that were removed. Nothing was rewritten for them."""
    deleted_row_count: int = 0
    """Rows that the converted deletes deleted and that no position delete named before."""
    resolved_data_files_count: int = 0
    """Data files that keyed deletes could match, so that their delete columns were read."""
    clean_data_files_count: int = 0
    """Data files that were not opened, because of their bounds, an earlier run (MT-14) or `where`."""
    resumed_data_files_count: int = 0
    """Data files that an earlier, interrupted run had converted. They were searched only for newer deletes."""
    rewritten_bytes: int = 0
    """Bytes of new files with row deletes. Data files are never rewritten."""
    commit_count: int = 0
    proofs: tuple[tuple[str, str], ...] = ()
    """The location of each removed delete file and the reason why it no longer matches a row (MT-10). Delete files that
    were replaced by a new file of the same data file are not included."""
    duration_seconds: float = 0.0
    dry_run: bool = False


TellConverted: TypeAlias = Callable[[SnapshotView, TableChange], None]
"""Called with the planned snapshot and the combined change of all commits of its plan, which is empty if there was
nothing to do."""


def convert_deletes(
    iceberg: IcebergTable,
    branch: str,
    *,
    where: Where | None = None,
    only_paths: frozenset[str] | None = None,
    max_commits: int = MAX_COMMITS_DEFAULT,
    executor: Executor = LOCAL,
    dry_run: bool = False,
    progress: Progress | None = None,
    target_rule: TargetRule = keeping_target,
    tell_converted: TellConverted | None = None,
    kinds: Collection[DeleteKind] = KEYED_KINDS,
    attempts: int = _ATTEMPTS,
    snapshot_properties: Mapping[str, str] | None = None,
) -> ConvertResult:
    """Convert every equality and range delete of the branch's newest snapshot, and move the handle to the result.

    `only_paths` are the locations of the data files that may be converted; None: all files that `where` selects.
    Deletes of any kind that match no row are removed with the last commit. If the branch has a publish target, the
    changes of the target are first carried to the branch (MT-31); `target_rule` determines what the last commit does to
    that target. `tell_converted` is called with the result of the conversion at the end. With only some `kinds`, the
    other deletes remain unchanged, and no record of the searched files is written (MT-89).

    Raises CommitConflictError if other commits made the plan out of date `attempts` times in a row, PublishRefusedError
    if the target has changes that cannot be carried, InvalidArgumentError for an unknown executor, TaskFailedError for
    work that Spark gave up. Commits made before the error remain.
    """
    started = time.perf_counter()
    runner = task_runner(executor)
    move_to_newest(iceberg)
    filter_ = None if where is None else parse_where(where, iceberg.metadata.schema())
    job = _Conversion(
        iceberg,
        branch,
        runner,
        where=filter_,
        only_paths=only_paths,
        max_commits=max_commits,
        dry_run=dry_run,
        progress=progress,
        kinds=frozenset(kinds),
        attempts=attempts,
        snapshot_properties=snapshot_properties or {},
        tell_converted=tell_converted,
    )
    return replace(job.run(target_rule), dry_run=dry_run, duration_seconds=time.perf_counter() - started)


class _Conversion:
    """One run of the job. Its state is the result of its commits, and the converted files that wait for their
    commit."""

    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        runner: TaskRunner,
        *,
        where: BooleanExpression | None,
        only_paths: frozenset[str] | None,
        max_commits: int,
        dry_run: bool,
        progress: Progress | None,
        kinds: frozenset[DeleteKind],
        attempts: int,
        snapshot_properties: Mapping[str, str],
        tell_converted: TellConverted | None,
    ) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._where = where
        self._only_paths = only_paths
        self._max_commits = max_commits
        self._runner = runner
        self._dry_run = dry_run
        self._tell = progress or silent
        self._kinds = kinds
        self._attempts = attempts
        self._snapshot_properties = snapshot_properties
        self._tell_converted = tell_converted
        self._result = ConvertResult(snapshot_id=None)
        self._waiting: dict[ConversionKey, ConvertedFile] = {}
        """MT-17: converted but not committed files. A later plan uses them too if the inputs of the data file did not
        change."""
        self._commits: list[tuple[CommitStatus, TableChange]] = []

    def run(self, target_rule: TargetRule) -> ConvertResult:
        """MT-17: run the job. After a conflict, the remaining files are planned on the newest snapshot.

        Files that are not committed are removed. Files of a commit whose outcome is unknown stay (CP-13).
        """
        attempts_left = self._attempts
        try:
            while True:
                commit_count = self._result.commit_count
                try:
                    self._run_plan(target_rule)
                except CommitConflictError:
                    attempts_left = self._attempts if self._result.commit_count > commit_count else attempts_left - 1
                    if attempts_left == 0:
                        raise
                    move_to_newest(self._iceberg)
                else:
                    return self._result
        finally:
            discard(self._iceberg.io, self._waiting.values(), keep=self._named_locations())

    def _named_locations(self) -> frozenset[str]:
        """CP-51: the locations of the delete files that the table names, or may still come to name."""
        named = (change for status, change in self._commits if status.may_be_named)
        return frozenset(delete.file_path for change in named for delete in change.added_delete_files)

    def _run_plan(self, target_rule: TargetRule) -> None:
        if not self._dry_run:
            carry_appends(self._iceberg, self._branch)
        view = head_view(self._iceberg.metadata, self._iceberg.io, self._branch)
        commits_left = max(self._max_commits - self._result.commit_count, 1)
        plan = plan_conversion(view, merge_context(view), self._where, commits_left, self._kinds, self._only_paths)
        if self._result.commit_count == 0:
            self._result = _before(plan)
        so_far = ConversionProgress(plan, ConversionContext.of(view))
        for part in plan.slices:
            is_last = part is plan.slices[-1]
            files = self._convert(part, so_far)
            dead = dead_after(files.values(), part, so_far) if is_last else ()
            change = change_of_slice(files.values(), part, dead, so_far)
            result = _plus(self._result, files.values(), change, dead, view.metadata.format_version)
            if not self._dry_run and not change.is_empty:
                snapshot_id = self._commit(change, part, so_far, target_rule if is_last else keeping_target)
                so_far.changes.append(change)
                result = replace(result, snapshot_id=snapshot_id, commit_count=result.commit_count + 1)
            for key in files:
                del self._waiting[key]
            self._result = result
        if self._tell_converted is not None:
            self._tell_converted(view, _joined(so_far))

    def _convert(self, part: ConversionSlice, so_far: ConversionProgress) -> dict[ConversionKey, ConvertedFile]:
        """The converted files of the slice, including files that wait from an earlier plan."""

        def tell(file_count: int) -> None:
            so_far.file_count += file_count
            self._tell(so_far.file_count, so_far.plan.file_count, "data files")

        io, is_dry_run = self._iceberg.io, self._dry_run
        return convert_slice(self._runner, io, part, so_far.context, self._waiting, is_dry_run=is_dry_run, tell=tell)

    def _commit(
        self, change: TableChange, part: ConversionSlice, so_far: ConversionProgress, target_rule: TargetRule
    ) -> int | None:
        view = so_far.plan.view
        record = part.record.to_summary() if part.record is not None else {}
        status = CommitStatus()
        self._commits.append((status, change))
        outcome = commit_change(
            self._iceberg,
            _SliceChange(change, view, self._branch, target_rule),
            ref=self._branch,
            snapshot_properties={ROWS_UNCHANGED: "true", JOB: "convert_deletes", **record, **self._snapshot_properties},
            status=status,
        )
        outcome.move(self._iceberg)
        so_far.removed |= file_keys((*change.removed_data_files, *change.removed_delete_files))
        so_far.last_snapshot_id = outcome.snapshot_id
        return outcome.snapshot_id


class _SliceChange(OnlyInVersion):
    """Commits one slice, and applies the rule for the publish target of the branch."""

    def __init__(self, change: TableChange, planned: SnapshotView, branch: str, target_rule: TargetRule) -> None:
        super().__init__(change, planned, "conversion")
        self._branch = branch
        self._target_rule = target_rule

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        return self._target_rule(self.planned, self._branch, head, snapshot)


def _joined(so_far: ConversionProgress) -> TableChange:
    """The commits of one plan as one change of the planned snapshot."""
    plan, changes = so_far.plan, so_far.changes
    return TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.CONVERSION,
        added_delete_files=tuple(delete for each in changes for delete in each.added_delete_files),
        removed_data_files=tuple(data for each in changes for data in each.removed_data_files),
        removed_delete_files=tuple(delete for each in changes for delete in each.removed_delete_files),
        planned_snapshot_id=plan.view.snapshot.snapshot_id if plan.view.snapshot else None,
        planned_sequence_number=plan.view.sequence_number,
        resolved_data_files=frozenset(data.file_path for data in plan.data_files),
    )


def _before(plan: ConversionPlan) -> ConvertResult:
    snapshot = plan.view.snapshot
    return ConvertResult(
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        clean_data_files_count=len(plan.data_files) - plan.file_count,
        resumed_data_files_count=plan.resumed_data_files_count,
    )


def _plus(
    result: ConvertResult,
    files: Collection[ConvertedFile],
    change: TableChange,
    dead: Sequence[DeadDelete],
    format_version: int,
) -> ConvertResult:
    """Add the effect of one slice to the result."""
    form = DeleteKind.DELETION_VECTOR if format_version >= 3 else DeleteKind.POSITION
    added = Counter({form: sum(file.is_reduced for file in files)})
    kinds = Counter(delete.kind for delete in change.removed_delete_files)
    # Vectors share files, so each file is counted once.
    written = {delete.file_path: delete.file_size_bytes for delete in change.added_delete_files}
    return replace(
        result,
        added_position_delete_files_count=result.added_position_delete_files_count + added[DeleteKind.POSITION],
        added_deletion_vectors_count=result.added_deletion_vectors_count + added[DeleteKind.DELETION_VECTOR],
        removed_position_delete_files_count=result.removed_position_delete_files_count + kinds[DeleteKind.POSITION],
        removed_deletion_vectors_count=result.removed_deletion_vectors_count + kinds[DeleteKind.DELETION_VECTOR],
        removed_equality_delete_files_count=result.removed_equality_delete_files_count + kinds[DeleteKind.EQUALITY],
        removed_range_delete_files_count=result.removed_range_delete_files_count + kinds[DeleteKind.RANGE],
        removed_data_files_count=result.removed_data_files_count + len(change.removed_data_files),
        deleted_row_count=result.deleted_row_count
        + sum(file.deleted_row_count - file.deleted_before_count for file in files),
        resolved_data_files_count=result.resolved_data_files_count + len(files),
        rewritten_bytes=result.rewritten_bytes + sum(written.values()),
        proofs=(*result.proofs, *_proofs(change, dead)),
    )


def _proofs(change: TableChange, dead: Sequence[DeadDelete]) -> Iterator[tuple[str, str]]:
    known = {file_key(each.delete): each.proof for each in dead}
    yield from ((each.delete.file_path, each.proof) for each in dead)
    for delete in change.removed_delete_files:
        if is_keyed(delete) and file_key(delete) not in known:
            yield delete.file_path, "all older data files within its bounds were searched for its rows"
