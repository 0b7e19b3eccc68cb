"""Moves a handle to the newest metadata of its catalog."""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table as IcebergTable

from tableformat.errors import TableNotFoundError


def move_to_newest(iceberg: IcebergTable) -> None:
    """TableNotFoundError for a table that was dropped, or renamed, since it was loaded."""
    try:
        iceberg.refresh()
    except NoSuchTableError as error:
        raise TableNotFoundError(
            f"table {'.'.join(iceberg.name())} does not exist (any more): it was dropped or renamed since it was "
            "loaded. Load it again by its name of now."
        ) from error
