"""Cancels the work of a thread if its caller no longer waits for it (MT-62)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from tableformat.errors import OperationCancelledError

_is_cancelled: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("is_cancelled", default=None)


@contextmanager
def cancelled_when(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Within the block, jobs and commits of this thread raise OperationCancelledError once `is_cancelled` returns
    True."""
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def check_cancelled() -> None:
    """Raise OperationCancelledError if the work was cancelled. Called between the steps of a job, and before each
    request that changes something in a catalog."""
    is_cancelled = _is_cancelled.get()
    if is_cancelled is not None and is_cancelled():
        raise OperationCancelledError(
            "the operation was cancelled by its caller. Its earlier commits remain; nothing else was changed."
        )
