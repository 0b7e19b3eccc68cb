"""How a long job tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """MT-62: called from the thread that runs the job; an exception that it raises cancels the job without harm.

    What was committed stays, other files are removed. Not called while a catalog has a request.
    """

    def __call__(self, done: int, total: int, what: str) -> None:
        """`done` of `total` steps, of which `what` names the kind; a job that has to start again counts from the
        beginning, and `total` may change."""


def silent(done: int, total: int, what: str) -> None:
    """For a caller who does not want to know."""
