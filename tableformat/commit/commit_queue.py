"""A queue of the writers that want to commit to one table, using locks on a file of this machine (decision 15).

    byte of the file    0        1        2        3
    locked by           -        w3       w1       w2
                                 commits  waits    waits      the next writer takes 4

A writer locks the byte after the last locked one: its ticket. Its turn comes when no byte before it is locked. A lock
ends with its process, however the process ends. A writer that stays at the front for too long is skipped: the file
holds the lowest ticket that still counts. When no writer waits, tickets start there again.

The queue only orders the writers. Commits are compare-and-set operations (CP-1), so a missing, skipped or damaged queue
costs attempts but no rows.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import struct
import sys
import time
import weakref
import zlib
from typing import Final, Protocol, runtime_checkable
from uuid import UUID

if sys.platform == "linux":
    import fcntl

logger = logging.getLogger(__name__)

IS_SUPPORTED: Final = sys.platform == "linux" and sys.maxsize > 2**32
"""Locks that belong to an open file instead of a process, so that threads queue too. Python supports them on Linux."""

_TICKET_BITS: Final = 42
_TABLE_BITS: Final = 20
_FLOCK: Final = struct.Struct("hhqqi4x")
_NUMBER: Final = struct.Struct("<Q")
_TICKETS: Final = 1 << _TICKET_BITS
_POLL_SECONDS: Final = 0.001
_POLLS_APART_MAX: Final = 10


class Place(Protocol):
    """A position in a queue; it ends with its process."""

    def wait(self, patience_seconds: float) -> None:
        """Wait until it is its turn. A writer that is ahead for longer than `patience_seconds` is skipped. Raises
        OSError if the state of the queue cannot be read."""

    def give_back(self) -> None:
        """Leave the queue."""


class WriterQueue(Protocol):
    """The writers that want to commit to one table, in order of arrival."""

    @property
    def number(self) -> int:
        """The number of the queue in its catalog. Tables with the same number share a queue."""

    def is_busy(self) -> bool:
        """Whether a new writer must queue before its first attempt."""

    def take(self) -> Place:
        """Take the next position. Raises OSError if the queue does not work."""


@runtime_checkable
class QueuesCommits(Protocol):
    """A catalog whose writers can queue."""

    def commit_queue(self, table_uuid: UUID) -> WriterQueue | None:
        """The queue of a table, or None."""

    def upkeep_queue(self, table_uuid: UUID) -> CommitQueue | None:
        """The queue of the processes that maintain a table, where one process is enough (MT-86). None without a
        queue."""


class CommitQueue:
    """The queue of one table."""

    def __init__(self, path: str, table_uuid: UUID) -> None:
        """`path` is a file that all writers of the catalog share. The first writer that waits creates it."""
        self._path = path
        # Two tables with the same number only wait for each other.
        self._first_byte = (zlib.crc32(table_uuid.bytes) & ((1 << _TABLE_BITS) - 1)) << _TICKET_BITS

    @property
    def number(self) -> int:
        """The first byte of the tickets of this table."""
        return self._first_byte

    def is_busy(self) -> bool:
        """Whether a writer has a ticket. This is one system call if no writer has ever waited."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            passed = _read_passed(descriptor)
            return _holder(descriptor, self._first_byte, passed, _TICKETS) is not None
        finally:
            os.close(descriptor)

    def take(self) -> Ticket:
        """Take the next ticket. Raises OSError if the file system has no locks."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            number = _read_passed(descriptor)
            while (holder := _holder(descriptor, self._first_byte, number, _TICKETS)) is not None:
                number = holder + 1
            # A writer that came at the same moment may have locked this byte first.
            while not _lock(descriptor, self._first_byte + number):
                number += 1
        except BaseException:
            os.close(descriptor)
            raise
        return Ticket(descriptor, self._first_byte, number)

    def take_if_free(self) -> Ticket | None:
        """A ticket whose turn is now, if no other writer has one. None if one has, or if locks do not work."""
        try:
            ticket = self.take()
        except OSError as error:
            logger.warning("could not lock %s: %s", self._path, error)
            return None
        if ticket.is_first():
            return ticket
        ticket.give_back()
        return None


class Ticket:
    """A position in the queue, until it is returned or the process ends."""

    def __init__(self, descriptor: int, first_byte: int, number: int) -> None:
        self._descriptor = descriptor
        self._first_byte = first_byte
        self._number = number
        _tickets.add(self)

    def wait(self, patience_seconds: float) -> None:
        """Wait until each writer ahead has committed, or was at the front for `patience_seconds` and is skipped."""
        front: int | None = None
        since = 0.0
        while (holder := self._front()) is not None:
            now = time.monotonic()
            if holder != front:
                front, since = holder, now
            elif now - since >= patience_seconds:
                logger.warning(
                    "a writer has held the commit lock for more than %s s; committing without waiting for it",
                    round(patience_seconds, 3),
                )
                os.pwrite(self._descriptor, _NUMBER.pack(holder + 1), 0)
            # The next writer polls more often than those behind it.
            time.sleep(_POLL_SECONDS * min(self._number - holder, _POLLS_APART_MAX))

    def is_first(self) -> bool:
        """Whether no writer is ahead of it."""
        return self._front() is None

    def give_back(self) -> None:
        """Leave the queue."""
        if self in _tickets:
            _tickets.discard(self)
            # Unlock before closing the file: a process that was forked in the meantime has it open, too.
            _fcntl(self._descriptor, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, 0, 0)
            os.close(self._descriptor)

    def _front(self) -> int | None:
        """The lowest ticket before this one that still counts."""
        passed = _read_passed(self._descriptor)
        lowest: int | None = None
        before = self._number
        while before > passed and (holder := _holder(self._descriptor, self._first_byte, passed, before)) is not None:
            lowest = before = holder
        return lowest

    def close_in_child(self) -> None:
        """Close the file in a forked process. The lock belongs to the parent, and an open copy would outlive it."""
        os.close(self._descriptor)


_tickets: Final[weakref.WeakSet[Ticket]] = weakref.WeakSet()


def _leave_tickets_to_the_parent() -> None:
    for ticket in list(_tickets):
        ticket.close_in_child()
    _tickets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_tickets_to_the_parent)


class CommitTurn:
    """The queue position of one commit: none while the queue is not busy, one from the first lost race on.

    A context manager that gives the position back.
    """

    def __init__(self, queue: WriterQueue | None, *, patience_seconds: float, pause_seconds: float) -> None:
        """`patience_seconds`: how long a writer ahead of us may stay at the front. `pause_seconds`: the longest pause
        after a race that was lost against a writer outside the queue."""
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._pause_seconds = pause_seconds
        self._place: Place | None = None

    def __enter__(self) -> CommitTurn:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._place is not None:
            self._place.give_back()

    @property
    def is_queued(self) -> bool:
        """Whether the next attempt waits for its turn, so that no other wait is needed."""
        return self._queue is not None

    def before_attempt(self, attempt: int) -> None:
        """Wait for the turn: from the second attempt on, and at the first one if others already wait."""
        if self._queue is None:
            return
        try:
            if self._place is None and (attempt > 1 or self._queue.is_busy()):
                self._place = self._queue.take()
            if self._place is not None:
                self._place.wait(self._patience_seconds)
        except OSError as error:
            # For example, a file system without locks. Then wait for random times, as in catalogs without a queue.
            logger.warning("the commit queue is unavailable; retries wait random times instead: %s", error)
            self._queue = None

    def pause_seconds(self, attempt: int) -> float:
        """The time to wait after a lost race. A writer whose turn it is can only have lost against writers outside the
        queue."""
        return random.uniform(0, self._pause_seconds) if attempt > 1 else 0.0


def _read_passed(descriptor: int) -> int:
    """The lowest ticket that still counts."""
    data = os.pread(descriptor, _NUMBER.size, 0)
    passed: int = _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else 0
    # Start again if the number is too large to be a real ticket.
    return passed if passed < _TICKETS // 2 else 0


def _lock(descriptor: int, byte: int) -> bool:
    """Lock the byte; False if it was locked already."""
    try:
        _fcntl(descriptor, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, byte, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _holder(descriptor: int, first_byte: int, lower: int, upper: int) -> int | None:
    """A ticket from lower to upper that another open file has locked, not always the lowest one."""
    if lower >= upper:
        return None
    kind, start = _fcntl(descriptor, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, first_byte + lower, upper - lower)
    return None if kind == fcntl.F_UNLCK else start - first_byte


def _fcntl(descriptor: int, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
    """Call fcntl; return the kind and start of the lock that it reports."""
    answer = fcntl.fcntl(descriptor, command, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    found = _FLOCK.unpack(answer)
    return found[0], found[2]
