"""Adds the steps of a random history to its errors, because an example consists only of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def told_with(log: Sequence[str]) -> Iterator[None]:
    """Add the current lines of the log to any error that is raised."""
    try:
        yield
    except Exception as error:
        error.add_note("\n".join(log))
        raise
