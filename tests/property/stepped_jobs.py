"""Jobs that stop before every call to the catalog, so that a test decides what happens in between.

Files are immutable and metadata changes only in the catalog, so a job can be affected by the commits of others only at
these stops. Others may also remove files: within `file_calls_stop` a job that is `at_files` also stops before every
call to a file. Such a job does in its own thread the work that it would otherwise do in several, so that a repeated run
is the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from crash_points import FILE_CALLS

import tableformat as tf
from tableformat.maintenance.compaction.read_ahead import ReadAhead
from tableformat.maintenance.conversion import conversion_plan
from tableformat.storage import storage
from tableformat.testing.replacing import replaced

PATIENCE_SECONDS = 60
_running = threading.local()


class CancelledError(Exception):
    """Raised in a job instead of its next look at the catalog."""


class SteppedJob:
    """A job in its own thread with its own catalog; it runs only while `step` waits for it."""

    def __init__(
        self, name: str, directory: str, run: Callable[[tf.Table], Any], *, branch: str = "main", at_files: bool = False
    ) -> None:
        self.name = name
        self.is_done = False
        self.at_files = at_files
        """Whether it stops at calls to files too."""
        self.stopped_at = ""
        """The call that the job is about to make."""
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
        backend.load_table = self._stopping("load_table", backend.load_table)
        backend.commit_table = self._committing(self._stopping("commit_table", backend.commit_table))
        backend.commit_tables = self._committing(self._stopping("commit_tables", backend.commit_tables))
        backend.replace_histories = self._committing(self._stopping("replace_histories", backend.replace_histories))
        if at_files:
            backend.point_to = self._stopping("point_to", backend.point_to)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let the job run up to its next stop, or to its end."""
        self._go.release()
        assert self._stopped.acquire(timeout=PATIENCE_SECONDS), f"{self.name} neither stopped nor ended"

    def cancel(self) -> None:
        """The next time that the job loads the table raises CancelledError; a request to commit is let through."""
        self._is_cancelled = True

    def finish(self) -> Any:
        """Let the job run to its end; its result, or None if it failed."""
        while not self.is_done:
            self.step()
        self._thread.join(PATIENCE_SECONDS)
        self._catalog.close()
        return self.result

    def stop(self, call: str) -> None:
        """Wait for the next step, if this is the job's own thread."""
        if threading.current_thread() is not self._thread:
            return
        self.stopped_at = call
        self._stopped.release()
        self._go.acquire()
        if self._is_cancelled and not self._is_committing:
            raise CancelledError

    def _work(self) -> None:
        self._go.acquire()
        _running.job = self
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

    def _stopping(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A catalog call that stops first; the call may not have a name."""

        def stopping(*arguments: Any, **keywords: Any) -> Any:
            self.stop(name)
            return call(*arguments, **keywords)

        return stopping


def every_file_is_a_slice() -> AbstractContextManager[None]:
    """Conversions commit after each data file, so that others act between any two of them."""
    return replaced(conversion_plan.least_slice_weight, lambda _view: 1)


@contextmanager
def file_calls_stop() -> Iterator[None]:
    """While it is open, jobs that are `at_files` stop before each call to a file, and before a new file is whole."""
    with ExitStack() as patches:
        for function in (*FILE_CALLS, storage.write_bytes):
            patches.enter_context(replaced(function, partial(_stopping_before, function)))
        patches.enter_context(replaced(storage.open_output, partial(_stopping_output, storage.open_output)))
        patches.enter_context(replaced(ThreadPoolExecutor, _executor))
        patches.enter_context(replaced(ReadAhead, _read_ahead))
        yield


def _stop(call: str) -> None:
    if _is_stepped():
        _running.job.stop(call)


def _stopping_before(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    _stop(function.__name__)
    return function(*arguments, **keywords)


@contextmanager
def _stopping_output(open_output: Callable[..., Any], *arguments: Any, **keywords: Any) -> Iterator[Any]:
    _stop("open_output")
    with open_output(*arguments, **keywords) as sink:
        yield sink
        _stop("close_output")


def _is_stepped() -> bool:
    job: SteppedJob | None = getattr(_running, "job", None)
    return job is not None and job.at_files


class _HereAndNow(Executor):
    """An executor that runs each call at once, in the thread that submits it."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*arguments, **keywords))
        except BaseException as error:  # noqa: BLE001 - for who asks for the result
            done.set_exception(error)
        return done


def _executor(*arguments: Any, **keywords: Any) -> Executor:
    return _HereAndNow() if _is_stepped() else ThreadPoolExecutor(*arguments, **keywords)


def _read_ahead(source: Iterator[Any], depth: int) -> Any:
    return _not_ahead(source) if _is_stepped() else ReadAhead(source, depth)


@contextmanager
def _not_ahead(source: Iterator[Any]) -> Iterator[Iterator[Any]]:
    try:
        yield source
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()
