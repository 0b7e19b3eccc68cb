"""Ctrl-C for statements of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Result = TypeVar("Result")

_INTERRUPT_SECONDS: Final = 0.2


def run_cancellable(connection: DuckDBPyConnection, work: Callable[[], Result]) -> Result:
    """The result of the work, which uses the connection. Ctrl-C interrupts it and then raises KeyboardInterrupt.

    The work has a thread of its own. Python handles a signal in its main thread alone, between two of its own
    instructions, and DuckDB may compute there for minutes before it looks for one.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="statement") as executor:
        running = executor.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            _interrupt_until_done(connection, running)
            raise


def _interrupt_until_done(connection: DuckDBPyConnection, running: Future[Result]) -> None:
    """Interrupt again and again, because an interrupt between two statements is lost."""
    while not running.done():
        connection.interrupt()
        wait([running], timeout=_INTERRUPT_SECONDS)
