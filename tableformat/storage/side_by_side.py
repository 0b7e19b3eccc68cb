"""Reads and writes small files concurrently."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa
from pyiceberg.io import FileIO

from tableformat.storage.location import local_path
from tableformat.storage.storage import actual_location, write_bytes

_REMOTE_READERS: Final = 16
"""The number of concurrent requests to an object store."""
_LOCAL_FILES_MIN: Final = 8
"""For fewer local files, starting threads costs as much as it saves."""
_LOCAL_BYTES_MIN: Final = 16 * 1024
"""The average size of local files from which threads help. Opening a smaller file takes longer than decoding it, and
two threads that open files block each other."""
_REMOTE_WRITERS: Final = 4
_HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""The size of files that wait for their upload."""
WriteBytes = Callable[[str, bytes], int]
"""Writes a new file at a location and returns its size in bytes."""
_Item = TypeVar("_Item")
_Content = TypeVar("_Content")


def reader_count(location: str) -> int:
    """The number of threads that read files at this location. Files in an object store wait for requests, local files
    for processors."""
    return pa.cpu_count() if local_path(location) is not None else _REMOTE_READERS


def read_side_by_side(
    read: Callable[[_Item], _Content],
    items: Sequence[_Item],
    location: Callable[[_Item], str],
    size_bytes: Callable[[_Item], int],
) -> list[_Content]:
    """The result of `read` for each item, in order. `location` gives the location of an item, `size_bytes` the bytes to
    read.

    Files in an object store wait for requests, local files for processors. The first error in the order of the items is
    raised.
    """
    if all(local_path(location(item)) is not None for item in items):
        is_long = len(items) >= _LOCAL_FILES_MIN and sum(map(size_bytes, items)) >= len(items) * _LOCAL_BYTES_MIN
        workers = pa.cpu_count() if is_long else 1
    else:
        workers = _REMOTE_READERS
    if workers == 1 or len(items) < 2:
        return [read(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="read") as pool:
        return list(pool.map(read, items))


@contextmanager
def writes_side_by_side(io: FileIO, directory: str) -> Iterator[WriteBytes]:
    """A function that writes files below the directory like `write_bytes`. Files in an object store are uploaded
    concurrently. At the end of the block all files exist, or the first error is raised."""
    if local_path(actual_location(io, directory)) is not None:
        yield partial(write_bytes, io)
        return
    running: deque[tuple[Future[int], int]] = deque()
    with ThreadPoolExecutor(_REMOTE_WRITERS, thread_name_prefix="write") as pool:

        def write(location: str, data: bytes) -> int:
            running.append((pool.submit(write_bytes, io, location, data), len(data)))
            while sum(size for _, size in running) > _HELD_BYTES_MAX:
                running.popleft()[0].result()
            return len(data)

        yield write
        for upload, _ in running:
            upload.result()
