"""The outcome of a commit, recorded where it happens. Cleanup after a failure asks this object, because an interrupt
can keep a variable of the caller from being set.

    status = CommitStatus()
    with removing_on_failure(status, remove):         Ctrl-C here: removed
        outcome = commit_change(..., status=status)     Ctrl-C from the request on, also between the return and the
                                                    assignment: kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TypeVar

from pyiceberg.exceptions import CommitFailedException

from tableformat.errors import CommitStateUnknownError, SnapshotNotFoundError, StorageError, unknown_outcome

Answer = TypeVar("Answer")


class Sent(Enum):
    """How far the catalog call of a commit got."""

    NO = "nothing was sent, or the catalog said that it applied nothing"
    IN_FLIGHT = "sent, no answer"
    APPLIED = "applied"


class CommitStatus:
    """CP-51: the outcome of one commit over all its attempts. The commit updates it from before the request on."""

    def __init__(self) -> None:
        self.sent = Sent.NO
        self.subject = "the table"
        """The table and branch, for messages."""
        self.snapshot_id: int | None = None
        """The id of the snapshot that the commit adds (to the first table, if there are several); None for a change of
        metadata only."""

    @property
    def may_be_named(self) -> bool:
        """Whether the table references the files of the commit, or may still do so."""
        return self.sent is not Sent.NO

    def told(self, error: BaseException) -> CommitStateUnknownError:
        """The error to raise in place of one that occurred while the catalog had the request, or later."""
        return unknown_outcome(error, self._text(error))

    def _text(self, error: BaseException) -> str:
        cause = f"{type(error).__name__}: {error}"
        if self.snapshot_id is None:
            happened = self.sent is Sent.APPLIED
            said = (
                f"the change of {self.subject} was applied, and was interrupted afterwards ({cause})"
                if happened
                else f"the catalog did not confirm whether the change of {self.subject} was applied ({cause})"
            )
            return f"{said}. No file was removed; `remove_orphan_files` finds unneeded files."
        if self.sent is Sent.APPLIED:
            return (
                f"the commit to {self.subject} was applied as snapshot {self.snapshot_id}, and was interrupted "
                f"afterwards ({cause}). Its files were kept."
            )
        return (
            f"the catalog did not confirm whether the commit to {self.subject} was applied ({cause}). Its files were "
            "kept. Repeat the call with the same application_id and batch_id, or look for snapshot "
            f"{self.snapshot_id} before you write the rows again."
        )


@contextmanager
def removing_on_failure(status: CommitStatus, remove: Callable[[], None]) -> Iterator[None]:
    """CP-13, CP-51: call `remove` if the block fails, unless the table may reference the files. An interrupt after the
    request is raised as CommitStateUnknownError, and the files are kept."""
    try:
        yield
    except CommitStateUnknownError:
        raise
    except BaseException as error:
        if not status.may_be_named:
            remove()
            raise
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise status.told(error) from error
        raise


class NoAnswerError(Exception):
    """The catalog gave no answer, or one that does not state whether it applied the request."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        """The answer."""


def asked(status: CommitStatus, request: Callable[[], Answer]) -> Answer:
    """The answer of the catalog to a request; the outcome is recorded in `status`. Raises CommitFailedException if
    nothing was applied and another attempt is possible, NoAnswerError if the outcome is unknown."""
    status.sent = Sent.IN_FLIGHT
    try:
        answer = request()
    except CommitFailedException:
        status.sent = Sent.NO
        raise
    except SnapshotNotFoundError as error:
        # CP-62: a snapshot expired after the head was read; the next attempt uses the new head.
        status.sent = Sent.NO
        raise CommitFailedException(str(error)) from error
    except StorageError as error:
        if not error.nothing_changed:
            raise NoAnswerError(error) from error
        status.sent = Sent.NO
        raise
    except Exception as error:
        raise NoAnswerError(error) from error
    status.sent = Sent.APPLIED
    return answer
