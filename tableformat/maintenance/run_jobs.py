"""Runs all maintenance jobs of a branch, in an order in which no job undoes or blocks another (MT-60).

advance window, apply retention      old rows are removed before any work is spent on them
convert, drop dead, merge ranges     deletes next: compaction then has fewer to apply
compact, rewrite manifests           then data, and the manifests that name it
publish                              the state that the branch now has, for readers of its target
expire, remove orphans               files last: replaced files may be removed when they are old enough
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata

from tableformat.commit.metadata_commit import refresh
from tableformat.commit.publish_target import publish_target_of, published_to
from tableformat.errors import (
    CommitExitError,
    CommitInterruptedError,
    CommitStateUnknownError,
    InvalidArgumentError,
    TableFormatError,
    UnsupportedFeatureError,
    nearest_hint,
)
from tableformat.maintenance.apply_retention import apply_retention
from tableformat.maintenance.compaction.compact import compact
from tableformat.maintenance.compaction.compaction_plan import CompactionOptions
from tableformat.maintenance.conversion.convert_deletes import convert_deletes
from tableformat.maintenance.delete_files.drop_dead_deletes import drop_dead_deletes
from tableformat.maintenance.delete_files.merge_range_deletes import merge_range_deletes
from tableformat.maintenance.expiry.expire_snapshots import expire_snapshots
from tableformat.maintenance.expiry.remove_orphan_files import remove_orphan_files
from tableformat.maintenance.publish import publish
from tableformat.maintenance.rewrite_manifests import rewrite_manifests
from tableformat.maintenance.running.executors import LOCAL, Executor, task_runner
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.markup import figures
from tableformat.markup.results import HtmlResult
from tableformat.metadata.snapshot_choice import head_view
from tableformat.operations.ranges.handle import TableRangePartitions
from tableformat.properties import RETAIN, may_remove_files
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.window import has_clock

JOBS: Final = (
    "advance_window",
    "apply_retention",
    "convert_deletes",
    "drop_dead_deletes",
    "merge_range_deletes",
    "compact",
    "rewrite_manifests",
    "publish",
    "expire_snapshots",
    "remove_orphan_files",
)
"""In the order in which they run."""
_REWRITE_FILES: Final = frozenset(JOBS[:6])
"""Jobs that do not run on a branch that is a publish target (MT-30)."""


class JobStatus(Enum):
    """The outcome of a job."""

    DONE = "done"
    SKIPPED = "skipped"
    """Not run; `reason` has the cause."""
    OUT_OF_TIME = "out of time"
    """Stopped by the time budget. Its commits stay."""
    FAILED = "failed"
    """An error of this library. The table has the state that the earlier jobs left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """The report of one job of a run."""

    job: str
    status: JobStatus
    reason: str = ""
    """The cause of skipping the job, or the error."""
    result: Any = None
    """The result of the job, if it completed."""
    duration_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(HtmlResult):
    """The reports of all jobs of a run, in order, with a text display."""

    jobs: tuple[JobReport, ...]
    rewritten_bytes: int = 0
    """Bytes of data that all jobs rewrote."""
    duration_seconds: float = 0.0
    dry_run: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether no job failed or ran out of time."""
        return all(report.status in (JobStatus.DONE, JobStatus.SKIPPED) for report in self.jobs)

    def report_of(self, job: str) -> JobReport:
        """Raises InvalidArgumentError for an unknown job."""
        for report in self.jobs:
            if report.job == job:
                return report
        raise InvalidArgumentError(f"no job {job!r} in this run.{nearest_hint(job, (each.job for each in self.jobs))}")

    def __str__(self) -> str:
        lines = ["dry run, nothing was changed"] if self.dry_run else []
        for report in self.jobs:
            what = report.reason or ("" if report.result is None else figures.told_figures(report.result))
            why = f": {what}" if what else ""
            lines.append(f"{report.job:<20} {report.status.value:<12} {report.duration_seconds:8.2f} s{why}")
        return "\n".join(lines)


class _OutOfTimeError(Exception):
    """Raised in a job's progress call if the time budget is used up."""


_Job: TypeAlias = Callable[[], Any]


def run_jobs(
    iceberg: IcebergTable,
    branch: str,
    *,
    time_budget_seconds: float | None = None,
    byte_budget: int | None = None,
    dry_run: bool = False,
    only: tuple[str, ...] | None = None,
    executor: Executor = LOCAL,
    progress: Progress | None = None,
) -> RunResult:
    """MT-60: run the jobs. An error of a job is reported, and the next job runs. An unknown outcome ends the run.

    `time_budget_seconds`: no job begins later, and conversion and compaction stop then. Removals of files, which only
    clean up, are not interrupted. `byte_budget`: the bytes that compaction reads, minus the bytes that earlier jobs
    rewrote. `only` limits the run to some jobs. Raises InvalidArgumentError for an invalid budget or an unknown job.
    """
    jobs = _checked(only, time_budget_seconds, byte_budget)
    task_runner(executor)  # refuses what is no executor, before any job runs
    run = _Run(
        iceberg,
        branch,
        time_budget_seconds=time_budget_seconds,
        byte_budget=byte_budget,
        dry_run=dry_run,
        executor=executor,
        progress=progress,
    )
    return run.run(jobs)


def _checked(only: tuple[str, ...] | None, seconds: float | None, budget_bytes: int | None) -> tuple[str, ...]:
    for name in only or ():
        if name not in JOBS:
            raise InvalidArgumentError(f"no job {name!r}.{nearest_hint(name, JOBS)}")
    for name, value in (("time_budget_seconds", seconds), ("byte_budget", budget_bytes)):
        if value is not None and value < 0:
            raise InvalidArgumentError(f"{name} must not be negative, not {value!r}.")
    return JOBS if only is None else tuple(job for job in JOBS if job in only)


class _Run:
    """One run. Its state is the rest of the budgets."""

    def __init__(
        self,
        iceberg: IcebergTable,
        branch: str,
        *,
        time_budget_seconds: float | None,
        byte_budget: int | None,
        dry_run: bool,
        executor: Executor,
        progress: Progress | None,
    ) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._started = time.perf_counter()
        self._time_budget_seconds = time_budget_seconds
        self._byte_budget = byte_budget
        self._dry_run = dry_run
        self._executor = executor
        self._tell = progress or silent
        self._rewritten_bytes = 0
        self._is_over = ""

    def run(self, jobs: tuple[str, ...]) -> RunResult:
        reports = tuple(self._reports(jobs))
        return RunResult(
            jobs=reports,
            rewritten_bytes=self._rewritten_bytes,
            duration_seconds=time.perf_counter() - self._started,
            dry_run=self._dry_run,
        )

    def _reports(self, jobs: tuple[str, ...]) -> Iterator[JobReport]:
        for index, name in enumerate(jobs):
            self._tell(index, len(jobs), "jobs")
            refresh(self._iceberg)
            reason = self._is_over or self._no_reason_to_run(name, self._iceberg.metadata)
            yield JobReport(job=name, status=JobStatus.SKIPPED, reason=reason) if reason else self._report(name)
        self._tell(len(jobs), len(jobs), "jobs")

    def _no_reason_to_run(self, name: str, metadata: TableMetadata) -> str:
        """The reason to skip a job; empty if it has to run."""
        if self._is_out_of_time():
            return f"the time budget of {self._time_budget_seconds} s is used up"
        return self._does_not_apply(name, metadata)

    def _does_not_apply(self, name: str, metadata: TableMetadata) -> str:
        """The reason why a job has nothing to do on this branch; empty if it may have work."""
        sources = published_to(metadata, self._branch)
        if sources and name in _REWRITE_FILES:
            return f"branch {sources[0]!r} is published to this branch, so deletes and rewrites run there"
        if name == "publish" and publish_target_of(metadata, self._branch) is None:
            return f"branch {self._branch!r} has no publish target"
        if name == "advance_window":
            return self._no_window(metadata)
        if name == "apply_retention":
            return "" if RETAIN in metadata.properties else f"the table has no property {RETAIN}"
        if name == "compact" and self._bytes_left() == 0:
            return f"the byte budget of {self._byte_budget:,} bytes is used up"
        return ""

    def _no_window(self, metadata: TableMetadata) -> str:
        """The reason why no window moves: the table has none, or the window is over numbers, which have no clock."""
        try:
            defined = range_partitions_of(metadata.properties, metadata.schema())
        except UnsupportedFeatureError as error:
            return str(error)
        if defined is None or not defined.window.is_set:
            return "the table has no window of range partitions"
        return "" if has_clock(defined) else f"{defined.key.names[0]} is a number and does not represent time"

    def _report(self, name: str) -> JobReport:
        started = time.perf_counter()
        status, reason, result = JobStatus.DONE, "", None
        try:
            result = self._job(name)()
        except _OutOfTimeError:
            status, reason = JobStatus.OUT_OF_TIME, "stopped by the time budget; the next run continues from here"
        except (CommitInterruptedError, CommitExitError):
            raise
        except CommitStateUnknownError as error:
            status, reason = JobStatus.FAILED, str(error)
            self._is_over = f"it is unknown whether {name} was committed"
        except TableFormatError as error:
            status, reason = JobStatus.FAILED, str(error)
        self._rewritten_bytes += getattr(result, "rewritten_bytes", 0)
        seconds = time.perf_counter() - started
        return JobReport(job=name, status=status, reason=reason, result=result, duration_seconds=seconds)

    def _job(self, name: str) -> _Job:
        iceberg, branch, dry_run = self._iceberg, self._branch, self._dry_run
        jobs: dict[str, _Job] = {
            "advance_window": partial(TableRangePartitions(iceberg, branch).advance, dry_run=dry_run),
            "apply_retention": partial(apply_retention, iceberg, branch, dry_run=dry_run),
            "convert_deletes": partial(
                convert_deletes,
                iceberg,
                branch,
                executor=self._executor,
                dry_run=dry_run,
                progress=self._until_out_of_time,
            ),
            "drop_dead_deletes": partial(drop_dead_deletes, iceberg, branch, dry_run=dry_run, progress=self._tell),
            "merge_range_deletes": partial(merge_range_deletes, iceberg, branch, dry_run=dry_run, progress=self._tell),
            "compact": self._compact,
            "rewrite_manifests": partial(rewrite_manifests, iceberg, branch, dry_run=dry_run, progress=self._tell),
            "publish": self._publish,
            "expire_snapshots": partial(
                expire_snapshots,
                iceberg,
                dry_run=dry_run,
                clean_expired_files=may_remove_files(iceberg.metadata.properties),
                progress=self._tell,
            ),
            "remove_orphan_files": partial(remove_orphan_files, iceberg, dry_run=dry_run, progress=self._tell),
        }
        return jobs[name]

    def _compact(self) -> Any:
        view = head_view(self._iceberg.metadata, self._iceberg.io, self._branch)
        options = replace(CompactionOptions.of(view), max_rewritten_bytes=self._bytes_left())
        return compact(
            self._iceberg,
            self._branch,
            options,
            executor=self._executor,
            dry_run=self._dry_run,
            progress=self._until_out_of_time,
        )

    def _publish(self) -> Any:
        target = publish_target_of(self._iceberg.metadata, self._branch)
        assert target is not None, "a branch without a target is skipped"
        return publish(
            self._iceberg,
            self._branch,
            target,
            executor=self._executor,
            dry_run=self._dry_run,
            progress=self._until_out_of_time,
        )

    def _bytes_left(self) -> int | None:
        return None if self._byte_budget is None else max(self._byte_budget - self._rewritten_bytes, 0)

    def _is_out_of_time(self) -> bool:
        budget = self._time_budget_seconds
        return budget is not None and time.perf_counter() - self._started >= budget

    def _until_out_of_time(self, done: int, total: int, what: str) -> None:
        self._tell(done, total, what)
        if self._is_out_of_time():
            raise _OutOfTimeError
