"""Reads, writes and removes files: local paths through the operating system, all others through PyIceberg's FileIO.

*Why not FileIO for all.* A commit writes three small files, and a plan may read thousands. A FileIO spends more time on
parsing the location and requesting the size than the disk spends on the bytes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.io import FileIO

from tableformat.errors import AlreadyExistsError, CorruptFileError, InvalidArgumentError, TableFormatError
from tableformat.storage.location import local_path, place_of
from tableformat.storage.outage import is_outage, missing_file, storage_error
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.schemes import is_unknown, unknown_scheme
from tableformat.storage.uploads import new_file

if TYPE_CHECKING:
    import pyarrow as pa

_READ_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_READ_ON_BYTES: Final = 64 * 1024
_named_on_disk: Final[set[Path]] = set()
"""Directories whose names were synced. Syncing a directory without new names still costs a flush of the disk."""


def actual_location(io: FileIO, location: str) -> str:
    """The actual location of the file that metadata calls `location`. It differs only for a table that was moved."""
    return io.actual(location) if isinstance(io, RelocatedFileIO) else location


def same_places(io: FileIO, locations: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    """The locations that lead to the same file as one of the others."""
    taken = {place_of(actual_location(io, each)) for each in others}
    return frozenset(each for each in locations if taken and place_of(actual_location(io, each)) in taken)


def _inner(io: FileIO) -> FileIO:
    """The FileIO that opens files at their actual locations."""
    return io.inner if isinstance(io, RelocatedFileIO) else io


def exists(io: FileIO, location: str) -> bool:
    path = local_path(actual_location(io, location))
    with _asked(location, "checked"):
        return os.path.lexists(path) if path is not None else bool(io.new_input(location).exists())


def size_bytes(io: FileIO, location: str) -> int | None:
    """The size of the file; None if it does not exist."""
    path = local_path(actual_location(io, location))
    try:
        with _asked(location, "checked"):
            return os.path.getsize(path) if path is not None else len(io.new_input(location))
    except FileNotFoundError:
        return None


def open_input(io: FileIO, location: str, length: int | None = None) -> pa.NativeFile:
    """A seekable binary file for Parquet and Avro readers; the caller closes it.

    Raises CorruptFileError if the file does not exist, or if it is shorter than `length`, its size in bytes according
    to the metadata.
    """
    import pyarrow as pa

    path = local_path(actual_location(io, location))
    try:
        # No memory map: its pages count as memory of this process and would grow with the table.
        with _asked(location, "opened"):
            file = pa.OSFile(path, "rb") if path is not None else _as_native(io.new_input(location).open(), "r")
    except FileNotFoundError as error:
        raise missing_file(io, location, path) from error
    if length is not None and (size := file.size()) < length:
        file.close()
        raise CorruptFileError(location, f"it has {size} bytes, but the metadata states {length}; it was cut off.")
    return file


def read_bytes(io: FileIO, location: str, size_bytes: int | None = None) -> bytes:
    """The whole file, whose size may be known. Raises CorruptFileError if it does not exist."""
    path = local_path(actual_location(io, location))
    try:
        with _asked(location, "read"):
            if path is not None:
                return _read_local(path, size_bytes)
            with io.new_input(location).open() as stream:
                return bytes(stream.read())
    except FileNotFoundError as error:
        raise missing_file(io, location, path) from error


def _read_local(path: str, size_bytes: int | None) -> bytes:
    """Read with three system calls. `size` may be wrong. `open` makes eight calls, and a thread that reads many small
    files waits for its turn after each."""
    if size_bytes is None:
        with open(path, "rb") as file:
            return file.read()
    descriptor = os.open(path, _READ_FLAGS)
    try:
        data = os.read(descriptor, max(size_bytes, 0) + 1)
        if len(data) == size_bytes:
            return data
        parts = [data]
        while parts[-1]:
            parts.append(os.read(descriptor, max(size_bytes, _READ_ON_BYTES)))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def write_bytes(io: FileIO, location: str, *parts: bytes) -> int:
    """Create the file from its parts, which are not joined, and return its size in bytes. Raises AlreadyExistsError if
    the file exists, because files are immutable.

    A local file that could not be written completely is removed. In an object store, a name without a UUID is looked up
    first.
    """
    path = local_path(actual_location(io, location))
    try:
        with writing(location):
            if path is None:
                with new_file(_inner(io), actual_location(io, location)) as stream:
                    for part in parts:
                        stream.write(part)
            else:
                with create_local(path, lambda: open(path, "xb", buffering=0)) as file:
                    _write_all(file, path, parts)
    except FileExistsError as error:
        raise _already_there(location) from error
    return sum(map(len, parts))


def open_output(io: FileIO, location: str) -> AbstractContextManager[pa.NativeFile]:
    """FM-1: a new file to write to, as a context manager. Raises AlreadyExistsError if it exists.

    A file whose writing fails is kept: the writer, which knows all files of its operation, removes them.
    """
    return _opened_output(io, location)


@contextlib.contextmanager
def _opened_output(io: FileIO, location: str) -> Iterator[pa.NativeFile]:
    import pyarrow as pa

    path = local_path(actual_location(io, location))
    try:
        with writing(location):
            if path is not None:
                # Arrow's own file has no exclusive mode: create the empty file first, then Arrow truncates it.
                create_local(path, lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)))
                file = pa.OSFile(path, "wb")
            else:
                file = _as_native(new_file(_inner(io), actual_location(io, location)), "w")
    except FileExistsError as error:
        raise _already_there(location) from error
    with writing(location), file:
        yield file


@contextlib.contextmanager
def reading(location: str, done: str = "read") -> Iterator[None]:
    """Raises errors of the disk or the store as StorageError while another library reads a file or lists a
    directory."""
    try:
        with _told(location, done):
            yield
    except FileNotFoundError as error:
        raise storage_error(location, error, done) from error


@contextlib.contextmanager
def writing(location: str) -> Iterator[None]:
    """Raises errors of the disk or the store as StorageError while a file is written. Many stores report them when the
    file is closed. "Not found" then means the directory or bucket of the file."""
    try:
        with _told(location, "written"):
            yield
    except FileNotFoundError as error:
        raise storage_error(location, error, "written") from error


def sync_files(io: FileIO, locations: Iterable[str]) -> None:
    """Flush local files to the disk, including files of other writers: their bytes, and their names in all directories
    above them.

    Other files are durable when their store has answered. Raises OSError if the disk failed; an earlier write may not
    have reported it.
    """
    stated = (local_path(actual_location(io, location)) for location in locations)
    paths = sorted({Path(os.path.abspath(path)) for path in stated if path is not None})
    directories = sorted({path.parent for path in paths})
    for path in (*paths, *directories):
        _sync(path)
    for directory in directories:
        _sync_name(directory)


def delete_if_present(io: FileIO, location: str) -> None:
    """Remove the file. A missing file is not an error."""
    path = local_path(actual_location(io, location))
    with contextlib.suppress(FileNotFoundError), _told(location, "removed"):
        if path is not None:
            os.remove(path)
        else:
            io.delete(location)


def _sync_name(directory: Path) -> None:
    """Flush the name of a directory to the disk. Another process may have created the directory. Its name is in the
    directory above, whose own name has to be flushed too."""
    if directory in _named_on_disk or directory.parent == directory:
        return
    # If names cannot be listed, no process of this user created one.
    if os.access(directory.parent, os.R_OK):
        _sync(directory.parent)
    _sync_name(directory.parent)
    _named_on_disk.add(directory)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_local(path: str, create: Callable[[], Any]) -> Any:
    """Directories are created when the first file needs them, and not looked up before every file."""
    try:
        return create()
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        _named_on_disk.clear()
        return create()


def _write_all(file: Any, path: str, parts: Iterable[bytes]) -> None:
    try:
        for part in parts:
            written = 0
            while written < len(part):
                written += file.write(part[written:] if written else part)
    except OSError:
        os.remove(path)
        raise


def _as_native(file: Any, mode: str) -> pa.NativeFile:
    import pyarrow as pa

    return file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode=mode)


@contextlib.contextmanager
def _asked(location: str, done: str) -> Iterator[None]:
    """Like `_told`, for calls that use the location only: an error about its form is an InvalidArgumentError."""
    try:
        with _told(location, done):
            yield
    except TableFormatError:
        raise
    except ValueError as error:
        raise InvalidArgumentError(f"{location!r:.200} is not a location: {error}.") from error


@contextlib.contextmanager
def _told(location: str, done: str) -> Iterator[None]:
    """Raises errors of the operating system or the store as StorageError, and InvalidArgumentError for a location that
    no FileIO opens. The caller handles a file that exists, or does not exist."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, TableFormatError):
        raise
    except Exception as error:
        if isinstance(error, ValueError) and is_unknown(location):
            raise unknown_scheme(location) from error
        if not (isinstance(error, OSError) or is_outage(error)):
            raise
        raise storage_error(location, error, done) from error


def _already_there(location: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"{location} exists already; table files are immutable and never overwritten.")
