"""The executors of a job's tasks: threads of this process, a Spark session, or a runner of the caller."""

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
"""The values of a job's `executor`: "local", or a Spark session, classic or Connect. The process of a Spark catalog has
no session, so it passes its own runner."""
ExecutorChoice: TypeAlias = "Callable[[int], Executor]"
"""Chooses an executor by the number of bytes that a job will rewrite."""


def task_runner(executor: Executor) -> TaskRunner:
    """Raises InvalidArgumentError if the executor is neither "local", a Spark session nor a runner."""
    if executor == LOCAL:
        return LocalRunner()
    if is_spark_session(executor):
        return SparkRunner(executor)
    if isinstance(executor, TaskRunner):
        return executor
    raise InvalidArgumentError(
        f'executor must be "{LOCAL}" or a SparkSession, not {executor!r}. To run on Spark, pass the session itself: '
        "executor=spark."
    )


def is_spark_session(candidate: object) -> TypeGuard[SparkSession]:
    """Whether the object is a session, classic or Connect. The check does not import pyspark."""
    return any(
        each.__name__ == "SparkSession" and each.__module__.partition(".")[0] == "pyspark"
        for each in type(candidate).__mro__
    )
