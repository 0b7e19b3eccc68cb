"""Tasks of a job, and their runner in threads of this process.

    plan (here) -> tasks -> function(task, context), anywhere -> results, as they arrive -> commit (here)

Task, context and function are plain data that can be pickled. A result is small: entries of the written files. Only the
job commits, so a task that failed, was killed or ran twice leaves at most files that no metadata names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

TaskT = TypeVar("TaskT")
ContextT = TypeVar("ContextT")
ResultT = TypeVar("ResultT")

_POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Work(Generic[TaskT, ContextT, ResultT]):
    """The function for all tasks, with its context."""

    function: Callable[[TaskT, ContextT], ResultT]
    """A module-level function, so that another process can find it by name."""
    context: ContextT
    """The data that all tasks share."""
    discard: Callable[[ResultT], None]
    """Removes the files of an unused result."""


@runtime_checkable
class TaskRunner(Protocol):
    """Runs tasks in this process or elsewhere."""

    is_in_process: bool
    """Whether tasks run in this process; in the calling thread if only one runs at a time."""

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        """MT-61: the index and result of each task, in order of completion.

        At most `at_once` tasks run concurrently in this process. The first error of a task is raised and ends the
        others. Close the iterator to cancel: running tasks are stopped or awaited, and results that were not returned
        are discarded.
        """


class LocalRunner:
    """Runs tasks in threads of this process. They release the GIL most of the time."""

    is_in_process = True

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        def call(task: TaskT) -> ResultT:
            return work.function(task, work.context)

        if at_once == 1:
            return ((index, call(task)) for index, task in enumerate(tasks))
        return in_threads(call, tasks, at_once, discard=work.discard)


def in_threads(
    call: Callable[[TaskT], ResultT],
    tasks: Sequence[TaskT],
    thread_count: int,
    *,
    discard: Callable[[ResultT], None],
    interrupt: Callable[[], object] = lambda: None,
) -> Generator[tuple[int, ResultT], None, None]:
    """The calls of all tasks in threads, with the results of `TaskRunner.run`. `interrupt` makes running calls end
    soon."""
    waiting = iter(enumerate(tasks))
    running: dict[Future[ResultT], int] = {}
    pool = ThreadPoolExecutor(thread_count, thread_name_prefix="tableformat-task")

    def start_next() -> None:
        for index, task in waiting:
            running[pool.submit(call, task)] = index
            return

    try:
        # Twice as many tasks as threads are started, so that no thread waits for the job, which may be committing.
        for _ in range(2 * thread_count):
            start_next()
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            future = min(done, key=running.__getitem__)
            result = future.result()
            index = running.pop(future)
            start_next()
            yield index, result
    finally:
        _stop(list(running), interrupt)
        pool.shutdown()
        for future in running:
            if not future.cancelled() and future.exception() is None:
                discard(future.result())


def _stop(futures: Sequence[Future[ResultT]], interrupt: Callable[[], object]) -> None:
    """Cancels calls that have not begun. Running calls are interrupted repeatedly until they end, because a call may be
    just about to begin."""
    left = {future for future in futures if not future.cancel()}
    while left:
        interrupt()
        left = wait(left, timeout=_POLL_SECONDS).not_done
