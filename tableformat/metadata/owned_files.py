"""Owned files: the files that a table may remove because its metadata names them, and their removal (MT-53).

Metadata names files by their full location, and anyone who can write metadata can name any file. A writer may remove a
file that it has just created itself (`storage.delete_if_present`). Everything that is removed because metadata names it
is removed here.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table import TableProperties

from tableformat.cached_property import cached_property
from tableformat.errors import CorruptFileError
from tableformat.properties import inflated_bytes_max
from tableformat.storage.inflating import Inflater
from tableformat.storage.location import local_path, one_spelling
from tableformat.storage.storage import actual_location, delete_if_present, open_input, read_bytes

logger = logging.getLogger(__name__)

PATH_PROPERTIES: Final = (
    TableProperties.WRITE_DATA_PATH,
    TableProperties.WRITE_METADATA_PATH,
    "write.folder-storage.path",
    "write.object-storage.path",
)
"""Properties with directories of a table's files, besides its location."""
METADATA_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz")
_MAGICS: Final = (b"PAR1", b"PARE", b"Obj\x01", b"PFA1", b"ORC")
"""The first bytes of Parquet, encrypted Parquet, Avro, Puffin and ORC: all files of a table except metadata files."""
_REMOTE_READERS: Final = 16


class OwnedFiles:
    """MT-53: the files that belong to a table, decided after links are resolved. Thread-safe.

    The *location* belongs to the table if the metadata file that the catalog names is in its directory `metadata`: its
    writer could write to the location. Any other directory is only *stated*, by a property or by a location without
    this proof. A file there belongs to the table only if it has a format of table files.
    """

    def __init__(
        self,
        io: FileIO,
        *,
        location: str,
        metadata_location: str,
        table_uuid: str,
        properties: Mapping[str, str],
    ) -> None:
        """`metadata_location` is the location in the catalog, not a location in metadata."""
        self._io = io
        self._location = location
        self._metadata_location = metadata_location
        self._table_uuid = table_uuid
        self._properties = properties
        self._real_directories: dict[str, str] = {}

    @classmethod
    def of(cls, iceberg: IcebergTable) -> OwnedFiles:
        return cls(
            iceberg.io,
            location=iceberg.metadata.location,
            metadata_location=iceberg.metadata_location,
            table_uuid=str(iceberg.metadata.table_uuid),
            properties=iceberg.metadata.properties,
        )

    def has(self, location: str) -> bool:
        """Whether the file may be removed. Opens files in stated directories. A missing file may be removed."""
        spelled = self._spelled(location)
        if spelled is None:
            return False
        if self._proved_root is not None and spelled.startswith(self._proved_root):
            return True
        return spelled.startswith(self._stated_roots) and self._is_of_a_table(location)

    def is_inside(self, directory: str) -> bool:
        """Whether the directory is the table's location or inside it."""
        inner, outer = self._directory(directory), self._directory(self._location)
        return inner is not None and outer is not None and inner.startswith(outer)

    def foreign(self, locations: Iterable[str]) -> frozenset[str]:
        """The locations that do not belong to the table."""
        asked = list(locations)
        if not self._stated_roots or all(local_path(location) is not None for location in asked):
            owned: Iterable[bool] = map(self.has, asked)
        else:
            with ThreadPoolExecutor(_REMOTE_READERS) as pool:
                owned = list(pool.map(self.has, asked))
        return frozenset(location for location, is_own in zip(asked, owned, strict=True) if not is_own)

    def remove(self, location: str) -> bool:
        """Remove the file, or return False if it does not belong to the table. A missing file is not an error."""
        if not self.has(location):
            return False
        delete_if_present(self._io, location)
        return True

    def remove_all(self, locations: Iterable[str]) -> None:
        """Remove the table's own files, after the catalog no longer needs them. Files that remain are logged.

        A remaining file is no reason to report a failure of the completed operation.
        """
        for location in locations:
            try:
                if not self.remove(location):
                    logger.warning(
                        "%s was not removed: it is outside the directories of the table at %s, although the table "
                        "metadata references it. If the file belongs to the table, remove it manually.",
                        location,
                        self._location,
                    )
            except OSError:
                logger.warning("could not remove %s", location, exc_info=True)

    def purge(self, locations: Iterable[str]) -> None:
        """Like `remove_all`, for a table that was dropped. Then remove emptied local directories, but not the targets
        of links."""
        locations = sorted(locations)
        # Found before the removal: the current metadata file proves the location.
        inside = self._directories_of(locations)
        root = self._removable_root()
        self.remove_all(locations)
        self._remove_emptied(inside, root)

    def remove_emptied(self, locations: Iterable[str]) -> None:
        """Remove the local directories of removed files if they are empty, but not the targets of links."""
        self._remove_emptied(self._directories_of(locations), self._removable_root())

    def _directories_of(self, locations: Iterable[str]) -> set[str]:
        return {directory for location in locations if (directory := self._parent(location)) is not None}

    def _removable_root(self) -> str | None:
        path = local_path(actual_location(self._io, self._location))
        is_link = path is not None and os.path.islink(path.rstrip("/"))
        return None if is_link else self._proved_root

    def _remove_emptied(self, directories: Iterable[str], root: str | None) -> None:
        if root is not None:
            for directory in sorted(directories, key=len, reverse=True):
                _remove_emptied(directory, root)

    def _parent(self, location: str) -> str | None:
        """The directory of a local file, ending with a slash."""
        if local_path(actual_location(self._io, location)) is None:
            return None
        spelled = self._spelled(location)
        return None if spelled is None else f"{spelled.rpartition('/')[0]}/"

    @cached_property
    def _proved_root(self) -> str | None:
        """The location as a directory, if the current metadata file proves it."""
        root = self._directory(self._location)
        current = self._spelled(self._metadata_location)
        if root is None or current is None:
            return None
        return root if current.rpartition("/")[0] == f"{root}metadata" else None

    @cached_property
    def _stated_roots(self) -> tuple[str, ...]:
        return tuple(self._stated())

    def _stated(self) -> Iterator[str]:
        own = self._stated_directory(self._location)
        if own is not None and self._proved_root is None:
            yield own
        around = self._directory(self._location) or ""
        for name in PATH_PROPERTIES:
            root = self._stated_directory(self._properties.get(name, ""))
            # A parent of the location contains other tables too.
            if root is not None and not around.startswith(root):
                yield root

    def _stated_directory(self, location: str) -> str | None:
        """None for a root, and for a path that depends on the process."""
        path = local_path(location)
        directory = self._directory(location) if path is None or os.path.isabs(path) else None
        return directory if directory is not None and _is_below_a_root(directory) else None

    def _directory(self, location: str) -> str | None:
        spelled = self._spelled(location)
        return None if spelled is None else f"{spelled.rstrip('/')}/"

    def _spelled(self, location: str) -> str | None:
        """The real path of the file in one spelling; None if it cannot be determined."""
        actual = actual_location(self._io, location)
        path = local_path(actual)
        if path is None:
            # A store treats a key as text, but some clients treat it as a path.
            return None if {".", ".."} & set(actual.split("/")) else one_spelling(actual)
        try:
            return self._real(os.path.abspath(path) if ".." not in path else path)
        except ValueError:
            return None  # A null byte: no path at all.

    def _real(self, path: str) -> str:
        """Like `os.path.realpath`. Most files share a directory, which is resolved once."""
        if os.path.islink(path) or not os.path.isabs(path):
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        if folder not in self._real_directories:
            self._real_directories[folder] = os.path.realpath(folder)
        return os.path.join(self._real_directories[folder], name)

    def _is_of_a_table(self, location: str) -> bool:
        try:
            if location.endswith(METADATA_SUFFIXES):
                return table_uuid_of(self._io, location) == self._table_uuid
            with open_input(self._io, location) as file:
                return bool(file.read(4).startswith(_MAGICS))
        except CorruptFileError:
            return True  # There is no such file, so there is nothing to keep.


def table_uuid_of(io: FileIO, location: str) -> str | None:
    """The table UUID in a metadata file; None if it is unknown. Raises CorruptFileError if the file does not exist."""
    data = read_bytes(io, location)
    try:
        text = Inflater(location, inflated_bytes_max(io.properties)).gunzipped(data)
        return str(json.loads(text)["table-uuid"])
    except (ValueError, KeyError, TypeError, OSError, EOFError, RecursionError, zlib.error, CorruptFileError):
        return None


def _is_below_a_root(directory: str) -> bool:
    """Whether the directory is not the root of a file system or store."""
    path = local_path(directory)
    inside = PurePosixPath(path).parts[1:] if path is not None else directory.rstrip("/").split("/")[3:]
    return bool(inside)


def _remove_emptied(directory: str, root: str) -> None:
    """Remove the directory and its parents while they are empty, up to the table's location."""
    while directory.startswith(root):
        try:
            os.rmdir(directory)
        except OSError:  # Not empty, or removed before.
            if os.path.isdir(directory):
                return
        directory = f"{directory.rstrip('/').rpartition('/')[0]}/"
