"""Lists the files below a location. Only maintenance jobs list; readers use the locations in metadata."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pyarrow.fs import FileSelector, FileType
from pyiceberg.io import FileIO

from tableformat.errors import UnsupportedFeatureError
from tableformat.storage.location import local_path
from tableformat.storage.storage import reading


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as the store lists it."""

    location: str
    """Begins with the listed location in the spelling of the caller."""
    size_bytes: int
    """-1 if the store does not report it."""
    modified_ms: int
    """The modification time in milliseconds since 1970-01-01 UTC."""


def list_files(io: FileIO, location: str) -> Iterator[ListedFile]:
    """All files below the location, in no particular order. Links are not followed. Nothing if the location does not
    exist.

    Raises UnsupportedFeatureError for a FileIO that cannot list, StorageError if the store cannot be reached.
    """
    root = location.rstrip("/")
    path = local_path(root)
    if path is not None:
        return _list_local(root, path)
    if hasattr(io, "fs_by_scheme") and hasattr(io, "parse_location"):
        return _list_with_arrow(io, root)
    if hasattr(io, "get_fs"):
        return _list_with_fsspec(io, root)
    raise UnsupportedFeatureError(f"{type(io).__name__} cannot list the files under {location}.")


def _list_local(root: str, path: str) -> Iterator[ListedFile]:
    for folder, _, names in os.walk(path):
        inside = os.path.relpath(folder, path).replace(os.sep, "/")
        prefix = root if inside == "." else f"{root}/{inside}"
        for name in names:
            try:
                state = os.stat(os.path.join(folder, name), follow_symlinks=False)
            except FileNotFoundError:
                continue  # Removed since the directory was read.
            yield ListedFile(f"{prefix}/{name}", state.st_size, state.st_mtime_ns // 1_000_000)


def _list_with_arrow(io: Any, root: str) -> Iterator[ListedFile]:
    scheme, host, path = io.parse_location(root, io.properties)
    selector = FileSelector(path, recursive=True, allow_not_found=True)
    with reading(root, "listed"):
        listed = io.fs_by_scheme(scheme, host).get_file_info(selector)
    for info in listed:
        if info.type == FileType.File:
            yield ListedFile(_below(root, path, info.path), info.size, info.mtime_ns // 1_000_000)


def _list_with_fsspec(io: Any, root: str) -> Iterator[ListedFile]:
    place = urlsplit(root)
    is_azure = place.scheme.startswith(("abfs", "wasb"))
    file_system = io.get_fs(place.scheme, place.hostname) if is_azure else io.get_fs(place.scheme)
    path = file_system._strip_protocol(root)
    with reading(root, "listed"):
        listed = file_system.find(path, detail=True)
    for found, info in listed.items():
        modified = next((info[name] for name in _FSSPEC_TIMES if info.get(name) is not None), None)
        if modified is None:
            with reading(root, "listed"):
                modified = file_system.modified(found)
        yield ListedFile(_below(root, path, found), int(info["size"]), _as_ms(modified))


_FSSPEC_TIMES = ("LastModified", "last_modified", "updated", "mtime")
"""The names that fsspec uses for the modification time: S3, Azure, Google, local."""


def _below(root: str, path: str, found: str) -> str:
    """File systems drop the scheme, and some drop the leading slash. The part after the listed path stays the same."""
    return f"{root}/{found.strip('/').removeprefix(path.strip('/')).lstrip('/')}"


def _as_ms(moment: datetime | str | float) -> int:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if isinstance(moment, datetime):
        moment = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return int(moment * 1000)
