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
    """A thread-safe map with a size limit; the least recently used values are removed.

    Two threads that miss the same key both compute the value. This is harmless: a value is a pure function of its key.
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
        """Keep the value, unless it is larger than the whole cache."""
        if weight <= self._max_weight:
            with self._lock:
                self._entries[key] = (value, weight)
