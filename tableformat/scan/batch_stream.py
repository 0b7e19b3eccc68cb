"""`BatchStream`: batches that are read one by one, by one thread or by several."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Self

import pyarrow as pa


class BatchStream(Iterator[pa.RecordBatch]):
    """Each batch goes to one of the threads that ask. A stream that failed fails again: a generator that has raised
    looks like one that has come to its end, and the rows that are missing like no rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._lock = Lock()
        self._failure: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                return next(self._batches)
            except StopIteration:
                raise
            except BaseException as failure:
                self._failure = failure
                raise
