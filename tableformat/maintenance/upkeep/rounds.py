"""One round of upkeep: runs the jobs that are due, within the budgets, without waiting for anything (MT-84, MT-85).

merge levels, or a base      `compaction.levels`, one attempt: after a conflict the next round plans it again
convert equality deletes     if they are many files, or many keys compared with the rows of the table
merge range deletes          if a base was merged, which makes most of them unnecessary, or there are many files
drop dead deletes            row and equality deletes, if a base was merged or there are many of them (MT-95)
rewrite manifests            if planning a scan reads many
expire snapshots             by the table's own properties, in batches
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.metadata_commit import refresh
from tableformat.commit.publish_target import published_to
from tableformat.commit.table_diff import live_files
from tableformat.errors import CommitConflictError, SnapshotNotFoundError, TableFormatError, TableNotFoundError
from tableformat.maintenance.compaction.compact import CompactResult, compact_planned
from tableformat.maintenance.compaction.levels import BASE_REASON, LevelOptions, full_levels, plan_levels
from tableformat.maintenance.conversion.convert_deletes import ConvertResult, convert_deletes
from tableformat.maintenance.delete_files.drop_dead_deletes import DropDeadDeletesResult, drop_dead_deletes
from tableformat.maintenance.delete_files.merge_range_deletes import MergeRangeDeletesResult, merge_range_deletes
from tableformat.maintenance.expiry.expire_snapshots import ExpireResult, expire_snapshots
from tableformat.maintenance.expiry.snapshot_retention import RetentionRequest, plan_expiry
from tableformat.maintenance.rewrite_manifests import RewriteManifestsResult, rewrite_manifests
from tableformat.maintenance.running.executors import LOCAL, Executor, ExecutorChoice
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.maintenance.upkeep.ledger import Ledger
from tableformat.maintenance.upkeep.policy import UpkeepMode, UpkeepPolicy
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import (
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT,
    may_remove_files,
    positive_int,
)

EXPIRED_AT_ONCE: Final = 32
"""The number of snapshots past retention from which they are expired. Each expiry reads the manifests of both sides."""
_DELETE_FILES_MAX: Final = 64
"""The number of row and equality delete files from which dead ones are searched. Also the number of equality delete
files from which they are converted, because with more of them no reader keeps the rows that it found (decision 16)."""
_KEYS_SHARE: Final = 0.1
"""MT-89: the number of keys of equality deletes, as a share of the rows, from which they are converted."""

UpkeepJob = (
    CompactResult
    | ConvertResult
    | MergeRangeDeletesResult
    | DropDeadDeletesResult
    | RewriteManifestsResult
    | ExpireResult
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepResult(HtmlResult):
    """The result of a round; empty if nothing was due. With `dry_run`: the expected result."""

    jobs: tuple[UpkeepJob, ...] = ()
    """The results of the jobs that were due, in order."""
    is_over: bool = True
    """Whether the next round would have nothing to do. False after a merge, which may have filled the next level."""
    lost_conversion_count: int = 0
    """Conversions that were given up because of concurrent commits."""
    duration_seconds: float = 0.0
    dry_run: bool = False

    @property
    def merged_data_files_count(self) -> int:
        return sum(job.rewritten_data_files_count for job in self.jobs if isinstance(job, CompactResult))

    @property
    def added_data_files_count(self) -> int:
        return sum(job.added_data_files_count for job in self.jobs if isinstance(job, CompactResult))

    @property
    def lost_race_count(self) -> int:
        """Merges and conversions that conflicted with a concurrent commit. A later round plans them again."""
        merges = sum(job.failed_group_count for job in self.jobs if isinstance(job, CompactResult))
        return merges + self.lost_conversion_count

    @property
    def converted_delete_files_count(self) -> int:
        """Equality delete files that were converted to position deletes (MT-89)."""
        return sum(job.removed_equality_delete_files_count for job in self.jobs if isinstance(job, ConvertResult))

    @property
    def expired_snapshots_count(self) -> int:
        return sum(job.expired_snapshots_count for job in self.jobs if isinstance(job, ExpireResult))

    @property
    def rewritten_bytes(self) -> int:
        """Bytes of the data files that were merged."""
        return sum(job.rewritten_bytes for job in self.jobs if isinstance(job, CompactResult))

    @property
    def written_bytes(self) -> int:
        """Bytes of new data files, range delete files and row deletes."""
        return sum(job.written_bytes for job in self.jobs if isinstance(job, CompactResult)) + sum(
            job.rewritten_bytes for job in self.jobs if isinstance(job, MergeRangeDeletesResult | ConvertResult)
        )


def rounds_asked_for(
    iceberg: IcebergTable,
    branch: str,
    *,
    executor: Executor | ExecutorChoice = LOCAL,
    progress: Progress | None = None,
) -> Iterator[UpkeepResult]:
    """MT-101: the rounds that the table's properties request. The request may have been withdrawn since they were read.
    No rounds for a table or a branch that does not exist any more."""
    try:
        yield from _rounds(iceberg, branch, executor=executor, dry_run=False, progress=progress, is_asked_for=True)
    except (TableNotFoundError, SnapshotNotFoundError):
        return
    except TableFormatError:
        if not _is_gone(iceberg):
            raise


def _is_gone(iceberg: IcebergTable) -> bool:
    """Whether the table was dropped during a round, together with its files if it was purged."""
    try:
        refresh(iceberg)
    except TableNotFoundError:
        return True
    except TableFormatError:
        return False
    return False


def run_rounds(
    iceberg: IcebergTable,
    branch: str,
    *,
    executor: Executor | ExecutorChoice = LOCAL,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Iterator[UpkeepResult]:
    """Run rounds until nothing more is due, or the seconds of the policy are over. Moves the handle.

    `executor` may depend on the bytes of a merge or a conversion. The policy is read again for each round. Raises the
    errors of `run_round`.
    """
    return _rounds(iceberg, branch, executor=executor, dry_run=dry_run, progress=progress, is_asked_for=False)


def _rounds(
    iceberg: IcebergTable,
    branch: str,
    *,
    executor: Executor | ExecutorChoice,
    dry_run: bool,
    progress: Progress | None,
    is_asked_for: bool,
) -> Iterator[UpkeepResult]:
    started = time.perf_counter()
    while True:
        refresh(iceberg)
        policy = UpkeepPolicy.of(iceberg.metadata.properties)
        if is_asked_for and policy.mode is UpkeepMode.OFF:
            return
        result = run_round(iceberg, branch, policy, executor=executor, dry_run=dry_run, progress=progress)
        yield result
        if result.is_over or dry_run or time.perf_counter() - started >= policy.max_seconds:
            return


def run_round(
    iceberg: IcebergTable,
    branch: str,
    policy: UpkeepPolicy,
    *,
    executor: Executor | ExecutorChoice = LOCAL,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> UpkeepResult:
    """MT-85: run the jobs that are due on the newest snapshot of the branch, and move the handle to the result.

    Rows do not change. Raises the errors of the jobs, except for lost races, whose work is left to the next round.
    """
    started = time.perf_counter()
    refresh(iceberg)
    round_ = _Round(iceberg, branch, policy, executor, dry_run, progress or silent)
    jobs = tuple(round_.jobs())
    return UpkeepResult(
        jobs=jobs,
        is_over=round_.is_over,
        lost_conversion_count=round_.lost_conversion_count,
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )


def has_base(merged: CompactResult) -> bool:
    """Whether one of the merges had a base with the files above it."""
    assert merged.plan is not None, "a compaction has a plan"
    return any(BASE_REASON in group.reasons for group in merged.plan.groups)


def delete_files(view: SnapshotView) -> list[DeleteFile]:
    """The live delete files of the snapshot."""
    files = live_files(view.io, view.metadata, manifests_of(view), ManifestContent.DELETES)
    return [file for file in files if isinstance(file, DeleteFile)]


def _data_manifests(view: SnapshotView) -> list[ManifestFile]:
    return [each for each in manifests_of(view) if each.content is ManifestContent.DATA]


class _Round:
    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        policy: UpkeepPolicy,
        executor: Executor | ExecutorChoice,
        dry_run: bool,
        progress: Progress,
    ) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._policy = policy
        self._executor = executor
        self._dry_run = dry_run
        self._progress = progress
        self.is_over = True
        self.lost_conversion_count = 0

    def jobs(self) -> Iterator[UpkeepJob]:
        if not published_to(self._iceberg.metadata, self._branch):  # MT-30
            merged = self._merge_levels()
            if merged is not None:
                yield merged
            yield from self._convert_equality_deletes()
            merged_base = merged is not None and has_base(merged)
            yield from self._merge_range_deletes(everything=merged_base)
            least = 1 if merged_base else _DELETE_FILES_MAX
            if merged is not None and self._delete_file_count(but=DeleteKind.RANGE) >= least:
                yield drop_dead_deletes(self._iceberg, self._branch, dry_run=self._dry_run, progress=self._progress)
        if self._has_many_manifests():
            yield rewrite_manifests(self._iceberg, self._branch, dry_run=self._dry_run, progress=self._progress)
        if self._expirable_count() >= EXPIRED_AT_ONCE:
            yield expire_snapshots(
                self._iceberg,
                dry_run=self._dry_run,
                clean_expired_files=may_remove_files(self._iceberg.metadata.properties),
                progress=self._progress,
            )

    def _executor_for(self, rewritten_bytes: int) -> Executor:
        return self._executor(rewritten_bytes) if callable(self._executor) else self._executor

    def _view(self) -> SnapshotView:
        return head_view(self._iceberg.metadata, self._iceberg.io, self._branch)

    def _merge_levels(self) -> CompactResult | None:
        """MT-80, MT-81, MT-84: one attempt, within the bytes of a round and the rest of the write amplification
        budget."""
        view, policy = self._view(), self._policy
        ledger = Ledger.of(view.metadata, view.snapshot)
        options = LevelOptions(
            fan_in=policy.files_per_level,
            base_share=policy.base_share,
            target_file_size_bytes=policy.target_file_size_bytes,
            max_bytes=policy.max_bytes,
        )
        plan = plan_levels(view, options, bytes_left=ledger.bytes_left(policy.write_amplification))
        if not plan.groups:
            return None
        result = compact_planned(
            self._iceberg,
            self._branch,
            view,
            plan,
            rounds=1,
            executor=self._executor_for(plan.rewritten_bytes),
            dry_run=self._dry_run,
            snapshot_properties=ledger.entry(view.sequence_number),
            progress=self._progress,
        )
        self.is_over = not result.group_count
        return result

    def _convert_equality_deletes(self) -> Iterator[ConvertResult]:
        """MT-89: convert the equality deletes that are left after merges, if resolving them at each first read costs
        more than writing their positions. MT-85: one attempt."""
        view = self._view()
        equality = [each for each in delete_files(view) if each.kind is DeleteKind.EQUALITY]
        key_count = sum(each.record_count for each in equality)
        row_count = sum(each.added_rows_count + each.existing_rows_count for each in _data_manifests(view))
        if not equality or (len(equality) < _DELETE_FILES_MAX and key_count < _KEYS_SHARE * row_count):
            return
        ledger = Ledger.of(view.metadata, view.snapshot)
        if not ledger.bytes_left(self._policy.write_amplification):
            return
        try:
            yield convert_deletes(
                self._iceberg,
                self._branch,
                max_commits=1,
                executor=self._executor_for(sum(each.file_size_bytes for each in equality)),
                dry_run=self._dry_run,
                progress=self._progress,
                kinds={DeleteKind.EQUALITY},
                attempts=1,
                snapshot_properties=ledger.entry(view.sequence_number),
            )
        except CommitConflictError:
            self.lost_conversion_count += 1

    def _merge_range_deletes(self, *, everything: bool) -> Iterator[MergeRangeDeletesResult]:
        """MT-82: merge range delete files of one size, as for data files. After a merge of a base, merge all of them,
        because few are still needed."""
        files = [each for each in delete_files(self._view()) if each.kind is DeleteKind.RANGE]
        if everything:
            if files:
                yield merge_range_deletes(self._iceberg, self._branch, dry_run=self._dry_run, progress=self._progress)
            return
        files.sort(key=lambda each: (each.file_size_bytes, each.file_path))
        for level in full_levels([each.file_size_bytes for each in files], self._policy.files_per_level):
            yield merge_range_deletes(
                self._iceberg,
                self._branch,
                only_paths=frozenset(files[index].file_path for index in level),
                dry_run=self._dry_run,
                progress=self._progress,
            )

    def _delete_file_count(self, *, but: DeleteKind) -> int:
        return sum(each.kind is not but for each in delete_files(self._view()))

    def _has_many_manifests(self) -> bool:
        """Whether a writer would soon merge the manifests. Upkeep does it before, so that the writer does not have
        to."""
        properties = self._iceberg.metadata.properties
        merge_from = positive_int(properties, MANIFEST_MIN_COUNT_TO_MERGE, MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT)
        return sum(each.has_live_files for each in manifests_of(self._view())) >= merge_from // 2

    def _expirable_count(self) -> int:
        request = RetentionRequest(now_ms=time.time_ns() // 1_000_000)
        return len(plan_expiry(self._iceberg.metadata, request).snapshot_ids)
