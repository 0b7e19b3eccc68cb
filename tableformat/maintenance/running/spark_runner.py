"""Runs tasks on the executors of a Spark session, classic or Connect.

Each task is a Spark job with one row and one partition. Results therefore arrive one by one, Spark repeats a failed
task, and running tasks can be cancelled by their tag. The row carries the pickled function, context and task through
`mapInArrow`, which both kinds of session have. Sessions of Spark 3.5 have neither tags nor data frames from Arrow
tables, so an RDD is used there. Executors need `tableformat` and access to the table's storage.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tableformat.errors import TableFormatError, TaskFailedError, UnsupportedFeatureError
from tableformat.maintenance.running.tasks import ContextT, ResultT, TaskT, Work, in_threads

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_CONNECT_JOBS: Final = 32
"""Concurrent jobs on a session that does not report its number of cores. Jobs without free cores wait in Spark."""
_TASK: Final = pa.schema([pa.field("shared", pa.large_binary()), pa.field("task", pa.large_binary())])
_ANSWER: Final = pa.schema([pa.field("answer", pa.binary())])


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of an executor. An error of this library is returned as data, because repeating the task would not
    help."""

    result: Any = None
    error: TableFormatError | None = None


class SparkRunner:
    """Tasks on the executors of a session."""

    is_in_process = False

    def __init__(self, spark: SparkSession) -> None:
        """Raises UnsupportedFeatureError for a Connect session of Spark 3.5, whose Arrow functions need pandas."""
        self._jobs: _SessionJobs | _ContextJobs
        if not _is_before_4(spark):
            self._jobs = _SessionJobs(spark)
        elif hasattr(spark, "_jsparkSession"):
            self._jobs = _ContextJobs(spark.sparkContext)
        else:
            raise UnsupportedFeatureError(
                f"jobs run on executors of Spark {spark.version} only from classic sessions, but this session uses "
                'Spark Connect. Omit `executor`, or pass executor="local" to run the job in this process.'
            )

    def run(
        self, work: Work[TaskT, ContextT, ResultT], tasks: Sequence[TaskT], *, at_once: int
    ) -> Generator[tuple[int, ResultT], None, None]:
        """Implements `TaskRunner.run`. `at_once` limits only this process and is ignored. Raises TaskFailedError for a
        task that failed as often as the session allows."""
        del at_once
        tag = f"tableformat-{uuid.uuid4()}"
        shared = pickle.dumps((work.function, work.context))
        return in_threads(
            partial(self._run_one, shared, tag),
            tasks,
            self._jobs.at_once(),
            discard=work.discard,
            interrupt=partial(self._jobs.cancel, tag),
        )

    def _run_one(self, shared: bytes, tag: str, task: Any) -> Any:
        try:
            answer = self._jobs.run(shared, pickle.dumps(task), tag)
        except Exception as error:
            raise TaskFailedError(
                f"a task failed on Spark: {_first_lines(error)}. Nothing was committed. Check the log of the "
                'executor, and run the job again, or run it with executor="local".'
            ) from error
        return result_of(answer)


class _SessionJobs:
    """Jobs of a session, classic or Connect."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def at_once(self) -> int:
        context = getattr(self._spark, "sparkContext", None)
        return _CONNECT_JOBS if context is None else max(int(context.defaultParallelism), 1)

    def run(self, shared: bytes, task: bytes, tag: str) -> bytes:
        self._spark.addTag(tag)
        rows = pa.table({"shared": [shared], "task": [task]}, schema=_TASK)
        found = self._spark.createDataFrame(rows).mapInArrow(run_pickled, "answer binary").collect()
        return bytes(found[0]["answer"])

    def cancel(self, tag: str) -> None:
        self._spark.interruptTag(tag)


class _ContextJobs:
    """Jobs of a classic session of Spark 3.5."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def at_once(self) -> int:
        return max(int(self._context.defaultParallelism), 1)

    def run(self, shared: bytes, task: bytes, tag: str) -> bytes:
        self._context.addJobTag(tag)
        (answer,) = self._context.parallelize([(shared, task)], 1).map(_answer_of_pair).collect()
        return answer

    def cancel(self, tag: str) -> None:
        self._context.cancelJobsWithTag(tag)


def _is_before_4(spark: SparkSession) -> bool:
    return int(str(getattr(spark, "version", "4")).partition(".")[0]) < 4


def _answer_of_pair(pair: tuple[bytes, bytes]) -> bytes:
    return pickled_answer(*pair)


def run_pickled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On the executor: calls each row's function with its context and task."""
    for batch in batches:
        for shared, task in zip(batch["shared"], batch["task"], strict=True):
            yield pa.record_batch({"answer": [pickled_answer(shared.as_py(), task.as_py())]}, schema=_ANSWER)


def pickled_answer(shared: bytes, task: bytes) -> bytes:
    """On the executor: the pickled result of the function for `result_of`. `shared` has the function and the
    context."""
    return pickle.dumps(_answer(shared, task))


def result_of(answer: bytes) -> Any:
    """The task's result. Raises its error, if it was an error of this library."""
    found: _Answer = pickle.loads(answer)
    if found.error is not None:
        raise found.error
    return found.result


def _answer(shared: bytes, task: bytes) -> _Answer:
    function, context = _unpickled(shared)
    try:
        return _Answer(result=function(pickle.loads(task), context))
    except TableFormatError as error:
        return _Answer(error=error)


@lru_cache(maxsize=2)
def _unpickled(shared: bytes) -> tuple[Any, Any]:
    """Loaded once for all tasks of a job in a worker process, so that they share the caches of the context."""
    function, context = pickle.loads(shared)
    return function, context


def _first_lines(error: Exception) -> str:
    """The informative part of Spark's message, without the JVM stack trace at its end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.strip().startswith("at ")]
    python = [line for line in lines if "Error" in line.partition(":")[0]]
    return (python or lines or [type(error).__name__])[-1 if python else 0].rstrip(".")
