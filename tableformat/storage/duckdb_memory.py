"""A connection of DuckDB for what this library computes by it."""

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
    """A database in memory, closed at the end of the block. MemoryError where DuckDB lacks memory: the statement and
    the rows are right."""
    import duckdb

    try:
        with duckdb.connect(config=dict(settings or {})) as connection:
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(f"DuckDB lacks memory: {error}") from error
