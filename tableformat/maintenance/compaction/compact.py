"""Compaction: stores the same rows in fewer, sorted files without deleted rows (MT-40 to MT-49).

    plan       groups of files of one snapshot, with reasons and savings                   compaction_choice.py
    rewrite    one group at a time: alive rows, sorted, into staged files                  rewrite_group.py
    commit     several groups at a time; a group with a conflict is planned again
    drop       the delete files that no longer match a row                                 dead_afterwards.py

New files carry the sequence number of the planned snapshot. A delete that was committed in the meantime therefore
applies to them as it did to the old files (CP-7). The conflict rules ensure the rest (CP-4, CP-8, CP-9).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.by_format_version import OnlyInVersion
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.publish_target import check_publish_target
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError
from tableformat.maintenance.compaction.compaction_choice import plan_compaction
from tableformat.maintenance.compaction.compaction_plan import (
    CompactionGroup,
    CompactionOptions,
    CompactionPlan,
    GroupKind,
)
from tableformat.maintenance.compaction.dead_afterwards import DroppedDeletes, drop_dead_afterwards, removed_by
from tableformat.maintenance.compaction.rewrite_group import RewriteContext, RewriteTask, rewrite_group
from tableformat.maintenance.running.executors import LOCAL, Executor, task_runner
from tableformat.maintenance.running.progress import MAX_COMMITS_DEFAULT, Progress, check_max_commits
from tableformat.maintenance.running.tasks import TaskRunner, Work
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB
from tableformat.write.staged import StagedFiles

ROUNDS: Final = 3
"""How many times groups with a conflict are planned again on the newest snapshot and rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult(HtmlResult):
    """The result of a compaction. With `dry_run`: the expected result."""

    snapshot_id: int | None
    """The last snapshot of the compaction. If there was nothing to do, or with `dry_run`: the head of the branch."""
    rewritten_data_files_count: int = 0
    """Data files that were removed from the table."""
    added_data_files_count: int = 0
    rewritten_bytes: int = 0
    """Bytes of the data files that were read. Files without a live row are dropped unread."""
    written_bytes: int = 0
    """Bytes of the new data files; 0 with `dry_run`."""
    removed_position_delete_files_count: int = 0
    removed_deletion_vectors_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_range_delete_files_count: int = 0
    not_dropped_because: str = ""
    """The reason why delete files that match no row were left in the branch; empty if none were left."""
    deleted_row_count: int = 0
    """Deleted rows that are no longer in any file. With `dry_run`: an upper bound."""
    group_count: int = 0
    """Committed groups."""
    failed_group_count: int = 0
    """Groups that were given up after repeated conflicts with other commits. Their new files were removed."""
    failed_data_files_count: int = 0
    """Data files in the groups that were given up."""
    commit_count: int = 0
    duration_seconds: float = 0.0
    dry_run: bool = False
    plan: CompactionPlan | None = field(default=None, repr=False, compare=False)
    """The first plan, with groups and reasons."""


@dataclass(frozen=True, slots=True)
class _Rewritten:
    """A group and its new files."""

    group: CompactionGroup
    staged: StagedFiles


def compact(
    iceberg: IcebergTable,
    branch: str,
    options: CompactionOptions,
    *,
    partial_progress: bool = True,
    max_commits: int = MAX_COMMITS_DEFAULT,
    executor: Executor = LOCAL,
    only_paths: frozenset[str] | None = None,
    drops_dead_deletes: bool = True,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> CompactResult:
    """Compact the newest snapshot of the branch, and move the handle to the result.

    `only_paths` are the locations of the data files that may be rewritten; None: all files that the options choose.
    With `partial_progress`, groups are committed in up to `max_commits` snapshots of at least the size of one file.
    Committed groups stay if the job is cancelled. Without it, one snapshot holds all groups, or nothing is committed.
    With `drops_dead_deletes`, a last snapshot drops the delete files that match no row (MT-95).

    Raises CommitConflictError if that last commit keeps meeting conflicts, InvalidArgumentError for an unknown executor
    and for a branch that is a publish target, TaskFailedError for a group that Spark gave up.
    """
    task_runner(executor)  # refuses what is no executor, before anything is read
    check_max_commits(max_commits)
    started = time.perf_counter()
    move_to_newest(iceberg)
    view = head_view(iceberg.metadata, iceberg.io, branch)
    plan = plan_compaction(view, options, only_paths=only_paths)
    result = compact_planned(
        iceberg,
        branch,
        view,
        plan,
        rounds=ROUNDS,
        partial_progress=partial_progress,
        max_commits=max_commits,
        executor=executor,
        dry_run=dry_run,
        progress=progress,
    )
    if dry_run:
        result = _with_removed(result, removed_by(plan, view, branch, with_dead=drops_dead_deletes))
    elif drops_dead_deletes:
        result = _with_dropped(result, drop_dead_afterwards(iceberg, branch))
    return replace(result, duration_seconds=time.perf_counter() - started)


def compact_planned(
    iceberg: IcebergTable,
    branch: str,
    view: SnapshotView,
    plan: CompactionPlan,
    *,
    rounds: int,
    partial_progress: bool = True,
    max_commits: int = MAX_COMMITS_DEFAULT,
    executor: Executor = LOCAL,
    dry_run: bool = False,
    snapshot_properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> CompactResult:
    """Execute a plan of the snapshot `view`. Groups with a conflict are planned again as `compact` plans them, `rounds`
    times in all. With one round they are given up, and the work of rewriting them is lost."""
    started = time.perf_counter()
    # The commit checks this too, but only after every group has been rewritten.
    check_publish_target(
        _change([_Rewritten(group, StagedFiles()) for group in plan.groups], plan), view.metadata, branch
    )
    if dry_run:
        result = _describe(plan)
    else:
        job = _Compaction(
            iceberg,
            branch,
            task_runner(executor),
            max_commits,
            partial_progress,
            progress,
            rounds=rounds,
            snapshot_properties=dict(snapshot_properties or {}),
        )
        result = job.run(plan, view)
    return replace(result, plan=plan, dry_run=dry_run, duration_seconds=time.perf_counter() - started)


class _Compaction:
    """One run of the job. Its state is the result of the commits so far."""

    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        runner: TaskRunner,
        max_commits: int,
        partial_progress: bool,
        progress: Progress | None,
        *,
        rounds: int,
        snapshot_properties: Mapping[str, str],
    ) -> None:
        self._rounds = rounds
        self._snapshot_properties = snapshot_properties
        self._iceberg = iceberg
        self._branch = branch
        self._runner = runner
        self._max_commits = max_commits
        self._partial_progress = partial_progress
        self._progress = progress
        self._result = CompactResult(snapshot_id=None)

    def run(self, plan: CompactionPlan, view: SnapshotView) -> CompactResult:
        """MT-47: plan groups with a conflict again from their remaining files, `rounds` times in all."""
        self._result = replace(self._result, snapshot_id=plan.snapshot_id)
        for attempt in range(1, self._rounds + 1):
            failed = self._run_plan(plan, view, is_last=attempt == self._rounds)
            if not failed or attempt == self._rounds:
                failed_files = sum(len(group.tasks) for group in failed)
                return replace(self._result, failed_group_count=len(failed), failed_data_files_count=failed_files)
            paths = frozenset(data.file_path for group in failed for data in group.data_files)
            move_to_newest(self._iceberg)
            view = head_view(self._iceberg.metadata, self._iceberg.io, self._branch)
            plan = plan_compaction(view, plan.options, only_paths=paths)
        raise AssertionError("the last attempt returns")

    def _run_plan(self, plan: CompactionPlan, view: SnapshotView, *, is_last: bool) -> list[CompactionGroup]:
        """Returns the groups with a conflict. Files of groups that are not committed are removed in every case."""
        if not plan.groups:
            return []
        # A snapshot with less than one file costs more than the progress is worth.
        batch_bytes = max(plan.rewritten_bytes / self._max_commits, plan.options.target_file_size_bytes)
        failed: list[CompactionGroup] = []
        waiting: list[_Rewritten] = []
        try:
            with closing(self._rewritten(plan, view)) as groups:
                for count, each in enumerate(groups, 1):
                    waiting.append(each)
                    staged_bytes = sum(each.group.rewritten_bytes for each in waiting)
                    is_full = self._partial_progress and staged_bytes >= batch_bytes
                    if is_full or count == len(plan.groups):
                        batch, waiting = waiting, []
                        failed += self._commit_batch(batch, plan, view, is_last=is_last)
        except BaseException:
            _remove(waiting, view)
            raise
        return failed

    def _rewritten(self, plan: CompactionPlan, view: SnapshotView) -> Generator[_Rewritten, None, None]:
        """The groups with their new files, in order of completion. Groups without a row need no task."""
        rows = _RowCount(plan.row_count, self._progress)
        for group in plan.groups:
            if group.kind is GroupKind.DROP:
                yield _Rewritten(group, StagedFiles())
        groups = [group for group in plan.groups if group.kind is not GroupKind.DROP]
        # In this process one group at a time: it has two threads of its own, and all the memory for writing.
        on_rows = rows.written if self._runner.is_in_process else None
        io = view.io
        work: Work[RewriteTask, RewriteContext, StagedFiles] = Work(
            partial(rewrite_group, on_rows=on_rows), RewriteContext.of(view), lambda staged: staged.delete_all(io)
        )
        results = self._runner.run(work, [_task(group, plan) for group in groups], at_once=1)
        with closing(results):
            for index, staged in results:
                rewritten = _Rewritten(groups[index], staged)
                try:
                    rows.finished(groups[index].row_count)
                except BaseException:
                    _remove([rewritten], view)
                    raise
                yield rewritten

    def _commit_batch(
        self, batch: Sequence[_Rewritten], plan: CompactionPlan, view: SnapshotView, *, is_last: bool
    ) -> list[CompactionGroup]:
        """MT-47: a batch with a conflict is committed group by group, so that one group does not hold up the others."""
        status = CommitStatus()
        with removing_on_failure(status, lambda: _remove(batch, view)):
            try:
                outcome = self._commit(batch, plan, view, status)
            except CommitConflictError:
                if len(batch) == 1 or not self._partial_progress:
                    if is_last and not self._partial_progress:
                        raise
                    _remove(batch, view)
                    return [each.group for each in batch]
            else:
                outcome.move(self._iceberg)
                self._result = _added(self._result, batch, outcome.snapshot_id)
                return []
        failed: list[CompactionGroup] = []
        for index, each in enumerate(batch):
            try:
                failed += self._commit_batch([each], plan, view, is_last=is_last)
            except BaseException:
                _remove(batch[index + 1 :], view)
                raise
        return failed

    def _commit(
        self, batch: Sequence[_Rewritten], plan: CompactionPlan, view: SnapshotView, status: CommitStatus
    ) -> CommitOutcome:
        change = OnlyInVersion(_change(batch, plan), view, "compaction")
        return commit_change(
            self._iceberg,
            change,
            ref=self._branch,
            snapshot_properties={JOB: "compact", **self._snapshot_properties},
            status=status,
        )


class _RowCount:
    """Counts the completed rows and reports them to the caller of the job."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._finished = 0
        self._of_group = 0

    def written(self, row_count: int) -> None:
        self._of_group += row_count
        self._tell()

    def finished(self, row_count: int) -> None:
        """Count a completed group, including its deleted rows."""
        self._finished += row_count
        self._of_group = 0
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._finished + self._of_group, self._total, "rows")


def _task(group: CompactionGroup, plan: CompactionPlan) -> RewriteTask:
    return RewriteTask(
        tasks=group.tasks,
        spec_id=group.spec_id,
        partition=group.partition,
        sequence_number=plan.sequence_number,
        target_file_size_bytes=plan.options.target_file_size_bytes,
        order=plan.options.order,
    )


def _change(batch: Sequence[_Rewritten], plan: CompactionPlan) -> TableChange:
    """CP-7, MT-46: adds the new files with the planned sequence number; removes the old files with their own row
    deletes."""
    return TableChange(
        operation=Operation.REPLACE,
        kind=ChangeKind.REWRITE,
        added_data_files=tuple(data for each in batch for data in each.staged.data_files),
        removed_data_files=tuple(data for each in batch for data in each.group.data_files),
        removed_delete_files=tuple(delete for each in batch for delete in each.group.row_deletes),
        planned_snapshot_id=plan.snapshot_id,
        planned_sequence_number=plan.sequence_number,
    )


def _remove(batch: Sequence[_Rewritten], view: SnapshotView) -> None:
    for each in batch:
        each.staged.delete_all(view.io)


def _with_removed(result: CompactResult, removed: DroppedDeletes) -> CompactResult:
    return replace(
        result,
        removed_position_delete_files_count=removed.kinds[DeleteKind.POSITION],
        removed_deletion_vectors_count=removed.kinds[DeleteKind.DELETION_VECTOR],
        removed_equality_delete_files_count=removed.kinds[DeleteKind.EQUALITY],
        removed_range_delete_files_count=removed.kinds[DeleteKind.RANGE],
        not_dropped_because=removed.not_dropped_because,
    )


def _with_dropped(result: CompactResult, dropped: DroppedDeletes) -> CompactResult:
    """MT-95: adds the dropped delete files to the row deletes that were removed with the groups."""
    left_with_groups = Counter(
        {
            DeleteKind.POSITION: result.removed_position_delete_files_count,
            DeleteKind.DELETION_VECTOR: result.removed_deletion_vectors_count,
        }
    )
    result = _with_removed(result, replace(dropped, kinds=left_with_groups + dropped.kinds))
    if dropped.snapshot_id is None:
        return result
    return replace(result, snapshot_id=dropped.snapshot_id, commit_count=result.commit_count + 1)


def _added(result: CompactResult, batch: Sequence[_Rewritten], snapshot_id: int | None) -> CompactResult:
    groups = [each.group for each in batch]
    kinds = Counter(delete.kind for group in groups for delete in group.row_deletes)
    written = sum(each.staged.row_count for each in batch)
    return replace(
        result,
        snapshot_id=snapshot_id,
        rewritten_data_files_count=result.rewritten_data_files_count + sum(len(group.tasks) for group in groups),
        added_data_files_count=result.added_data_files_count + sum(len(each.staged.data_files) for each in batch),
        rewritten_bytes=result.rewritten_bytes + sum(group.rewritten_bytes for group in groups),
        written_bytes=result.written_bytes + sum(each.staged.written_bytes for each in batch),
        removed_position_delete_files_count=result.removed_position_delete_files_count + kinds[DeleteKind.POSITION],
        removed_deletion_vectors_count=result.removed_deletion_vectors_count + kinds[DeleteKind.DELETION_VECTOR],
        deleted_row_count=result.deleted_row_count + sum(group.row_count for group in groups) - written,
        group_count=result.group_count + len(groups),
        commit_count=result.commit_count + 1,
    )


def _describe(plan: CompactionPlan) -> CompactResult:
    kinds = [delete.kind for group in plan.groups for delete in group.row_deletes]
    return CompactResult(
        snapshot_id=plan.snapshot_id,
        rewritten_data_files_count=plan.rewritten_data_files_count,
        added_data_files_count=sum(group.output_file_count for group in plan.groups),
        rewritten_bytes=plan.rewritten_bytes,
        removed_position_delete_files_count=kinds.count(DeleteKind.POSITION),
        removed_deletion_vectors_count=kinds.count(DeleteKind.DELETION_VECTOR),
        deleted_row_count=sum(group.deleted_row_count for group in plan.groups),
        group_count=len(plan.groups),
    )
