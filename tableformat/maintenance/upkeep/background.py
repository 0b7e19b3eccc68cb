"""The thread that keeps tables in shape beside the writer (MT-86).

    writer    commit  commit  commit ... commit             commit
                                           | notify            | notify: the table waits already
    thread                                 +-- round -- round --+-- round -- idle -- ends

One thread for all tables of the process, started when there is something to do. It ends when nothing was due for a
while, and with the main thread: the round is cancelled, which removes what it had written, but files
of snapshots that have expired go first: nobody would take that up again. A fork cancels it too, and
it begins anew behind the fork: a child would wait for ever for a lock that the thread holds in that moment.
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
"""Between a failure and the next try, which is twice as long after each failure in a row."""
_FORK_PATIENCE_SECONDS: Final = 10.0
"""How long a fork waits for a round to be cancelled; a file that is read from far away may take longer."""
_REMOVAL_SECONDS_AT_EXIT: Final = 10.0
"""How long a removal of files goes on when the main thread has ended; what is left is found as orphans."""

_Waiting: TypeAlias = "tuple[IcebergTable, Executor | ExecutorChoice]"
"""A table, and where its files are rewritten."""


class _ProcessEndsError(Exception):
    """Raised in a job's progress call when the main thread has ended."""


class _ProcessForksError(Exception):
    """Raised in a job's progress call when a thread of the process wants to fork."""


class Background:
    """The tables that wait for upkeep, and the thread that does it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[tuple[UUID, str], _Waiting] = {}
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._fork_count = 0
        """Threads that fork, or wait to."""
        self._ends_since: float | None = None
        self._failures: dict[UUID, tuple[int, float]] = {}

    def notify(self, iceberg: IcebergTable, branch: str, executor: Executor | ExecutorChoice = LOCAL) -> None:
        """Something is due. Returns at once; `iceberg` is a handle that nobody else moves. RuntimeError where no thread
        can be started."""
        with self._changed:
            self._waiting[iceberg.metadata.table_uuid, branch] = iceberg, executor
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tableformat-upkeep", daemon=False)
                try:
                    self._thread.start()
                except RuntimeError:
                    # No more threads, or the interpreter is ending: nobody is to wait for what nobody does.
                    self._waiting.clear()
                    self._thread = None
                    raise
            self._changed.notify_all()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Until nothing waits and nothing runs; False when the time was over before."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_busy), timeout_seconds)

    def stop_for_a_fork(self) -> None:
        """No round runs from now on until `go_on`: the one that does is cancelled, and begins anew then.

        A removal of files is waited for, since nobody would take it up again.
        """
        with self._changed:
            self._fork_count += 1
            if threading.current_thread() is self._thread:
                return
            if not self._changed.wait_for(lambda: not self._is_busy, _FORK_PATIENCE_SECONDS):
                logger.warning("a fork has waited %s s for the upkeep of a table, and goes on", _FORK_PATIENCE_SECONDS)

    def go_on(self) -> None:
        """The fork has happened."""
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
        """The next table; None, after which a new thread is needed, when none came for a while, or when the main thread
        has ended: what waits is given up then, and who waits for it is told."""
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
                "upkeep of %s failed, and the next commit after %s s tries again: %s",
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
    """Whether no other process of this machine is at it; where the catalog has no queue that is not known, and two do
    the same work, of which one is committed."""
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
    """A thread does not cross a fork; the parent's goes on."""
    BACKGROUND.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=BACKGROUND.stop_for_a_fork, after_in_parent=BACKGROUND.go_on, after_in_child=_forget_in_the_child
    )
