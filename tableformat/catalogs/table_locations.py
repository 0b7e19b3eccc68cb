"""The current metadata file of each table of a SQL catalog: queries and compare-and-set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.typedef import Identifier
from sqlalchemy import ColumnElement, Connection, Engine, Select, bindparam, select, update

from tableformat.catalogs.database_errors import is_locked
from tableformat.errors import StorageError

_ROW: Final = (
    IcebergTables.catalog_name == bindparam("the_catalog"),
    IcebergTables.table_namespace == bindparam("the_namespace"),
    IcebergTables.table_name == bindparam("the_table"),
    IcebergTables.metadata_location == bindparam("the_expected"),
)
_SWAP: Final = (
    update(IcebergTables)
    .where(*_ROW)
    .values(metadata_location=bindparam("the_location"), previous_metadata_location=bindparam("the_expected"))
)
"""Compare-and-set."""
_HOLD: Final = update(IcebergTables).where(*_ROW).values(metadata_location=bindparam("the_expected"))
"""Compare, and block changes by others until the transaction ends."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The change of one table's metadata file. If both locations are equal, the table has to stay at it."""

    table: Identifier
    expected: str
    location: str


def locations_of(catalog_name: str, *filters: ColumnElement[bool]) -> Select[str, str, str | None]:
    """The query for namespace, name and metadata file of tables."""
    columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
    return select(*columns).where(IcebergTables.catalog_name == catalog_name, *filters)


def swap_locations(engine: Engine, catalog_name: str, swaps: Sequence[Swap], *, synced: bool) -> None:
    """LK-36: compare and set the metadata files of all tables in one transaction of the database. Raises
    CommitFailedException if one of them is at another file; then nothing was changed.

    Rows are locked in the order of their names, so that transactions do not deadlock.
    """
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # FULL makes SQLite sync its log at the end of the transaction; NORMAL leaves that to the next checkpoint.
            connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
        for swap in sorted(swaps, key=lambda each: each.table):
            if _changed_rows(connection, catalog_name, swap) < 1:
                raise CommitFailedException(f"{'.'.join(swap.table)} was updated by another process")
        connection.commit()


def _changed_rows(connection: Connection, catalog_name: str, swap: Swap) -> int:
    values = {
        "the_catalog": catalog_name,
        "the_namespace": Catalog.namespace_to_string(Catalog.namespace_from(swap.table)),
        "the_table": Catalog.table_name_from(swap.table),
        "the_expected": swap.expected,
    }
    try:
        if swap.location == swap.expected:
            return connection.execute(_HOLD, values).rowcount
        return connection.execute(_SWAP, {**values, "the_location": swap.location}).rowcount
    except StorageError as error:
        if not is_locked(error):
            raise
        # The first statement takes SQLite's write lock. If it cannot, it is rolled back and nothing was applied.
        raise CommitFailedException(f"the catalog is locked by another process: {error}") from error
