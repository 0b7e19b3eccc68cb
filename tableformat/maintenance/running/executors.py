"""The executors of a job's tasks: threads of this process, a Spark session, or a runner that the caller has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.running.spark_runner import SparkRunner
from tableformat.maintenance.running.tasks import LocalRunner, TaskRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local"
Executor: TypeAlias = "str | SparkSession | TaskRunner"
"""What a job's `executor` may be: "local" or a Spark session, classic or Connect. The process behind a Spark catalog
has no session, and a runner of its own."""
ExecutorChoice: TypeAlias = "Callable[[int], Executor]"
"""An executor by the bytes that a job is going to rewrite."""


def task_runner(executor: Executor) -> TaskRunner:
    """InvalidArgumentError for what is neither "local" nor a Spark session."""
    if executor == LOCAL:
        return LocalRunner()
    if is_spark_session(executor):
        return SparkRunner(executor)
    if isinstance(executor, TaskRunner):
        return executor
    raise InvalidArgumentError(
        f'executor must be "{LOCAL}" or a SparkSession, not {executor!r}. To run on Spark pass the session itself: '
        "executor=spark."
    )


def is_spark_session(candidate: object) -> TypeGuard[SparkSession]:
    """Whether it is a session, classic or Connect; pyspark is not imported for the question."""
    return any(
        each.__name__ == "SparkSession" and each.__module__.partition(".")[0] == "pyspark"
        for each in type(candidate).__mro__
    )
