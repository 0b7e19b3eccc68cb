"""Drops a table of a SQL catalog together with its files, even if others commit to it concurrently (MT-53)."""

from __future__ import annotations

from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier
from sqlalchemy import delete

from tableformat.commit.read_only import refuse_read_only
from tableformat.metadata.owned_files import OwnedFiles
from tableformat.metadata.reachable_files import files_to_purge

_ATTEMPTS_MAX: Final = 20
"""Maximum number of attempts while others commit to the table. After the last one it is dropped anyway."""


def purge(catalog: SqlCatalog, identifier: str | Identifier) -> None:
    """Drop the table and remove its own files that its metadata names at that moment.

    If a commit succeeds between listing the files and the drop, the files are listed again; otherwise nothing would
    name that commit's files, and they would remain forever. Raises NoSuchTableError. Raises UnsupportedFeatureError if
    the table forbids removing files (MT-65); the table then stays.
    """
    for attempts_left in reversed(range(_ATTEMPTS_MAX)):
        table = catalog.load_table(identifier)
        refuse_read_only(table)
        name = ".".join(table.name())
        locations = files_to_purge(table.metadata, table.metadata_location, table.io, table=name)
        if _drop_at(catalog, table):
            break
        if not attempts_left:
            catalog.drop_table(identifier)
    OwnedFiles.of(table).purge(locations)


def _drop_at(catalog: SqlCatalog, table: Table) -> bool:
    """Whether the table was dropped. It is dropped only if nobody has committed to it since it was loaded."""
    as_loaded = delete(IcebergTables).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == Catalog.namespace_to_string(Catalog.namespace_from(table.name())),
        IcebergTables.table_name == Catalog.table_name_from(table.name()),
        IcebergTables.metadata_location == table.metadata_location,
    )
    with catalog.engine.connect() as connection:
        dropped = connection.execute(as_loaded).rowcount
        connection.commit()
    return dropped > 0
