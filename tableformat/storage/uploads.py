"""New files of an object store, in as few requests as it takes.

A commit writes six small files, and each request of a store takes tens of milliseconds. PyIceberg looks whether there
is such a file, which are two requests of Arrow's, and Arrow uploads a file of any size in parts, which are three: five
for each file, one after the other. A name that nobody else can have needs no look, and a file of one part is one
request, if the store may say at the end of it what it has against the file.
"""

from __future__ import annotations

import pickle
import re
from functools import lru_cache
from typing import Any, Final

from pyiceberg.io import S3_RETRY_STRATEGY_IMPL, FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_FILE_SYSTEMS: Final = 64
"""Buckets, each with its credentials."""


def new_file(io: FileIO, location: str) -> Any:
    """A stream to a new file, which exists when the stream was closed. FileExistsError where there is one already; a
    name with a UUID is not looked up."""
    is_unique = _UUID.search(location.rpartition("/")[2]) is not None
    file_system_and_path = _s3(io, location) if is_unique else None
    if file_system_and_path is None:
        return io.new_output(location).create(overwrite=is_unique)
    file_system, path = file_system_and_path
    return file_system.open_output_stream(path)


def _s3(io: FileIO, location: str) -> tuple[Any, str] | None:
    """Arrow's file system of the location that opens files with their first bytes; None for any other."""
    # A strategy for retries is not among the options that a file system tells.
    if not isinstance(io, PyArrowFileIO) or S3_RETRY_STRATEGY_IMPL in io.properties:
        return None
    scheme, host, path = io.parse_location(location, io.properties)
    file_system = io.fs_by_scheme(scheme, host)
    return (_deferring(pickle.dumps(file_system)), path) if file_system.type_name == "s3" else None


@lru_cache(_FILE_SYSTEMS)
def _deferring(pickled: bytes) -> Any:
    """File systems have no hash, but a form that travels, with all of their options."""
    construct, (options,) = pickle.loads(pickled).__reduce__()
    return construct({**options, "allow_delayed_open": True})
