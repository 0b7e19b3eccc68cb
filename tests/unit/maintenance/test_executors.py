"""Tasks of jobs in every executor: each result arrives once, and tasks whose results are not needed leave no files."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from types import SimpleNamespace
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
from tableformat.maintenance.running.spark_runner import SparkRunner, run_pickled
from tableformat.maintenance.running.tasks import LocalRunner, Work, in_threads

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


def test_connect_session_of_spark_3_5_is_refused() -> None:
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


def test_error_of_a_task_is_raised_as_it_was(run: Any) -> None:
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


def test_threads_run_few_tasks_ahead() -> None:
    """The rest of a job may take minutes between two results, as a commit does."""
    begun: list[int] = []
    started = threading.Semaphore(0)

    def begin(task: int, _context: object) -> int:
        begun.append(task)
        started.release()
        return task

    results = LocalRunner().run(Work(begin, None, lambda _: None), list(range(100)), at_once=2)
    next(results)
    for _ in range(4):
        assert started.acquire(timeout=60)
    assert len(begun) <= 5
    results.close()


def test_tasks_that_run_are_waited_for() -> None:
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


def test_cancelled_spark_jobs_are_interrupted() -> None:
    """By a tag that no other job has."""
    session = SparkSession()
    results = SparkRunner(session).run(Work(times, 1, lambda _: None), TASKS, at_once=1)  # type: ignore[arg-type]
    next(results)
    results.close()
    assert set(session.interrupted) <= session.tags
    assert len(session.tags) == 1


def test_task_that_spark_gave_up() -> None:
    """With the cause, and as an error of this library."""
    runner = SparkRunner(SparkSession())  # type: ignore[arg-type]
    with pytest.raises(TaskFailedError, match=r"the disk is full\. Nothing was committed"):
        list(runner.run(Work(breaks_at_seven, None, lambda _: None), TASKS, at_once=1))


class Refusing(SparkSession):
    """Each of its jobs ends in an error with that message."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def createDataFrame(self, rows: pa.Table) -> FakeFrame:  # noqa: N802 - Spark's name
        raise RuntimeError(self._message)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Job aborted.\n\tat org.apache.Task.run(Task.java:1)\n", "Job aborted"),
        ("\n  at the.top.of(It.java)\n  No room left..\n  Another line", "No room left"),
        (
            "Job failed\nValueError: early\nKeyError: 7\nOSError: the disk is full.\nDriver stacktrace:",
            "OSError: the disk is full",
        ),
        ("Job failed\nCaused by: java.lang.OutOfMemoryError: heap", "Job failed"),
        (" \n\tat org.apache.Task.run(Task.java:1)", "RuntimeError"),
        ("..hidden file is gone.", "..hidden file is gone"),
    ],
)
def test_what_spark_says_in_many_lines_is_told_in_one(message: str, told: str) -> None:
    """The last of the Python errors, which the task raised; the JVM stack traces do not contain it."""
    runner = SparkRunner(Refusing(message))  # type: ignore[arg-type]
    with pytest.raises(TaskFailedError) as caught:
        list(runner.run(Work(times, 1, lambda _: None), [1], at_once=1))
    assert str(caught.value).startswith(f"a task failed on Spark: {told}. Nothing was committed.")


class Counting(SparkSession):
    """A session that has a number of cores and counts its concurrent jobs; each job waits for others for a moment."""

    def __init__(self, cores: int, waits_for: int) -> None:
        super().__init__()
        self.sparkContext = SimpleNamespace(defaultParallelism=cores)
        self.most = 0
        self._now = 0
        self._waits_for = waits_for
        self._changed = threading.Condition()

    def createDataFrame(self, rows: pa.Table) -> FakeFrame:  # noqa: N802 - Spark's name
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= self._waits_for, timeout=0.05)
            self._now -= 1
        return super().createDataFrame(rows)


@pytest.mark.parametrize(("cores", "version", "jobs"), [(3, "4.0.1", 3), (0, "4.0.1", 1), (1, "4.0.1", 1)])
def test_a_session_has_as_many_jobs_at_once_as_cores(cores: int, version: str, jobs: int) -> None:
    session = Counting(cores, waits_for=jobs + 1)
    session.version = version  # type: ignore[attr-defined]
    assert len(list(SparkRunner(session).run(Work(times, 1, lambda _: None), TASKS[:5], at_once=1))) == 5  # type: ignore[arg-type]
    assert session.most == jobs


def test_a_worker_unpickles_the_context_once() -> None:
    """Tasks of one job share what the context has cached."""
    shared = pickle.dumps((identity_of_context, Context()))
    batches = [pa.record_batch({"shared": [shared], "task": [pickle.dumps(task)]}) for task in range(3)]
    answers = [pickle.loads(row["answer"]).result for batch in run_pickled(iter(batches)) for row in batch.to_pylist()]
    assert len(set(answers)) == 1


class Context:
    """Two of them are never equal."""


def identity_of_context(_task: int, context: Context) -> int:
    return id(context)


@pytest.mark.parametrize("executor", ["Local", "spark", None, 4, object()])
def test_executor_that_is_none(executor: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r'"local" or a SparkSession.*executor=spark'):
        task_runner(executor)  # type: ignore[arg-type]


def test_session_is_known_by_its_class() -> None:
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
def test_errors_pickle(error: TableFormatError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_what_waits_never_begins_and_what_runs_is_interrupted() -> None:
    """The tasks of a cancelled job; each running task waits for its interruption."""
    started, interrupted = threading.Semaphore(0), threading.Event()
    ended: list[tuple[int, bool]] = []

    def begin(task: int) -> int:
        if task > 0:
            started.release()
            ended.append((task, interrupted.wait(timeout=20)))
        return task

    for task_count in (3, 5):
        interrupted.clear()
        ended.clear()
        results = in_threads(begin, range(task_count), 2, discard=lambda _: None, interrupt=interrupted.set)
        assert next(results) == (0, 0)
        assert all(started.acquire(timeout=60) for _ in range(2))
        results.close()
        assert sorted(ended) == [(1, True), (2, True)]


def test_what_ends_after_an_error_is_discarded() -> None:
    """Also if it is after the task that failed."""
    begun, interrupted = threading.Event(), threading.Event()
    discarded: list[int] = []

    def call(task: int) -> int:
        if task == 0:
            assert begun.wait(timeout=60)
            raise CorruptFileError("zero.parquet", "it is cut off")
        begun.set()
        assert interrupted.wait(timeout=20)
        return task

    with pytest.raises(CorruptFileError):
        list(in_threads(call, [0, 1], 2, discard=discarded.append, interrupt=interrupted.set))
    assert discarded == [1]


BEGUN, INTERRUPTED = threading.Event(), threading.Event()


def waits_for_interruption(task: int, _context: object) -> bool:
    if task > 0:
        BEGUN.set()
        return INTERRUPTED.wait(timeout=20)
    return True


class Interruptible(SparkSession):
    """Its jobs end when they are interrupted, if they have the tag."""

    def interruptTag(self, tag: str) -> list[str]:  # noqa: N802 - Spark's name
        if tag in self.tags:
            INTERRUPTED.set()
        return super().interruptTag(tag)


class Context35:
    """The part of the context of a classic Spark 3.5 session that a runner uses."""

    defaultParallelism = 2  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        self.tags: set[str] = set()
        self._pairs: list[tuple[bytes, bytes]] = []
        self._function: Any = None

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self.tags.add(tag)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        if tag in self.tags:
            INTERRUPTED.set()

    def parallelize(self, pairs: list[tuple[bytes, bytes]], partition_count: int) -> Rdd:
        assert partition_count == 1, "one job is one task"
        return Rdd(pairs)


class Rdd:
    """Runs what Spark would run in workers."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def map(self, function: Any) -> Rdd:
        return Rdd([function(row) for row in self._rows])

    def collect(self) -> list[Any]:
        return self._rows


def session_of_spark_3_5() -> SparkSession:
    session = SparkSession()
    session.version, session._jsparkSession = "3.5.9", None  # type: ignore[attr-defined]
    session.sparkContext = Context35()  # type: ignore[attr-defined]
    return session


def test_a_context_without_cores_has_one_job_at_once() -> None:
    session = session_of_spark_3_5()
    for cores, jobs in ((0, 1), (1, 1), (5, 5)):
        session.sparkContext.defaultParallelism = cores  # type: ignore[attr-defined]
        assert SparkRunner(session)._jobs.at_once() == jobs  # type: ignore[arg-type]


@pytest.mark.parametrize("session", [Interruptible(), session_of_spark_3_5()], ids=["4", "3.5"])
def test_jobs_of_spark_end_by_their_tag(session: SparkSession) -> None:
    """Otherwise the running Spark jobs would occupy the executors until they end."""
    BEGUN.clear()
    INTERRUPTED.clear()
    ended: list[bool] = []
    results = SparkRunner(session).run(  # type: ignore[arg-type]
        Work(waits_for_interruption, None, ended.append), [0, 1], at_once=1
    )
    assert next(results) == (0, True)
    assert BEGUN.wait(timeout=60)
    results.close()
    assert ended == [True]


@pytest.mark.parametrize("name", ["SparkSession", "DataFrame"])
def test_a_class_of_another_name_or_module_is_no_session(name: str) -> None:
    module = "others.sql" if name == "SparkSession" else "pyspark.sql"
    assert not is_spark_session(type(name, (), {"__module__": module})())
