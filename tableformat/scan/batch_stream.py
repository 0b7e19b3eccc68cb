"""`BatchStream`: batches that are read one by one, by one thread or by several."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Self

import pyarrow as pa


class BatchStream(Iterator[pa.RecordBatch]):
    """Each batch goes to one of the threads that ask for one.

    After an error, every further call raises it again. A generator that has raised looks as if it had ended, so missing
    rows would look like the end of the data.
    """

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
