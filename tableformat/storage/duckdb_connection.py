"""DuckDB connections for the library's own queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def duckdb_connection(
    settings: Mapping[str, str | bool | int | float | list[str]] | None = None,
) -> Iterator[DuckDBPyConnection]:
    """A new database in memory, closed at the end of the block. DuckDB's progress bar is off, so nothing is printed.
    Raises MemoryError if DuckDB lacks memory."""
    import duckdb

    try:
        with duckdb.connect(config=dict(settings or {})) as connection:
            connection.execute("SET enable_progress_bar = false")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(f"DuckDB ran out of memory: {error}") from error
