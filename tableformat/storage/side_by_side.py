"""Reads many small files side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import pyarrow as pa

from tableformat.storage.location import local_path

_REMOTE_READERS: Final = 16
"""Files of an object store that are requested at the same time."""
_LOCAL_FILES_MIN: Final = 8
"""With fewer local files to make threads takes as long as they save."""
_Item = TypeVar("_Item")
_Content = TypeVar("_Content")


def read_side_by_side(
    read: Callable[[_Item], _Content], items: Sequence[_Item], location: Callable[[_Item], str]
) -> list[_Content]:
    """What `read` gives for each item, in their order; `location` says where an item is.

    Files of an object store wait for requests, local ones for processors. The first error in the order of the items is
    raised.
    """
    is_local = all(local_path(location(item)) is not None for item in items)
    workers = pa.cpu_count() if is_local else _REMOTE_READERS
    if workers == 1 or len(items) < (_LOCAL_FILES_MIN if is_local else 2):
        return [read(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="read") as pool:
        return list(pool.map(read, items))
