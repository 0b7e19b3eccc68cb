"""Moves a handle to the newest metadata of its catalog."""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as IcebergTable

from tableformat.errors import TableNotFoundError
from tableformat.metadata.own_handle import own_handle
from tableformat.properties import RANGE_PARTITIONS


def move_to_newest(iceberg: IcebergTable) -> None:
    """Raise TableNotFoundError if the table was dropped or renamed since it was loaded, even if another table has its
    name."""
    try:
        with own_handle(iceberg) as own:
            own.refresh()
    except (NoSuchTableError, ValueError):
        # PyIceberg raises a plain ValueError if another table has the name.
        newest_of(iceberg)
        raise


def read_newest_ranges(iceberg: IcebergTable) -> None:
    """RP-5: an operation checks rows against the newest range partitions. A handle from before a range was added would
    reject its rows. One catalog request for a table that has range partitions, none for others.
    """
    if RANGE_PARTITIONS in iceberg.metadata.properties:
        move_to_newest(iceberg)


def newest_of(iceberg: IcebergTable) -> IcebergTable:
    """LK-17: the table in the catalog. Raises TableNotFoundError if the catalog has no table with the handle's name, or
    another one: the table was dropped or renamed since it was loaded."""
    name = ".".join(iceberg.name())
    try:
        found = iceberg.catalog.load_table(iceberg.name())
    except NoSuchTableError as error:
        raise TableNotFoundError(
            f"table {name} does not exist any more: it was dropped or renamed since it was loaded. Reload it under "
            "its current name."
        ) from error
    if found.metadata.table_uuid != iceberg.metadata.table_uuid:
        raise TableNotFoundError(
            f"table {name} was dropped or renamed since it was loaded, and another table now uses that name. Nothing "
            "was changed. Reload it under its current name."
        )
    return found
