"""How a long job tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from the thread that runs the job; an exception it raises cancels the job, and nothing is changed."""

    def __call__(self, done: int, total: int, what: str) -> None:
        """`done` of `total` steps, of which `what` names the kind."""
