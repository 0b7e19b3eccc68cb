"""Gives the bytes of a file a second name in the same store, without reading them where the store can do that."""

from __future__ import annotations

import errno
import os
from typing import Final
from urllib.parse import urlsplit

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.storage.fsspec_io import is_fsspec
from tableformat.storage.location import local_path
from tableformat.storage.outage import storage_error
from tableformat.storage.storage import actual_location, create_local, open_input, open_output, writing

_CHUNK_BYTES: Final = 8 * 1024 * 1024
_COPIED_BY_THE_STORE_BYTES: Final = 5 * 1000**3
"""S3 copies an object of up to 5 GB in one request, and Arrow has no other."""
_FSSPEC_STORES: Final = ("s3", "s3a", "s3n", "gs", "gcs")
_NO_LINK: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS})
"""Errors of a file system that has no hard links, or none from here to there or for this user."""


def give_another_name(io: FileIO, location: str, size_bytes: int, target: str) -> None:
    """LK-31: the file is at `target` as well, as new as a file that is written now; `target` has a name that nobody
    else uses.

    A hard link on one file system; a copy by the store itself where both are in one store; a copy by way of this
    process otherwise. Raises CorruptFileError where there is no such file, StorageError where the store fails.
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
    """False where the file system cannot. Both names share one time, which has to be new before the second name is
    there: the removal of orphan files goes by it."""
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
    """False for two stores, and for a FileIO that has no such request."""
    from_, to = urlsplit(source), urlsplit(target)
    if (from_.scheme, from_.netloc) != (to.scheme, to.netloc):
        return False
    with writing(target):
        if isinstance(io, PyArrowFileIO):
            scheme, host, path = io.parse_location(source, io.properties)
            io.fs_by_scheme(scheme, host).copy_file(path, io.parse_location(target, io.properties)[2])
            return True
        if is_fsspec(io) and from_.scheme in _FSSPEC_STORES:
            io.get_fs(from_.scheme).copy(source, target)
            return True
    return False
