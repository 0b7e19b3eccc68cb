"""Creates new files in an object store with as few requests as possible.

A commit writes six small files, and each request takes tens of milliseconds. PyIceberg checks whether the file exists,
which takes Arrow two requests, and Arrow uploads a file of any size in parts, which takes three. That is five requests
for each file, one after the other. A name that no one else can use need not be checked, and a file of one part is one
request if errors may be reported when the file is closed.
"""

from __future__ import annotations

import pickle
import re
from functools import lru_cache
from typing import Any, Final

from pyiceberg.io import S3_RETRY_STRATEGY_IMPL, FileIO

from tableformat.storage.arrow_io import is_arrow

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FILE_SYSTEMS: Final = 64
"""Buckets, each with its credentials."""


def new_file(io: FileIO, location: str) -> Any:
    """A stream to a new file, which exists when the stream is closed. Raises FileExistsError if the file exists; a name
    with a UUID is not checked."""
    is_unique = _UUID.search(location.rpartition("/")[2]) is not None
    file_system_and_path = _s3(io, location) if is_unique else None
    if file_system_and_path is None:
        return io.new_output(location).create(overwrite=is_unique)
    file_system, path = file_system_and_path
    return file_system.open_output_stream(path)


def _s3(io: FileIO, location: str) -> tuple[Any, str] | None:
    """Arrow's file system of the location, set to open files when their first bytes are written; None for other
    stores."""
    # A retry strategy is not among the options that a file system reports.
    if not is_arrow(io) or S3_RETRY_STRATEGY_IMPL in io.properties:
        return None
    scheme, host, path = io.parse_location(location, io.properties)
    file_system = io.fs_by_scheme(scheme, host)
    return (_deferring(pickle.dumps(file_system)), path) if file_system.type_name == "s3" else None


@lru_cache(_FILE_SYSTEMS)
def _deferring(pickled: bytes) -> Any:
    """File systems cannot be hashed, but they can be serialized with all their options."""
    construct, (options,) = pickle.loads(pickled).__reduce__()
    return construct({**options, "allow_delayed_open": True})
