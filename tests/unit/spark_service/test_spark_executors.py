"""Where the process behind a catalog has upkeep rewrite files."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from spark_ext.service.executors import JvmRunner, LargeOnExecutors
from spark_ext.service.session import Session
from tableformat.errors import InvalidArgumentError, TaskFailedError
from tableformat.maintenance.running.executors import LOCAL, task_runner
from tableformat.maintenance.running.spark_runner import pickled_answer
from tableformat.maintenance.running.tasks import Work


class AnsweringJvm:
    """Runs tasks here; with `error` every one fails as Spark says it."""

    def __init__(self, error: str | None = None) -> None:
        self._error = error

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        answer: Future[bytes] = Future()
        if self._error is None:
            answer.set_result(pickled_answer(shared, task))
        else:
            answer.set_exception(RuntimeError(self._error))
        return answer


def times(task: int, factor: int) -> int:
    if task < 0:
        raise InvalidArgumentError("no negative numbers")
    return task * factor


WORK = Work(times, 3, discard=lambda _: None)


def test_tasks_come_back_with_their_results() -> None:
    """MT-100"""
    runner = task_runner(JvmRunner(AnsweringJvm()))
    assert dict(runner.run(WORK, [1, 2, 3], at_once=1)) == {0: 3, 1: 6, 2: 9}


def test_an_error_of_this_library_comes_back_as_it_is() -> None:
    with pytest.raises(InvalidArgumentError, match="no negative numbers"):
        list(JvmRunner(AnsweringJvm()).run(WORK, [-1], at_once=1))


def test_an_error_of_spark_says_what_to_do() -> None:
    with pytest.raises(TaskFailedError, match=r"no module.*'upkeep-executor-bytes' upkeep rewrites"):
        list(JvmRunner(AnsweringJvm("no module")).run(WORK, [1], at_once=1))


def test_what_is_small_stays_here(tmp_path: Path) -> None:
    """MT-100"""
    runner = JvmRunner(AnsweringJvm())
    choice = LargeOnExecutors(runner, 100)
    assert (choice(99), choice(100)) == (LOCAL, runner)
    session = Session.open("lake", {"warehouse": str(tmp_path)}, jvm=AnsweringJvm())
    assert session.upkeep_executor == LOCAL
    options = {"warehouse": str(tmp_path), "upkeep-executor-bytes": "100"}
    assert isinstance(Session.open("lake", options, jvm=AnsweringJvm()).upkeep_executor, LargeOnExecutors)


def test_bytes_of_the_option_are_a_number(tmp_path: Path) -> None:
    """MT-100"""
    options = {"warehouse": str(tmp_path), "upkeep-executor-bytes": "64 MB"}
    with pytest.raises(InvalidArgumentError, match="'upkeep-executor-bytes' is a number of bytes, not '64 MB'"):
        Session.open("lake", options)
