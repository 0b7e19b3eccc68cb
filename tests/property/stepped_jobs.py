"""Jobs that stop before every question to the catalog, so that a test decides what happens in between.

Files are immutable and metadata changes in the catalog alone, so these stops are all the places where a job can meet
others: everything between two of them might as well happen in an instant.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import tableformat as tf

PATIENCE_SECONDS = 60


class CancelledError(Exception):
    """Raised in a job instead of its next look at the catalog."""


class SteppedJob:
    """A job in a thread of its own with a catalog of its own; it runs only while `step` waits for it."""

    def __init__(self, name: str, directory: str, run: Callable[[tf.Table], Any], *, branch: str = "main") -> None:
        self.name = name
        self.is_done = False
        self.error: BaseException | None = None
        self.result: Any = None
        self._is_cancelled = False
        self._is_committing = False
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._run = run
        self._catalog = tf.open_catalog(directory)
        self._table = self._catalog.load_table("db.t", branch=branch)
        backend = self._catalog.iceberg
        backend.load_table = self._stopping(backend.load_table)
        backend.commit_table = self._committing(self._stopping(backend.commit_table))
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let the job run up to its next question to the catalog, or to its end."""
        self._go.release()
        assert self._stopped.acquire(timeout=PATIENCE_SECONDS), f"{self.name} neither stopped nor ended"

    def cancel(self) -> None:
        """The next time that the job loads the table raises CancelledError; a request to commit is let through."""
        self._is_cancelled = True

    def finish(self) -> Any:
        """Let the job run to its end; its result, None where it failed."""
        while not self.is_done:
            self.step()
        self._thread.join(PATIENCE_SECONDS)
        self._catalog.close()
        return self.result

    def _work(self) -> None:
        self._go.acquire()
        try:
            self.result = self._run(self._table)
        except BaseException as error:  # noqa: BLE001 - for the test to look at
            self.error = error
        self.is_done = True
        self._stopped.release()

    def _committing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Catalogs load the table to commit."""

        def committing(*arguments: Any, **keywords: Any) -> Any:
            self._is_committing = True
            try:
                return call(*arguments, **keywords)
            finally:
                self._is_committing = False

        return committing

    def _stopping(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stopping(*arguments: Any, **keywords: Any) -> Any:
            if threading.current_thread() is self._thread:
                self._stopped.release()
                self._go.acquire()
                if self._is_cancelled and not self._is_committing:
                    raise CancelledError
            return call(*arguments, **keywords)

        return stopping
