"""Tasks of jobs on Spark's executors, for a process that has no Spark session: the JVM that started it runs them.

this process    task -----> JVM of the driver: a Spark job of one task
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
"""An option of the catalog: upkeep that rewrites at least so many bytes does it on executors. They need the library."""
COPY_EXECUTOR_BYTES_OPTION: Final = "copy-on-write-executor-bytes"
"""The same for the files that copy-on-write writes anew for a statement."""
SCAN_EXECUTOR_BYTES_OPTION: Final = "scan-executor-bytes"
"""The same for the files in which a procedure with mode => 'scan' looks for rows."""
EXECUTOR_OPTIONS: Final = frozenset({EXECUTOR_BYTES_OPTION, COPY_EXECUTOR_BYTES_OPTION, SCAN_EXECUTOR_BYTES_OPTION})
_GROUP_BYTES_MIN: Final = 64 * 1024 * 1024
_GROUPS_MAX: Final = 64
_JOBS_AT_ONCE: Final = 8
"""Spark lets those wait for which it has no room."""


class Jvm(Protocol):
    """The other side of the pipe."""

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        """The answer of a task that an executor runs; fails with what Spark said."""


class JvmRunner:
    """Runs tasks on the executors of the session that the catalog is of."""

    is_in_process = False

    def __init__(self, jvm: Jvm, option: str) -> None:
        """`option`: of the catalog, which had the tasks go there."""
        self._jvm = jvm
        self._option = option

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        """As `TaskRunner.run` says; a task that runs when the job is cancelled is waited for."""
        del at_once
        shared = pickle.dumps((work.function, work.context))
        return in_threads(partial(self._run_one, shared), tasks, _JOBS_AT_ONCE, discard=work.discard)

    def _run_one(self, shared: bytes, task: Any) -> Any:
        try:
            answer = self._jvm.run_task(shared, pickle.dumps(task)).result()
        except RuntimeError as error:
            raise TaskFailedError(
                f"a task failed on Spark: {error}. Nothing of it was committed. Look at the executor's log; without "
                f"the catalog's option {self._option!r} these files are written on the driver."
            ) from error
        return result_of(answer)


class LargeOnExecutors:
    """MT-100, SP-86: where files are rewritten, by their bytes."""

    def __init__(self, runner: JvmRunner, from_bytes: int) -> None:
        self._runner = runner
        self._from_bytes = from_bytes

    def __call__(self, rewritten_bytes: int) -> Executor:
        return self._runner if rewritten_bytes >= self._from_bytes else LOCAL

    def carry(
        self, files: Sequence[CarriedFile], context: CarryContext
    ) -> Generator[tuple[int, StagedFiles], None, None]:
        """SP-86: one task for each file whose rows are written anew."""
        executor = self(sum(file.task.data_file.file_size_bytes for file in files))
        if executor == LOCAL:
            return carry_here(files, context)
        work = Work(write_carried_rows, context, discard=partial(StagedFiles.delete_all, io=context.write.io))
        return self._runner.run(work, files, at_once=1)

    def find(
        self, tasks: Sequence[RowTask], newest: SpanArray, context: MergeContext
    ) -> Iterator[tuple[RowTask, PositionSet]]:
        """SP-115: some tasks, each of several files of about the same number of bytes together."""
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
    """At most so many groups as tasks run for a while, and of so many bytes at least that starting one pays off."""
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
    """A search writes no file."""


def executor_choice(options: Mapping[str, str], option: str, jvm: Jvm | None) -> LargeOnExecutors | None:
    """What the catalog's option says; None where all is done on the driver, and without a JVM."""
    stated = options.get(option)
    if stated is None:
        return None
    if not stated.isdecimal():
        raise InvalidArgumentError(f"the catalog's option {option!r} is a number of bytes, not {stated!r}.")
    return None if jvm is None else LargeOnExecutors(JvmRunner(jvm, option), int(stated))
