"""Refuses commits to tables without a catalog, and to tables that another catalog manages (CP-25)."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.table import Table as IcebergTable
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from tableformat.errors import CopiedLakeError, UnsupportedFeatureError
from tableformat.storage.lake_file import CATALOG_FILE
from tableformat.storage.location import local_path, one_spelling

"""The SQLite file in the directory of a lake."""


@runtime_checkable
class GuardsTables(Protocol):
    """A catalog that knows which of its tables cannot be changed through it."""

    def refuse_change(self, iceberg: IcebergTable) -> None:
        """Raise an error with the reason."""


def refuse_read_only(iceberg: IcebergTable) -> None:
    """Raise UnsupportedFeatureError for a table without a catalog, CopiedLakeError for one that another lake manages
    (CP-25), and the error of the catalog itself (LK-4, LK-5)."""
    if type(iceberg.catalog) is NoopCatalog:
        raise UnsupportedFeatureError(
            "this table was read from its metadata file without a catalog, so it is read-only. Call "
            "catalog.register_table() to add it to a catalog."
        )
    refuse_table_of_another_lake(iceberg.catalog, iceberg)


def refuse_table_of_another_lake(catalog: Catalog, iceberg: IcebergTable) -> None:
    """CP-25: raise CopiedLakeError if the table lies in a lake whose catalog has it and is not this catalog.

    A lake that was copied with its catalog names the tables of the original. Two catalogs that write to one table do
    not see each other's commits, and each treats the other's files as orphans.
    """
    _refuse_copy(catalog, iceberg)
    if isinstance(catalog, GuardsTables):
        catalog.refuse_change(iceberg)


def _refuse_copy(catalog: Catalog, iceberg: IcebergTable) -> None:
    own = _sqlite_file(catalog)
    location = iceberg.metadata.location
    path = local_path(location)
    if own is None or path is None:
        return
    for directory in Path(os.path.realpath(path)).parents:
        other = directory / CATALOG_FILE
        if not other.is_file():
            continue
        if own.exists() and os.path.samefile(own, other):
            return
        if _has_table(other, iceberg):
            name = ".".join(iceberg.name())
            raise CopiedLakeError(name, location=location, catalog_file=str(own), lake=str(directory))


def _has_table(catalog_file: Path, iceberg: IcebergTable) -> bool:
    """Whether the catalog has a table whose metadata is in the directory of this one. A catalog that cannot be read now
    may have such a table.

    Only SQLite may open the file: closing it in any other way drops the locks that this process has on it.
    """
    locations = (iceberg.metadata.location, iceberg.metadata_location.rpartition("/")[0])
    directories = tuple(f"{one_spelling(location).rstrip('/')}/" for location in locations)
    try:
        with closing(sqlite3.connect(f"{catalog_file.as_uri()}?mode=ro", uri=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
                return False
            rows = connection.execute("SELECT metadata_location FROM iceberg_tables").fetchall()
    except sqlite3.OperationalError:
        return True
    except sqlite3.DatabaseError:
        return False  # Not a SQLite file.
    return any(one_spelling(row[0] or "").startswith(directories) for row in rows)


def _sqlite_file(catalog: Catalog) -> Path | None:
    """The SQLite file of the catalog, if it is a catalog of that kind."""
    uri = catalog.properties.get("uri")
    return _file_of(uri) if uri is not None else None  # Some catalogs have no URI.


@lru_cache(maxsize=16)
def _file_of(uri: str) -> Path | None:
    try:
        url = make_url(uri)
    except ArgumentError:
        return None  # A catalog service.
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(str(url.database)) if is_file else None
