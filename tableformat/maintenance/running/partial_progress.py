"""Jobs that commit what they have done so far, so that nothing of it is lost when they are cancelled."""

from __future__ import annotations

from typing import Final

from tableformat.errors import InvalidArgumentError

MAX_COMMITS_DEFAULT: Final = 10
"""As Iceberg's `partial-progress.max-commits`."""


def check_max_commits(max_commits: int) -> None:
    """InvalidArgumentError for what is no number of snapshots."""
    if isinstance(max_commits, bool) or not isinstance(max_commits, int) or max_commits < 1:
        raise InvalidArgumentError(f"max_commits must be a whole number above 0, not {max_commits!r}.")
