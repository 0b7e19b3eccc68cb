"""The executors of a job's tasks: threads of this process, or a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from tableformat.errors import InvalidArgumentError
from tableformat.maintenance.running.spark_runner import SparkRunner
from tableformat.maintenance.running.tasks import LocalRunner, TaskRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local"
Executor: TypeAlias = "str | SparkSession"
"""What a job's `executor` may be: "local" or a Spark session, classic or Connect."""


def task_runner(executor: Executor) -> TaskRunner:
    """InvalidArgumentError for what is neither "local" nor a Spark session."""
    if executor == LOCAL:
        return LocalRunner()
    if is_spark_session(executor):
        return SparkRunner(executor)
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
