"""A cache of content of immutable files, bounded by its bytes."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

from tableformat.storage.forks import remade_in_children

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class BoundedCache(Generic[_Key, _Value]):
    """A map that forgets what was used least recently when its values weigh more than a limit; safe among threads.

    Two threads that miss the same key both compute the value: harmless, values are pure functions of their keys.
    """

    def __init__(self, max_weight: int) -> None:
        self._max_weight = max_weight
        self._clear()
        remade_in_children(self)

    def _clear(self) -> None:
        self._entries: LRUCache[_Key, tuple[_Value, int]] = LRUCache(self._max_weight, getsizeof=lambda entry: entry[1])
        self._lock = Lock()

    def remake_in_child(self) -> None:
        if self._lock.locked():
            self._clear()

    def get(self, key: _Key) -> _Value | None:
        with self._lock:
            entry = self._entries.get(key)
        return entry[0] if entry is not None else None

    def put(self, key: _Key, value: _Value, weight: int) -> None:
        """A value heavier than the whole cache is not kept."""
        if weight <= self._max_weight:
            with self._lock:
                self._entries[key] = (value, weight)
