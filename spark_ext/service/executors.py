"""Run tasks as Spark jobs, for a process that has no Spark session: the JVM that started it runs them.

this process    task -----> JVM of the driver: a Spark job with one task
                            executor: `python -m spark_ext.executor_task` writes files
                result <--- its answer
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from typing import Any, Final, Protocol

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import InvalidArgumentError, TaskFailedError
from tableformat.maintenance.running.executors import LOCAL, Executor
from tableformat.maintenance.running.spark_runner import result_of
from tableformat.maintenance.running.tasks import ContextT, ResultT, TaskT, Work, in_threads
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.drafts.carried_rows import CarriedFile, CarryContext, carry_here, write_carried_rows
from tableformat.operations.drafts.covered_positions import SpanSearch, find_here, find_in_files
from tableformat.write.staged import StagedFiles

EXECUTOR_BYTES_OPTION: Final = "upkeep-executor-bytes"
"""A catalog option: maintenance that rewrites at least this many bytes runs on executors. They need the library."""
COPY_EXECUTOR_BYTES_OPTION: Final = "copy-on-write-executor-bytes"
"""The same option for the files that a statement rewrites with copy-on-write."""
SCAN_EXECUTOR_BYTES_OPTION: Final = "scan-executor-bytes"
"""The same option for the files in which a procedure with mode => 'scan' searches for rows."""
EXECUTOR_OPTIONS: Final = frozenset({EXECUTOR_BYTES_OPTION, COPY_EXECUTOR_BYTES_OPTION, SCAN_EXECUTOR_BYTES_OPTION})
_GROUP_BYTES_MIN: Final = 64 * 1024 * 1024
_GROUPS_MAX: Final = 64
_JOBS_AT_ONCE: Final = 8
"""If Spark has no free slot, further jobs wait in Spark."""


class Jvm(Protocol):
    """The JVM at the other end of the pipe."""

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        """The answer of a task that runs on an executor. The future fails with Spark's error message."""


class JvmRunner:
    """Runs tasks on the executors of the catalog's Spark session."""

    is_in_process = False

    def __init__(self, jvm: Jvm, option: str) -> None:
        """`option` is the name of the catalog option that selected executors; error messages name it."""
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
                f"a task failed on Spark: {error}. Nothing was committed. Check the log of the executor. Without the "
                f"catalog option {self._option!r}, these files are written on the driver."
            ) from error
        return result_of(answer)


class LargeOnExecutors:
    """MT-100, SP-86: choose where files are rewritten, by their size in bytes."""

    def __init__(self, runner: JvmRunner, from_bytes: int) -> None:
        self._runner = runner
        self._from_bytes = from_bytes

    def __call__(self, rewritten_bytes: int) -> Executor:
        return self._runner if rewritten_bytes >= self._from_bytes else LOCAL

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


def _nothing_to_remove(_found: list[PositionSet]) -> None:
    """Do nothing: a search writes no file."""


def executor_choice(options: Mapping[str, str], option: str, jvm: Jvm | None) -> LargeOnExecutors | None:
    """The choice that the catalog option makes. None if everything runs on the driver, and without a JVM."""
    stated = options.get(option)
    if stated is None:
        return None
    if not stated.isdecimal():
        raise InvalidArgumentError(f"the catalog option {option!r} must be a number of bytes, not {stated!r}.")
    return None if jvm is None else LargeOnExecutors(JvmRunner(jvm, option), int(stated))
