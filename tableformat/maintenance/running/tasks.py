"""Tasks of a job, and their runner in threads of this process.

    plan (here) -> tasks -> function(task, context), anywhere -> results, as they come -> commit (here)

Task, context and function are plain data that pickle, and a result is small: entries of files that were written. Nobody
but the job commits, so a task that failed, was killed or ran twice has at most written files that nothing names.
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
    """What is done with each task."""

    function: Callable[[TaskT, ContextT], ResultT]
    """A function of a module, so that another process finds it by its name."""
    context: ContextT
    """What all tasks share."""
    discard: Callable[[ResultT], None]
    """Removes the files of a result that is not used."""


@runtime_checkable
class TaskRunner(Protocol):
    """Runs tasks somewhere."""

    is_in_process: bool
    """Whether tasks run in this process, in the calling thread where one runs at a time."""

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        """MT-61: the index of each task and its result, as they are done.

        At most `at_once` run at the same time in this process. The first error of a task is raised and ends the rest.
        Close the iterator to cancel: tasks that run are stopped or waited for, and results that were not handed out
        are discarded.
        """


class LocalRunner:
    """Tasks in threads of this process: what they do releases the interpreter for most of the time."""

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
    """The calls of all tasks in threads, as `TaskRunner.run` gives them; `interrupt` makes calls that run end soon."""
    waiting = iter(enumerate(tasks))
    running: dict[Future[ResultT], int] = {}
    pool = ThreadPoolExecutor(thread_count, thread_name_prefix="tableformat-task")

    def start_next() -> None:
        for index, task in waiting:
            running[pool.submit(call, task)] = index
            return

    try:
        # One more than run, so that no thread waits for the job, which may be committing.
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
    """What has not begun never does; what runs is interrupted until it ends, for it may be just about to begin."""
    left = {future for future in futures if not future.cancel()}
    while left:
        interrupt()
        left = wait(left, timeout=_POLL_SECONDS).not_done
