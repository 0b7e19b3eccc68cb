"""A cache for the contents of immutable files, bounded by memory and shared by the threads of a scan."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.forks import remade_in_children

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LoadingCache(Generic[K, V]):
    """Loads each value once, even if many threads request it: otherwise twenty tasks would read one delete file twenty
    times.

    Thread-safe. A copy that is sent to another process is empty.
    """

    def __init__(self, capacity_bytes: int, size_bytes: Callable[[V], int]) -> None:
        self._capacity_bytes = capacity_bytes
        self._size_bytes = size_bytes
        self._held: BoundedCache[K, V] = BoundedCache(capacity_bytes)
        self.remake_in_child()
        remade_in_children(self)

    def remake_in_child(self) -> None:
        """Forget the values that other threads are loading; loaded values stay."""
        self._loading: dict[K, Future[V]] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._capacity_bytes, self._size_bytes)

    def get_or_load(self, key: K, load: Callable[[], V]) -> V:
        """The value of the key, from `load` if it is not in the cache. After a failure the next caller loads again."""
        with self._lock:
            value = self._held.get(key)
            if value is not None:
                return value
            pending = self._loading.get(key)
            if pending is None:
                mine = self._loading[key] = Future()
        if pending is not None:
            return pending.result()
        try:
            value = load()
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            mine.set_exception(error)
            raise
        with self._lock:
            self._held.put(key, value, self._size_bytes(value))
            del self._loading[key]
        mine.set_result(value)
        return value

    def held(self, key: K) -> V | None:
        """The value if it was loaded before."""
        with self._lock:
            return self._held.get(key)

    def hold(self, key: K, value: V) -> None:
        """Store a value that was loaded together with others."""
        with self._lock:
            self._held.put(key, value, self._size_bytes(value))
