"""Tasks of jobs in every executor: each result arrives once, and tasks whose results are not needed leave no files."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tableformat.errors import (
    CommitInterruptedError,
    CorruptFileError,
    InvalidArgumentError,
    TableFormatError,
    TaskFailedError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from tableformat.maintenance.running.executors import is_spark_session, task_runner
from tableformat.maintenance.running.spark_runner import SparkRunner
from tableformat.maintenance.running.tasks import LocalRunner, Work

TASKS = list(range(100))
"""More than twice the number of tasks that any runner here runs concurrently: after two results, some tasks have not
run."""


def times(task: int, factor: int) -> int:
    return task * factor


def fails_at_seven(task: int, _context: object) -> int:
    if task == 7:
        raise CorruptFileError("seven.parquet", "it is cut off")
    return task


def breaks_at_seven(task: int, _context: object) -> int:
    if task == 7:
        raise OSError("the disk is full")
    return task


class FakeFrame:
    """Runs what Spark would run in workers."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._batches: Iterator[pa.RecordBatch] = iter(())

    def mapInArrow(self, function: Any, schema: str) -> FakeFrame:  # noqa: N802 - Spark's name
        assert schema == "answer binary"
        self._batches = pickle.loads(pickle.dumps(function))(iter(self._rows.to_batches()))
        return self

    def collect(self) -> list[dict[str, bytearray]]:
        return [{"answer": bytearray(row["answer"])} for batch in self._batches for row in batch.to_pylist()]


class SparkSession:
    """The part of a Spark session that a runner uses."""

    def __init__(self) -> None:
        self.interrupted: list[str] = []
        self.tags: set[str] = set()

    def addTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self.tags.add(tag)

    def interruptTag(self, tag: str) -> list[str]:  # noqa: N802 - Spark's name
        self.interrupted.append(tag)
        return []

    def createDataFrame(self, rows: pa.Table) -> FakeFrame:  # noqa: N802 - Spark's name
        return FakeFrame(rows)


SparkSession.__module__ = "pyspark.sql.session"


@pytest.fixture(params=["one", "threads", "spark"])
def run(request: pytest.FixtureRequest) -> Any:
    runner = SparkRunner(SparkSession()) if request.param == "spark" else LocalRunner()  # type: ignore[arg-type]
    at_once = 1 if request.param == "one" else 3
    return lambda work, tasks=TASKS: runner.run(work, tasks, at_once=at_once)


def test_spark_3_5_connect_session_is_rejected() -> None:
    session = SparkSession()
    session.version = "3.5.9"  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedFeatureError, match=r'Spark 3\.5\.9 only from classic sessions.*executor="local"'):
        SparkRunner(session)  # type: ignore[arg-type]


def test_every_task_gives_one_result(run: Any) -> None:
    discarded: list[int] = []
    results = dict(run(Work(times, 3, discarded.append)))
    assert results == {index: 3 * index for index in TASKS}
    assert discarded == []
    assert list(run(Work(times, 3, discarded.append), [])) == []


def test_task_error_keeps_its_class_and_attributes(run: Any) -> None:
    handed: list[int] = []
    discarded: list[int] = []
    with pytest.raises(CorruptFileError, match=r"seven\.parquet: it is cut off") as caught:
        handed.extend(result for _, result in run(Work(fails_at_seven, None, discarded.append)))
    assert caught.value.location == "seven.parquet"
    assert set(handed).isdisjoint(discarded)


def test_cancelled_tasks_leave_nothing(run: Any) -> None:
    """Results that were computed but not returned are discarded, and no task starts afterwards."""
    done: list[int] = []
    discarded: list[int] = []
    results = run(Work(times, 1, discarded.append))
    done += [next(results)[1], next(results)[1]]
    results.close()
    assert set(done).isdisjoint(discarded)
    assert len(done) + len(discarded) < len(TASKS)
    assert list(results) == []


def test_cancelled_job_waits_for_running_tasks() -> None:
    """A cancelled job returns when no thread of it writes any more."""
    begun, release = threading.Event(), threading.Event()
    ended: list[int] = []
    discarded: list[int] = []

    def slow(task: int, _context: object) -> int:
        if task == 1:
            begun.set()
            assert release.wait(timeout=60)
            ended.append(task)
        return task

    results = LocalRunner().run(Work(slow, None, discarded.append), TASKS, at_once=2)
    assert next(results) == (0, 0)
    assert begun.wait(timeout=60)
    threading.Timer(0.05, release.set).start()
    results.close()
    assert ended == [1]
    assert 1 in discarded


def test_cancellation_interrupts_spark_jobs() -> None:
    """By a tag that no other job has."""
    session = SparkSession()
    results = SparkRunner(session).run(Work(times, 1, lambda _: None), TASKS, at_once=1)  # type: ignore[arg-type]
    next(results)
    results.close()
    assert set(session.interrupted) <= session.tags
    assert len(session.tags) == 1


def test_task_failed_by_spark_raises_library_error() -> None:
    """With the cause, and as an error of this library."""
    runner = SparkRunner(SparkSession())  # type: ignore[arg-type]
    with pytest.raises(TaskFailedError):
        list(runner.run(Work(breaks_at_seven, None, lambda _: None), TASKS, at_once=1))


@pytest.mark.parametrize("executor", ["Local", "spark", None, 4, object()])
def test_invalid_executor_is_rejected(executor: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r'"local" or a SparkSession.*executor=spark'):
        task_runner(executor)  # type: ignore[arg-type]


def test_spark_session_is_detected_by_class() -> None:
    """Also a user's subclass; without importing pyspark."""

    class OwnSession(SparkSession):
        pass

    class SparkSessionOfOthers:
        pass

    assert is_spark_session(SparkSession())
    assert is_spark_session(OwnSession())
    assert not is_spark_session(SparkSessionOfOthers())
    assert not is_spark_session(SparkSession)


@pytest.mark.parametrize(
    "error",
    [
        CorruptFileError("f.parquet", "it is cut off"),
        UnknownColumnError("a", ["b"], where="the key"),
        InvalidArgumentError("no"),
        CommitInterruptedError("who knows"),
    ],
)
def test_errors_can_be_pickled(error: TableFormatError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


BEGUN, INTERRUPTED = threading.Event(), threading.Event()
