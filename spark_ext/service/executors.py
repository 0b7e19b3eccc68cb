"""Run tasks as Spark jobs, for a process that has no Spark session: the JVM that started it runs them.

this process    task -----> JVM of the driver: a Spark job with one task
                            executor: `python -m spark_ext.executor_task` writes files
                result <--- its answer
"""

from __future__ import annotations

import logging
import pickle
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any, Final, Protocol

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import InvalidArgumentError, TaskFailedError
from tableformat.maintenance.running.executors import LOCAL, Executor
from tableformat.maintenance.running.spark_runner import result_of
from tableformat.maintenance.running.tasks import ContextT, ResultT, TaskT, Work, in_threads
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.staging.carried_rows import CarriedFile, CarryContext, carry_here, write_carried_rows
from tableformat.operations.staging.covered_positions import SpanSearch, find_here, find_in_files
from tableformat.table import Table
from tableformat.write.staged import StagedFiles

EXECUTOR_BYTES_OPTION: Final = "upkeep-executor-bytes"
"""A catalog option: maintenance that rewrites at least this many bytes runs on executors. They need the library."""
COPY_EXECUTOR_BYTES_OPTION: Final = "copy-on-write-executor-bytes"
"""The same option for the files that a statement rewrites with copy-on-write."""
SCAN_EXECUTOR_BYTES_OPTION: Final = "scan-executor-bytes"
"""The same option for the files in which a procedure with mode => 'scan' searches for rows."""
JOB_EXECUTOR_BYTES_OPTION: Final = "job-executor-bytes"
"""The same option for procedures that rewrite or count the rows of a table of that size."""
EXECUTOR_OPTIONS: Final = frozenset(
    {EXECUTOR_BYTES_OPTION, COPY_EXECUTOR_BYTES_OPTION, SCAN_EXECUTOR_BYTES_OPTION, JOB_EXECUTOR_BYTES_OPTION}
)
_BYTES_ON_CLUSTERS: Final = 128 * 1024 * 1024
"""The default of these options if the session's master is not local."""
_LOCAL_MASTER: Final = re.compile(r"local(\[.*)?")
_GROUP_BYTES_MIN: Final = 64 * 1024 * 1024
_GROUPS_MAX: Final = 64
_JOBS_AT_ONCE: Final = 8
"""If Spark has no free slot, further jobs wait in Spark."""


class Jvm(Protocol):
    """The JVM at the other end of the pipe."""

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        """The answer of a task that runs on an executor. The future fails with Spark's error message."""


logger = logging.getLogger(__name__)


class JvmRunner:
    """Runs tasks on the executors of the catalog's Spark session."""

    is_in_process = False

    def __init__(self, jvm: Jvm, option: str) -> None:
        """`option` is the name of the catalog option that selects executors; messages name it."""
        self._jvm = jvm
        self._option = option

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        """See `TaskRunner.run`. If the job is cancelled, running tasks are waited for."""
        del at_once
        shared = pickle.dumps((work.function, work.context))
        return in_threads(partial(self._run_one, shared), tasks, _JOBS_AT_ONCE, discard=work.discard)

    def _run_one(self, shared: bytes, task: Any) -> Any:
        try:
            answer = self._jvm.run_task(shared, pickle.dumps(task)).result()
        except RuntimeError as error:
            raise TaskFailedError(
                f"a task failed on Spark: {error}. Nothing was committed. Check the log of the executor, whose Python "
                f"needs this version of the library. If the catalog option {self._option!r} is larger than the table, "
                "the driver does this work."
            ) from error
        return result_of(answer)


class ExecutorCheck:
    """Asks an executor once whether its Python has this version of the library."""

    def __init__(self, jvm: Jvm) -> None:
        self._runner = JvmRunner(jvm, JOB_EXECUTOR_BYTES_OPTION)
        self._has_library: bool | None = None
        self._lock = Lock()

    def has_library(self) -> bool:
        """If not, a warning says what to install."""
        with self._lock:
            if self._has_library is None:
                reason = self._reason_against()
                self._has_library = reason is None
                if reason is not None:
                    logger.warning(
                        "the driver does the work because executors cannot: %s. Install tableformat %s for the Python "
                        "of the executors, or set the catalog options %s to larger sizes.",
                        reason,
                        _library_version(),
                        ", ".join(sorted(EXECUTOR_OPTIONS)),
                    )
            return self._has_library

    def _reason_against(self) -> str | None:
        work = Work(_version_there, None, discard=_nothing_to_remove)
        try:
            ((_, found),) = self._runner.run(work, [None], at_once=1)
        except TaskFailedError as error:
            return str(error)
        return None if found == _library_version() else f"they have version {found}"


class LargeOnExecutors:
    """MT-100, SP-86, SP-115, PR-29: choose where work is done, by the size of the files in bytes."""

    def __init__(self, runner: JvmRunner, from_bytes: int, check: ExecutorCheck | None = None) -> None:
        """`check`: nobody has chosen executors, so they are used only if they can run a task."""
        self._runner = runner
        self._from_bytes = from_bytes
        self._check = check

    def __call__(self, rewritten_bytes: int) -> Executor:
        is_chosen = rewritten_bytes >= self._from_bytes and (self._check is None or self._check.has_library())
        return self._runner if is_chosen else LOCAL

    def of_table(self, table: Table) -> Executor:
        """PR-29: where a procedure works on a table, by the size of its data files."""
        snapshot = table.view.snapshot
        summary = None if snapshot is None else snapshot.summary
        return self(0 if summary is None else int(summary.get("total-files-size") or 0))

    def carry(
        self, files: Sequence[CarriedFile], context: CarryContext
    ) -> Generator[tuple[int, StagedFiles], None, None]:
        """SP-86: rewrite each file in its own task."""
        executor = self(sum(file.task.data_file.file_size_bytes for file in files))
        if executor == LOCAL:
            return carry_here(files, context)
        work = Work(write_carried_rows, context, discard=partial(StagedFiles.delete_all, io=context.write.io))
        return self._runner.run(work, files, at_once=1)

    def find(
        self, tasks: Sequence[RowTask], newest: SpanArray, context: MergeContext
    ) -> Iterator[tuple[RowTask, PositionSet]]:
        """SP-115: search the files in a few tasks, each with several files of about the same total size."""
        executor = self(sum(task.data_file.file_size_bytes for task in tasks))
        if executor == LOCAL or not tasks:
            yield from find_here(tasks, newest, context)
            return
        groups = _groups(tasks)
        work = Work(find_in_files, SpanSearch(newest, context), discard=_nothing_to_remove)
        with closing(self._runner.run(work, groups, at_once=1)) as results:
            for index, found in results:
                yield from zip(groups[index], found, strict=True)


def _groups(tasks: Sequence[RowTask]) -> list[list[RowTask]]:
    """Groups of tasks. A group has at least `_GROUP_BYTES_MIN` bytes, so that starting a Spark task pays off, and the
    total is divided by about `_GROUPS_MAX`."""
    total = sum(task.data_file.file_size_bytes for task in tasks)
    group_bytes = max(_GROUP_BYTES_MIN, total // _GROUPS_MAX)
    groups: list[list[RowTask]] = [[]]
    filled = 0
    for task in tasks:
        if groups[-1] and filled + task.data_file.file_size_bytes > group_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(task)
        filled += task.data_file.file_size_bytes
    return groups


def _nothing_to_remove(_found: Any) -> None:
    """Do nothing: the task writes no file."""


def _version_there(_task: None, _context: None) -> str:
    return _library_version()


def _library_version() -> str:
    """Files that were sent with a session (`--py-files`) have no version."""
    try:
        return version("tableformat")
    except PackageNotFoundError:
        return "without a number"


def executor_choices(
    options: Mapping[str, str], jvm: Jvm | None, master: str | None
) -> dict[str, LargeOnExecutors | None]:
    """The choice of each catalog option. An option without a value follows the session's master. None: the driver does
    this work."""
    check = None if jvm is None or master is None or _LOCAL_MASTER.fullmatch(master) else ExecutorCheck(jvm)
    return {option: _choice(options.get(option), option, jvm, check) for option in EXECUTOR_OPTIONS}


def _choice(stated: str | None, option: str, jvm: Jvm | None, check: ExecutorCheck | None) -> LargeOnExecutors | None:
    if stated is not None and not stated.isdecimal():
        raise InvalidArgumentError(f"the catalog option {option!r} must be a number of bytes, not {stated!r}.")
    if jvm is None or (stated is None and check is None):
        return None
    runner = JvmRunner(jvm, option)
    return (
        LargeOnExecutors(runner, int(stated))
        if stated is not None
        else LargeOnExecutors(runner, _BYTES_ON_CLUSTERS, check)
    )


def executor_of(table: Table) -> Executor:
    """PR-29: where a procedure works on the table."""
    return LOCAL if table._job_executor is None else table._job_executor(table)
