"""Progress of long jobs: the callback, and the number of snapshots of jobs that commit in parts."""

from __future__ import annotations

from typing import Final, Protocol

from tableformat.commit.cancellation import check_cancelled
from tableformat.errors import InvalidArgumentError


class Progress(Protocol):
    """MT-62: called from the thread that runs the job. An exception that it raises cancels the job without harm.

    Committed changes stay, other files are removed. Not called during a request to a catalog.
    """

    def __call__(self, done: int, total: int, what: str) -> None:
        """`done` of `total` steps of the kind `what`. A job that has to start again counts from the beginning, and
        `total` may change."""


def silent(done: int, total: int, what: str) -> None:  # noqa: ARG001  a callback
    """MT-62: the default callback. It cancels the job if its caller no longer waits."""
    check_cancelled()


MAX_COMMITS_DEFAULT: Final = 10
"""The default of Iceberg's `partial-progress.max-commits`."""


def check_max_commits(max_commits: int) -> None:
    """Raises InvalidArgumentError if the value is not a positive number of snapshots."""
    if isinstance(max_commits, bool) or not isinstance(max_commits, int) or max_commits < 1:
        raise InvalidArgumentError(f"max_commits must be a whole number above 0, not {max_commits!r}.")
