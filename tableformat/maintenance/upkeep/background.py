"""The thread that runs upkeep concurrently with the writer (MT-86).

    writer    commit  commit  commit ... commit             commit
                                           | notify            | notify: the table waits already
    thread                                 +-- round -- round --+-- round -- idle -- ends

One thread serves all tables of the process. It starts when a table needs upkeep, and ends when nothing was due for a
while.

It also ends with the main thread. The current round is cancelled, which removes its new files. The removal of files of
expired snapshots is completed first, because no later round would continue it.

A fork cancels the round too, and it starts again after the fork. Otherwise the child could wait forever for a lock that
the thread held at that time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias
from uuid import UUID

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.commit_queue import QueuesCommits
from tableformat.maintenance.expiry.expired_files import UNNEEDED_FILES
from tableformat.maintenance.running.executors import LOCAL, Executor, ExecutorChoice
from tableformat.maintenance.upkeep.metrics import metrics_of
from tableformat.maintenance.upkeep.rounds import rounds_asked_for

logger = logging.getLogger(__name__)

_IDLE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 60.0
"""The longest pause between a failure and the next attempt. It doubles with each failure in a row."""
_FORK_PATIENCE_SECONDS: Final = 10.0
"""How long a fork waits for the cancellation of a round. Reading a remote file may take longer."""
_REMOVAL_SECONDS_AT_EXIT: Final = 10.0
"""How long a removal of files continues after the main thread has ended. The remaining files are found as orphans."""

_Waiting: TypeAlias = "tuple[IcebergTable, Executor | ExecutorChoice]"
"""A table, and the executor that rewrites its files."""


class _ProcessEndsError(Exception):
    """Raised in a job's progress call if the main thread has ended."""


class _ProcessForksError(Exception):
    """Raised in a job's progress call if a thread of the process wants to fork."""


class Background:
    """The tables that wait for upkeep, and the thread that runs it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[tuple[UUID, str], _Waiting] = {}
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._fork_count = 0
        """The number of threads that are forking or waiting to fork."""
        self._ends_since: float | None = None
        self._failures: dict[UUID, tuple[int, float]] = {}

    def notify(self, iceberg: IcebergTable, branch: str, executor: Executor | ExecutorChoice = LOCAL) -> None:
        """Add a table that needs upkeep. Returns at once. `iceberg` is a handle that nothing else moves. Raises
        RuntimeError if no thread can be started."""
        with self._changed:
            self._waiting[iceberg.metadata.table_uuid, branch] = iceberg, executor
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tableformat-upkeep", daemon=False)
                try:
                    self._thread.start()
                except RuntimeError:
                    # The thread limit is reached, or the interpreter is ending. Callers of `wait` must not wait for
                    # work that never runs.
                    self._waiting.clear()
                    self._thread = None
                    raise
            self._changed.notify_all()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until no table waits and no round runs. Returns False if the timeout expires before."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_busy), timeout_seconds)

    def stop_for_a_fork(self) -> None:
        """Prevent rounds until `go_on` is called. The current round is cancelled, and starts again then.

        A removal of files is completed first, because no later round would continue it.
        """
        with self._changed:
            self._fork_count += 1
            if threading.current_thread() is self._thread:
                return
            if not self._changed.wait_for(lambda: not self._is_busy, _FORK_PATIENCE_SECONDS):
                logger.warning("a fork waited %s s for the upkeep of a table, and continues", _FORK_PATIENCE_SECONDS)

    def go_on(self) -> None:
        """Continue after the fork."""
        with self._changed:
            self._fork_count = max(self._fork_count - 1, 0)  # Ctrl-C may have come before it was counted.
            self._changed.notify_all()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            (table_uuid, branch), (iceberg, executor) = task
            try:
                self._keep(table_uuid, iceberg, branch, executor)
            finally:
                with self._changed:
                    self._is_busy = False
                    self._changed.notify_all()

    def _next(self) -> tuple[tuple[UUID, str], _Waiting] | None:
        """The next table. None if no table was added for a while, or if the main thread has ended; a new thread is
        needed then. Tables that still wait are given up, and their waiters are notified."""
        idle_until = time.monotonic() + _IDLE_SECONDS
        with self._changed:
            while threading.main_thread().is_alive():
                if self._waiting and not self._fork_count:
                    key = next(iter(self._waiting))
                    self._is_busy = True
                    return key, self._waiting.pop(key)
                if not self._waiting and time.monotonic() >= idle_until:
                    break
                self._changed.wait(_LOOK_SECONDS)
            self._waiting.clear()
            self._thread = None
            self._changed.notify_all()
            return None

    def _keep(self, table_uuid: UUID, iceberg: IcebergTable, branch: str, executor: Executor | ExecutorChoice) -> None:
        metrics = metrics_of(table_uuid)
        count, not_before = self._failures.get(table_uuid, (0, 0.0))
        if time.monotonic() < not_before:
            return
        try:
            with _the_only_one(iceberg) as is_free:
                if not is_free:
                    metrics.skipped_count += 1
                    return
                for result in rounds_asked_for(iceberg, branch, executor=executor, progress=self._unless_cancelled):
                    metrics.add(result)
            self._failures.pop(table_uuid, None)
        except _ProcessEndsError:
            return
        except _ProcessForksError:
            with self._changed:
                self._waiting.setdefault((table_uuid, branch), (iceberg, executor))
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise to: it is logged, and counted
            if not threading.main_thread().is_alive():
                return
            metrics.fail(error)
            pause = min(2.0**count, _PAUSE_SECONDS_MAX)
            self._failures[table_uuid] = (count + 1, time.monotonic() + pause)
            logger.warning(
                "upkeep of %s failed; the next commit after %s s will retry: %s",
                ".".join(iceberg.name()),
                pause,
                error,
            )

    def _unless_cancelled(self, done: int, total: int, what: str) -> None:
        if not threading.main_thread().is_alive():
            if self._ends_since is None:
                self._ends_since = time.monotonic()
            if what != UNNEEDED_FILES or time.monotonic() - self._ends_since > _REMOVAL_SECONDS_AT_EXIT:
                raise _ProcessEndsError(f"{done} of {total} {what}")
        elif self._fork_count and what != UNNEEDED_FILES:
            raise _ProcessForksError(f"{done} of {total} {what}")


@contextmanager
def _the_only_one(iceberg: IcebergTable) -> Iterator[bool]:
    """Whether no other process on this machine runs upkeep of the table. If the catalog has no queue, this is unknown:
    two processes may do the same work, and only one of them commits."""
    catalog = iceberg.catalog
    queue = catalog.upkeep_queue(iceberg.metadata.table_uuid) if isinstance(catalog, QueuesCommits) else None
    if queue is None:
        yield True
        return
    ticket = queue.take_if_free()
    try:
        yield ticket is not None
    finally:
        if ticket is not None:
            ticket.give_back()


BACKGROUND: Final = Background()


def _forget_in_the_child() -> None:
    """A thread does not exist in the child after a fork. The parent's thread continues."""
    BACKGROUND.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=BACKGROUND.stop_for_a_fork, after_in_parent=BACKGROUND.go_on, after_in_child=_forget_in_the_child
    )
