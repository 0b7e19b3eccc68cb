"""What became of a commit, noted where it happens: whoever cleans up after a failure asks this and no variable of its
own, which an interrupt keeps from being set.

    fate = CommitFate()
    with removing_on_failure(fate, remove):         Ctrl-C here: removed
        outcome = commit_change(..., fate=fate)     Ctrl-C from the request on, also between the return and the
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


class CommitFate:
    """CP-51: of one commit over all its attempts. The commit keeps it, from before the request on."""

    def __init__(self) -> None:
        self.sent = Sent.NO
        self.subject = "the table"
        """The table, and the branch, for messages."""
        self.snapshot_id: int | None = None
        """Of the snapshot that the commit adds, to the first of several tables; None for metadata alone."""

    @property
    def may_be_named(self) -> bool:
        """Whether the table names the files of the commit, or may do so yet."""
        return self.sent is not Sent.NO

    def told(self, error: BaseException) -> CommitStateUnknownError:
        """What an error becomes that came while the catalog had the request, or later."""
        return unknown_outcome(error, self._text(error))

    def _text(self, error: BaseException) -> str:
        cause = f"{type(error).__name__}: {error}"
        if self.snapshot_id is None:
            happened = self.sent is Sent.APPLIED
            said = (
                f"the change of {self.subject} happened, and was interrupted afterwards ({cause})"
                if happened
                else f"the catalog did not say whether the change of {self.subject} happened ({cause})"
            )
            return f"{said}. No file was removed; `remove_orphan_files` finds what is not needed any more."
        if self.sent is Sent.APPLIED:
            return (
                f"the commit to {self.subject} happened, as snapshot {self.snapshot_id}, and was interrupted "
                f"afterwards ({cause}). Its files were kept."
            )
        return (
            f"the catalog did not say whether the commit to {self.subject} happened ({cause}). Its files were kept. "
            f"Repeat the call with the same application_id and batch_id, or look for snapshot {self.snapshot_id} "
            "before writing the rows again."
        )


@contextmanager
def removing_on_failure(fate: CommitFate, remove: Callable[[], None]) -> Iterator[None]:
    """CP-13, CP-51: call `remove` when the block fails, unless the table may name what it would remove; an interrupt
    after the request is told as one whose files were kept."""
    try:
        yield
    except CommitStateUnknownError:
        raise
    except BaseException as error:
        if not fate.may_be_named:
            remove()
            raise
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise fate.told(error) from error
        raise


class NoAnswerError(Exception):
    """The catalog gave an answer that does not say whether it applied the request, or none."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        """The answer."""


def asked(fate: CommitFate, request: Callable[[], Answer]) -> Answer:
    """The answer of the catalog to a request, noted in `fate`. CommitFailedException if nothing was applied and another
    attempt may be made, NoAnswerError if that is not known."""
    fate.sent = Sent.IN_FLIGHT
    try:
        answer = request()
    except CommitFailedException:
        fate.sent = Sent.NO
        raise
    except SnapshotNotFoundError as error:
        # CP-62: a snapshot expired since the head was read; the next attempt names it.
        fate.sent = Sent.NO
        raise CommitFailedException(str(error)) from error
    except StorageError as error:
        if not error.nothing_changed:
            raise NoAnswerError(error) from error
        fate.sent = Sent.NO
        raise
    except Exception as error:
        raise NoAnswerError(error) from error
    fate.sent = Sent.APPLIED
    return answer
