"""Progress of long jobs: the callback, and the number of snapshots that commit them in parts."""

from __future__ import annotations

from typing import Final, Protocol

from tableformat.commit.cancellation import check_cancelled
from tableformat.errors import InvalidArgumentError


class Progress(Protocol):
    """MT-62: called from the thread that runs the job; an exception that it raises cancels the job without harm.

    What was committed stays, other files are removed. Not called while a catalog has a request.
    """

    def __call__(self, done: int, total: int, what: str) -> None:
        """`done` of `total` steps, of which `what` names the kind; a job that has to start again counts from the
        beginning, and `total` may change."""


def silent(done: int, total: int, what: str) -> None:  # noqa: ARG001  a callback
    """MT-62: the callback of a caller who gave none. It cancels the job of a caller who no longer waits."""
    check_cancelled()


MAX_COMMITS_DEFAULT: Final = 10
"""As Iceberg's `partial-progress.max-commits`."""


def check_max_commits(max_commits: int) -> None:
    """InvalidArgumentError for what is no number of snapshots."""
    if isinstance(max_commits, bool) or not isinstance(max_commits, int) or max_commits < 1:
        raise InvalidArgumentError(f"max_commits must be a whole number above 0, not {max_commits!r}.")
