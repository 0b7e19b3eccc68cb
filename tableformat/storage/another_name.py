"""Gives a file a second name in the same store. The bytes are not read if the store can copy or link them."""

from __future__ import annotations

import errno
import os
from typing import Final
from urllib.parse import urlsplit

from pyiceberg.io import FileIO

from tableformat.storage.arrow_io import is_arrow
from tableformat.storage.fsspec_io import is_fsspec
from tableformat.storage.location import local_path
from tableformat.storage.outage import storage_error
from tableformat.storage.storage import actual_location, create_local, open_input, open_output, writing

_CHUNK_BYTES: Final = 8 * 1024 * 1024
_COPIED_BY_THE_STORE_BYTES: Final = 5 * 1000**3
"""S3 copies an object of at most 5 GB in one request. Arrow has no other way to copy."""
_FSSPEC_STORES: Final = ("s3", "s3a", "s3n", "gs", "gcs")
_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS})
"""Errors of a file system without hard links, or of a link that is not allowed between these paths."""


def give_another_name(io: FileIO, location: str, size_bytes: int, target: str) -> None:
    """LK-31: make the file available at `target` too, with the modification time of a new file. No other file may use
    the name `target`.

    On one file system this is a hard link. In one object store the store copies the file. Otherwise this process copies
    it. Raises CorruptFileError if the file does not exist, StorageError if the store fails.
    """
    source, new = actual_location(io, location), actual_location(io, target)
    source_path, target_path = local_path(source), local_path(new)
    if source_path is not None and target_path is not None:
        is_done = _link(source_path, target_path)
    else:
        is_done = size_bytes <= _COPIED_BY_THE_STORE_BYTES and _copied_by_the_store(io, source, new)
    if not is_done:
        with open_input(io, location, size_bytes) as stream, open_output(io, target) as output:
            while chunk := stream.read(_CHUNK_BYTES):
                output.write(chunk)


def _link(source: str, target: str) -> bool:
    """Link the file; False if the file system cannot. Both names share one modification time. It is set before the
    second name exists, because the removal of orphan files depends on it."""
    real = os.path.realpath(source)
    try:
        os.utime(real)
        create_local(target, lambda: os.link(real, target))
    except FileNotFoundError:
        return False  # The copy reports which file is missing.
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise storage_error(target, error, "written") from error
    return True


def _copied_by_the_store(io: FileIO, source: str, target: str) -> bool:
    """Let the store copy the file; False for two different stores, and for a FileIO that cannot copy."""
    from_, to = urlsplit(source), urlsplit(target)
    if (from_.scheme, from_.netloc) != (to.scheme, to.netloc):
        return False
    with writing(target):
        if is_arrow(io):
            scheme, host, path = io.parse_location(source, io.properties)
            io.fs_by_scheme(scheme, host).copy_file(path, io.parse_location(target, io.properties)[2])
            return True
        if is_fsspec(io) and from_.scheme in _FSSPEC_STORES:
            io.get_fs(from_.scheme).copy(source, target)
            return True
    return False
