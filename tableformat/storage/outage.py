"""Distinguishes unreachable storage from damaged or missing files: only the latter are corruption."""

from __future__ import annotations

import math
import os
import re
from typing import Final

from pyiceberg.io import FileIO

from tableformat.errors import CorruptFileError, StorageError, TableFormatError
from tableformat.storage.arrow_io import is_arrow
from tableformat.storage.fsspec_io import is_fsspec

_CLIENTS: Final = ("botocore", "aiobotocore", "aiohttp", "urllib3", "requests", "google", "gcsfs", "azure", "adlfs")
"""Packages whose errors concern the connection to a store, regardless of their base class."""
_CHECKSUM_ERROR: Final = "FlexibleChecksumError"
"""The error of botocore, which older versions do not have."""
_ARROW_MARKS: Final = ("AWS Error", "google::cloud", "GCS returned", "Azure", "Curl", "curlCode")
"""Texts in Arrow's errors about a store. Arrow raises a plain OSError for these, as it does for invalid Parquet."""


_SIZE_ASKED_FOR: Final = re.compile(r"of size (-?\d+)")
_ADDRESSABLE_BYTES: Final = 1 << 47
"""The address space of a process. A file that requests more at once is damaged, on any machine."""
_NO_THREAD: Final = ("can't start new thread", "Failed to launch worker thread")
"""Errors of Python and Arrow without an error number."""


def raise_unless_damage(location: str, error: BaseException, done: str = "read") -> None:
    """DA-8: raise the error if it concerns the process or the connection to the bytes. Return if the bytes of the file
    are invalid. Every caller that raises CorruptFileError for errors of other libraries calls this first.

    A MemoryError is raised unchanged, everything else as a StorageError.
    """
    import pyarrow as pa

    if isinstance(error, MemoryError) and not _asks_for_the_impossible(error):
        raise error
    if isinstance(error, (RuntimeError, pa.ArrowException)) and any(mark in str(error) for mark in _NO_THREAD):
        raise StorageError(
            f"{location} could not be {done}: the process cannot start another thread ({error}). The file itself may "
            "be intact. Raise the limit of processes or memory (ulimit -u, the limit of the container), and try "
            "again."
        ) from error
    if is_outage(error):
        raise storage_error(location, error, done) from error


def _asks_for_the_impossible(error: MemoryError) -> bool:
    asked = _SIZE_ASKED_FOR.search(str(error))
    if asked is not None:
        return not 0 <= int(asked[1]) < _ADDRESSABLE_BYTES
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)  # numpy's
    return shape is not None and dtype is not None and math.prod(shape) * dtype.itemsize >= _ADDRESSABLE_BYTES


def is_outage(error: BaseException) -> bool:
    """Whether the error, or its cause, concerns the connection to the bytes and not the bytes."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_about_the_way(cause):
            return True
        cause = cause.__cause__
    return False


def _is_about_the_way(error: BaseException) -> bool:
    if type(error).__module__.partition(".")[0] in _CLIENTS:
        return True
    if not isinstance(error, OSError) or isinstance(error, IsADirectoryError):
        return False
    return error.errno is not None or any(mark in str(error) for mark in _ARROW_MARKS)


def storage_error(location: str, error: BaseException, done: str) -> StorageError:
    """The error for a file that could not be `done` ("read", "written", ...)."""
    if type(error).__name__ == _CHECKSUM_ERROR:
        return StorageError(
            f"{location} could not be {done}: its bytes do not match the checksum in the store: {error}. They may "
            "have been changed in transit, so try again. If the error persists, the file is damaged in the store."
        )
    return StorageError(
        f"{location} could not be {done}: {type(error).__name__}: {error}. The file itself may be intact. Check the "
        "network, the credentials and permissions, the bucket and the mount, and try again."
    )


def missing_file(io: FileIO, location: str, path: str | None) -> TableFormatError:
    """The error for a file that metadata names and that does not exist.

    A StorageError if its directory or bucket does not exist either, as on a file system that is not mounted. Otherwise
    a CorruptFileError.
    """
    try:
        holder = _missing_holder(io, location, path)
    except Exception as error:
        if not is_outage(error):
            raise
        return storage_error(location, error, "checked")
    if holder is None:
        return CorruptFileError(
            location,
            "the file does not exist, although the table metadata references it. If its snapshot has expired since "
            "the table was loaded, refresh the handle.",
        )
    return StorageError(
        f"{location} could not be read: {holder} does not exist either. The file itself may be intact. Check that "
        "the file system is mounted and the bucket is correct, and try again."
    )


def _missing_holder(io: FileIO, location: str, path: str | None) -> str | None:
    """The directory of the table or the bucket, if it does not exist either."""
    if path is not None:
        directory = os.path.dirname(os.path.dirname(path))
        return None if os.path.isdir(directory) else f"the directory {directory}"
    scheme, separator, rest = location.partition("://")
    bucket = rest.partition("/")[0]
    if not separator or not bucket:
        return None
    if is_arrow(io):
        from pyarrow.fs import FileType

        found = io.fs_by_scheme(scheme, bucket).get_file_info(bucket).type is not FileType.NotFound
        return None if found else f"the bucket {bucket}"
    if is_fsspec(io):
        return None if io.get_fs(scheme).exists(bucket) else f"the bucket {bucket}"
    return None
