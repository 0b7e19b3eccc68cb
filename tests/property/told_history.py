"""Errors of random histories say what was done before: examples are numbers, of which nothing can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def told_with(log: Sequence[str]) -> Iterator[None]:
    """Whatever is raised gets the lines of the log, as they are then."""
    try:
        yield
    except Exception as error:
        error.add_note("\n".join(log))
        raise
