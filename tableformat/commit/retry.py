"""The retry policy of commits: how often and how long a commit that lost a race is retried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from tableformat import properties as names
from tableformat.commit.cancellation import check_cancelled
from tableformat.commit.commit_queue import CommitTurn, QueuesCommits, WriterQueue
from tableformat.commit.postgres_queue import POSTGRESQL, PostgresQueue
from tableformat.commit.several_queues import QueueOfSeveral

Result = TypeVar("Result")

STATUS_CHECKS: Final = "commit.status-check.num-retries"
STATUS_CHECKS_DEFAULT: Final = 3
STATUS_CHECK_MIN_WAIT_MS: Final = "commit.status-check.min-wait-ms"
STATUS_CHECK_MIN_WAIT_MS_DEFAULT: Final = 1_000
STATUS_CHECK_MAX_WAIT_MS: Final = "commit.status-check.max-wait-ms"
STATUS_CHECK_MAX_WAIT_MS_DEFAULT: Final = 60_000


def retry_lost_races(attempt: Callable[[], Result], *tables: Table) -> Result:
    """Call `attempt` again after CommitFailedException, as Iceberg's `commit.retry.*` properties specify, and re-raise
    the last one. If the catalog of the tables has a queue, wait for the turn in it (CP-26, CP-32).

    Without a queue, the wait is random between zero and a bound that doubles, so that writers that collided once do not
    collide forever. For several tables, the largest value of each property counts (CP-79).
    """
    retries = _greatest(tables, names.COMMIT_RETRIES, names.COMMIT_RETRIES_DEFAULT)
    min_wait_ms = _greatest(tables, names.COMMIT_MIN_WAIT_MS, names.COMMIT_MIN_WAIT_MS_DEFAULT)
    max_wait_ms = _greatest(tables, names.COMMIT_MAX_WAIT_MS, names.COMMIT_MAX_WAIT_MS_DEFAULT)
    timeout = (names.COMMIT_TOTAL_TIMEOUT_MS, names.COMMIT_TOTAL_TIMEOUT_MS_DEFAULT)
    total_ms = max(names.positive_int(table.metadata.properties, *timeout) for table in tables)
    doubling = wait_random_exponential(multiplier=min_wait_ms / 1000, max=max_wait_ms / 1000)
    queue = _queue_of(tables)
    with CommitTurn(queue, patience_seconds=max_wait_ms / 1000, pause_seconds=min_wait_ms / 1000) as turn:

        def wait_seconds(state: RetryCallState) -> float:
            return turn.pause_seconds(state.attempt_number) if turn.is_queued else doubling(state)

        def before_attempt(state: RetryCallState) -> None:
            turn.before_attempt(state.attempt_number)
            check_cancelled()

        retrying = Retrying(
            before=before_attempt,
            retry=retry_if_exception_type(CommitFailedException),
            stop=stop_after_attempt(retries + 1) | stop_after_delay(total_ms / 1000),
            wait=wait_seconds,
            reraise=True,
        )
        return retrying(attempt)


def _greatest(tables: Sequence[Table], name: str, default: int) -> int:
    return max(names.non_negative_int(table.metadata.properties, name, default) for table in tables)


def _queue_of(tables: Sequence[Table]) -> WriterQueue | None:
    """The queue of the tables, which are in one catalog. None if a table has no queue."""
    queues = [queue for table in tables if (queue := _queue_of_table(table)) is not None]
    if len(queues) < len(tables):
        return None
    return queues[0] if len(queues) == 1 else QueueOfSeveral(queues)


def _queue_of_table(table: Table) -> WriterQueue | None:
    catalog = table.catalog
    if isinstance(catalog, QueuesCommits):
        return catalog.commit_queue(table.metadata.table_uuid)
    if isinstance(catalog, SqlCatalog) and catalog.engine.dialect.name == POSTGRESQL:
        return PostgresQueue(catalog.engine, table.metadata.table_uuid)
    return None


def status_check_waits_seconds(properties: Mapping[str, str]) -> tuple[float, ...]:
    """Seconds to wait before each check of a table after a commit without an answer; the first check is immediate."""
    checks = names.positive_int(properties, STATUS_CHECKS, STATUS_CHECKS_DEFAULT)
    min_wait_ms = names.non_negative_int(properties, STATUS_CHECK_MIN_WAIT_MS, STATUS_CHECK_MIN_WAIT_MS_DEFAULT)
    max_wait_ms = names.non_negative_int(properties, STATUS_CHECK_MAX_WAIT_MS, STATUS_CHECK_MAX_WAIT_MS_DEFAULT)
    return (0.0, *(min(min_wait_ms * 2**check, max_wait_ms) / 1000 for check in range(checks - 1)))
