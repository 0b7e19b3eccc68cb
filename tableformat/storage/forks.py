"""What a child of fork() inherits in the middle of another thread's work.

The other threads do not exist in the child: a lock that one of them held stays locked, and a value that one of them was
loading never comes.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Final, Protocol
from weakref import WeakSet


class Shared(Protocol):
    """What the threads of a process share."""

    def remake_in_child(self) -> None:
        """Called in a child of fork(), where this thread is the only one."""


_shared: Final[WeakSet[Shared]] = WeakSet()
_locks: Final[WeakSet[Lock]] = WeakSet()


def remade_in_children(shared: Shared) -> None:
    """CP-63: have the object's `remake_in_child` called in each child of fork()."""
    _shared.add(shared)


def new_lock() -> Lock:
    """CP-63: a lock that is free in each child of fork(), for what is consistent between any two instructions."""
    lock = Lock()
    _locks.add(lock)
    return lock


def _remake() -> None:
    for lock in list(_locks):
        if lock.locked():
            lock.release()
    for shared in list(_shared):
        shared.remake_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remake)
