"""A queue of the writers that want to commit to one table, by locks on a file of this machine (decision 15).

    byte of the file    0        1        2        3
    locked by           -        w3       w1       w2
                                 commits  waits    waits      the next one to come takes 4

A writer locks the byte after the last one that is locked: its ticket. Its turn is when nobody has a byte before it. A
lock goes with its process, however that ends. Who stays at the front for too long is passed by: the file holds the
lowest ticket that still counts. When nobody waits, tickets begin there again.

Only the order of writers comes from here. Commits are compared and set (CP-1), so a queue that is left out, passed by
or damaged costs attempts and no rows.
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
"""Locks that belong to an open file and not to a process, so that threads queue too; Python has them for Linux."""

_TICKET_BITS: Final = 42
_TABLE_BITS: Final = 20
_FLOCK: Final = struct.Struct("hhqqi4x")
_NUMBER: Final = struct.Struct("<Q")
_TICKETS: Final = 1 << _TICKET_BITS
_POLL_SECONDS: Final = 0.001
_POLLS_APART_MAX: Final = 10


class Place(Protocol):
    """A place in a queue, which goes with its process."""

    def wait(self, patience_seconds: float) -> None:
        """Until it is its turn; who is before for longer than `patience_seconds` is not waited for. OSError where that
        cannot be told."""

    def give_back(self) -> None:
        """Leave the queue."""


class WriterQueue(Protocol):
    """The writers that want to commit to one table, in the order in which they came."""

    @property
    def number(self) -> int:
        """Which queue of the catalog it is. Tables may share a number, and a queue with it."""

    def is_busy(self) -> bool:
        """Whether a writer that comes now is to queue before its first attempt."""

    def take(self) -> Place:
        """The next place. OSError where there is none to be had."""


@runtime_checkable
class QueuesCommits(Protocol):
    """A catalog that can tell its writers to queue."""

    def commit_queue(self, table_uuid: UUID) -> WriterQueue | None:
        """The queue of a table; None where there is none."""

    def upkeep_queue(self, table_uuid: UUID) -> CommitQueue | None:
        """The queue of those who keep a table in shape, of whom one is enough (MT-86); None where there is none."""


class CommitQueue:
    """The queue of one table."""

    def __init__(self, path: str, table_uuid: UUID) -> None:
        """`path`: of a file that all writers of the catalog share. It is made by the first one who waits."""
        self._path = path
        # Two tables that share a number wait for each other, and no more.
        self._first_byte = (zlib.crc32(table_uuid.bytes) & ((1 << _TABLE_BITS) - 1)) << _TICKET_BITS

    @property
    def number(self) -> int:
        """The first byte of its tickets."""
        return self._first_byte

    def is_busy(self) -> bool:
        """Whether somebody has a ticket; one system call where nobody ever waited."""
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
        """The next ticket. OSError where the file system has no locks."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            number = _read_passed(descriptor)
            while (holder := _holder(descriptor, self._first_byte, number, _TICKETS)) is not None:
                number = holder + 1
            # Somebody who came at the same moment may have had it first.
            while not _lock(descriptor, self._first_byte + number):
                number += 1
        except BaseException:
            os.close(descriptor)
            raise
        return Ticket(descriptor, self._first_byte, number)

    def take_if_free(self) -> Ticket | None:
        """A ticket where nobody has one, so that its turn is now; None where somebody has, or without locks."""
        try:
            ticket = self.take()
        except OSError as error:
            logger.warning("no lock on %s: %s", self._path, error)
            return None
        if ticket.is_first():
            return ticket
        ticket.give_back()
        return None


class Ticket:
    """A place in the queue, until it is returned or the process ends."""

    def __init__(self, descriptor: int, first_byte: int, number: int) -> None:
        self._descriptor = descriptor
        self._first_byte = first_byte
        self._number = number
        _tickets.add(self)

    def wait(self, patience_seconds: float) -> None:
        """Until everybody before has committed, or was at the front for `patience_seconds` and is passed by."""
        front: int | None = None
        since = 0.0
        while (holder := self._front()) is not None:
            now = time.monotonic()
            if holder != front:
                front, since = holder, now
            elif now - since >= patience_seconds:
                logger.warning(
                    "a writer holds its turn to commit for more than %s s; passing it by", round(patience_seconds, 3)
                )
                os.pwrite(self._descriptor, _NUMBER.pack(holder + 1), 0)
            # The next in line looks more often than those behind.
            time.sleep(_POLL_SECONDS * min(self._number - holder, _POLLS_APART_MAX))

    def is_first(self) -> bool:
        """Whether nobody is before it."""
        return self._front() is None

    def give_back(self) -> None:
        """Leave the queue."""
        if self in _tickets:
            _tickets.discard(self)
            # Said before the file is closed: a process that was forked meanwhile has it open as well.
            _fcntl(self._descriptor, fcntl.F_OFD_SETLK, fcntl.F_UNLCK, 0, 0)
            os.close(self._descriptor)

    def _front(self) -> int | None:
        """The lowest ticket before this one that counts."""
        passed = _read_passed(self._descriptor)
        lowest: int | None = None
        before = self._number
        while before > passed and (holder := _holder(self._descriptor, self._first_byte, passed, before)) is not None:
            lowest = before = holder
        return lowest

    def close_in_child(self) -> None:
        """The lock is the parent's; a copy that stays open would outlive it."""
        os.close(self._descriptor)


_tickets: Final[weakref.WeakSet[Ticket]] = weakref.WeakSet()


def _leave_tickets_to_the_parent() -> None:
    for ticket in list(_tickets):
        ticket.close_in_child()
    _tickets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_tickets_to_the_parent)


class CommitTurn:
    """One commit's way through the queue: none while the queue is not busy, a place from the first lost race on.

    A context manager that gives the place back.
    """

    def __init__(self, queue: WriterQueue | None, *, patience_seconds: float, pause_seconds: float) -> None:
        """`patience_seconds`: how long one who is before us may stay at the front. `pause_seconds`: the longest pause
        after a race that was lost against somebody outside of the queue."""
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
        """Whether the next attempt comes in its turn, so that nothing is gained by waiting before."""
        return self._queue is not None

    def before_attempt(self, attempt: int) -> None:
        """Wait for the turn: from the second attempt on, and at the first where others wait already."""
        if self._queue is None:
            return
        try:
            if self._place is None and (attempt > 1 or self._queue.is_busy()):
                self._place = self._queue.take()
            if self._place is not None:
                self._place.wait(self._patience_seconds)
        except OSError as error:
            # Such as a file system without locks. Waits of random length are what catalogs without a queue have.
            logger.warning("commits do not queue here, and wait for random times instead: %s", error)
            self._queue = None

    def pause_seconds(self, attempt: int) -> float:
        """How long to wait after a lost race: with the turn in hand only for those who do not queue."""
        return random.uniform(0, self._pause_seconds) if attempt > 1 else 0.0


def _read_passed(descriptor: int) -> int:
    """The lowest ticket that still counts."""
    data = os.pread(descriptor, _NUMBER.size, 0)
    passed: int = _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else 0
    # Of a number that nobody can have reached, begin again.
    return passed if passed < _TICKETS // 2 else 0


def _lock(descriptor: int, byte: int) -> bool:
    """Whether the byte was free, and is locked now."""
    try:
        _fcntl(descriptor, fcntl.F_OFD_SETLK, fcntl.F_WRLCK, byte, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _holder(descriptor: int, first_byte: int, lower: int, upper: int) -> int | None:
    """A ticket in lower .. upper that another open file has locked, not always the lowest one."""
    if lower >= upper:
        return None
    kind, start = _fcntl(descriptor, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, first_byte + lower, upper - lower)
    return None if kind == fcntl.F_UNLCK else start - first_byte


def _fcntl(descriptor: int, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
    """The call, and kind and start of the lock that it returns."""
    answer = fcntl.fcntl(descriptor, command, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    found = _FLOCK.unpack(answer)
    return found[0], found[2]
