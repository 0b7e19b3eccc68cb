"""The state that a child of fork() inherits while other threads of the parent are working.

The other threads do not exist in the child: a lock that one of them held stays locked, and a value that one of them was
loading never arrives.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Final, Protocol
from weakref import WeakSet


class Shared(Protocol):
    """State that the threads of a process share."""

    def remake_in_child(self) -> None:
        """Called in a child of fork(), which has only the calling thread."""


_shared: Final[WeakSet[Shared]] = WeakSet()
_locks: Final[WeakSet[Lock]] = WeakSet()


def remade_in_children(shared: Shared) -> None:
    """CP-63: register the object, so that its `remake_in_child` is called in each child of fork()."""
    _shared.add(shared)


def new_lock() -> Lock:
    """CP-63: a lock that is free in each child of fork(). It may only guard data that is consistent between any two
    instructions."""
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
