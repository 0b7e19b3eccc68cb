"""Bounded read-ahead in a background thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

_Item = TypeVar("_Item")
_POLL_SECONDS: Final = 0.1
_END: Final = object()


class _Failure:
    """The exception that the producer raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class ReadAhead(Generic[_Item]):
    """Iterates over `source` in a separate thread, at most `depth` items ahead of the consumer.

    An error of the source is raised at the position of its item. Leaving the block stops the thread, closes the source
    and waits for both. No resource of the source outlives the block.
    """

    def __init__(self, source: Iterator[_Item], depth: int) -> None:
        self._source = source
        self._items: queue.Queue[object] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="read-ahead", daemon=True)

    def __enter__(self) -> Iterator[_Item]:
        self._thread.start()
        return self._consume()

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _consume(self) -> Iterator[_Item]:
        while True:
            item = self._items.get()
            if item is _END:
                return
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]

    def _produce(self) -> None:
        try:
            for item in self._source:
                if not self._put(item):
                    break
            self._close_source()
            self._put(_END)
        except BaseException as error:  # noqa: BLE001 - raised again in the consumer's thread
            self._put(_Failure(error))

    def _close_source(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _put(self, item: object) -> bool:
        """False if the reader has stopped."""
        while not self._stopped.is_set():
            try:
                self._items.put(item, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False
