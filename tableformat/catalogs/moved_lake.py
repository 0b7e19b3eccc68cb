"""Finds the tables of a lake that was moved or copied, whose catalog still names their former paths (LK-3)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.io import FileIO
from sqlalchemy import Engine, select

from tableformat.catalogs.lake_home import LakeHome, read_home, write_home
from tableformat.storage.location import is_below, local_path, one_spelling
from tableformat.storage.relocated_io import RelocatedFileIO
from tableformat.storage.storage import exists


class LakePlace:
    """The current location of a lake, and its locations when its tables were written."""

    def __init__(self, catalog_file: str | None, root: str | None) -> None:
        """`root` is the lake's directory or prefix. The lake counts as being at home until `look` finds otherwise."""
        self.root = root
        self._catalog_file = catalog_file
        self._is_at_home = True
        self._has_left_home = False
        self._former_roots: list[str] = []

    def look(self, engine: Engine, *, is_read_only: bool) -> None:
        """LK-3: compare with the location where the lake was created or last relocated to.

        A lake without a stored location, from an older version or another writer, is at home if one of its tables lies
        in its directory, or if it has no tables.
        """
        if self._catalog_file is None:
            return
        home = read_home(engine)
        self._has_left_home = home is not None and not home.is_here(self._catalog_file)
        self._is_at_home = home is not None and not self._has_left_home
        if home is None and not is_read_only and self._has_own_tables(engine):
            self.settle(engine)

    def settle(self, engine: Engine) -> None:
        """LK-3: store the current location as home."""
        if self._catalog_file is not None:
            write_home(engine, LakeHome(os.path.realpath(self._catalog_file), self.root or ""))
        self._has_left_home = False
        self._is_at_home = True

    def former_root_of(self, location: str, io: FileIO) -> str | None:
        """LK-3: the root of the lake at the time when the metadata file was written. None if the file is at the path in
        the catalog, or not in the lake."""
        if self.root is None or self._is_at_home or is_below(location, self.root):
            return None
        known = next((each for each in self._former_roots if is_below(location, each)), None)
        if known is not None and exists(io, RelocatedFileIO(io, known, self.root).actual(location)):
            return known
        found = former_root(io, location, self.root)
        if found is not None:
            self._former_roots.append(found)
        return found

    def rename(self, location: str) -> str | None:
        """The current path of a directory below a former root that was found so far; None for other directories."""
        former = next((each for each in self._former_roots if is_below(location, each)), None)
        if former is None or self.root is None:
            return None
        return f"{self.root.rstrip('/')}/{one_spelling(location).removeprefix(f'{former}/')}"

    def is_foreign(self, location: str) -> bool:
        """LK-4: whether the lake was moved or copied, and the table lies outside of it."""
        return self._has_left_home and not is_below(location, self.root or "")

    def _has_own_tables(self, engine: Engine) -> bool:
        with engine.connect() as connection:
            locations = connection.execute(select(IcebergTables.metadata_location)).scalars().all()
        return not locations or self.root is None or any(is_below(each or "", self.root) for each in locations)


def former_root(io: FileIO, location: str, root: str) -> str | None:
    """LK-3: the former directory or prefix of the lake, from a location that was written there.

    A trailing part of `location` names a file that exists below `root`; the part before it is the former root. None if
    no such file exists.
    """
    for former, inside in _splits(one_spelling(location)):
        if exists(io, f"{root.rstrip('/')}/{inside}"):
            return former
    return None


def _splits(location: str) -> Iterator[tuple[str, str]]:
    """Pairs of root and remaining path, shortest root first. A file is at least in the directory of a table."""
    authority = 1 if local_path(location) is not None else 3
    steps = location.split("/")
    for length in range(authority, len(steps) - 2):
        yield "/".join(steps[:length]), "/".join(steps[length:])
