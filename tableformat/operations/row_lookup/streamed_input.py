"""Batches that DuckDB reads from this library while it computes. An error that stops them is raised unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@contextmanager
def streamed_input(
    connection: DuckDBPyConnection, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[None]:
    """The batches as a table of the connection that can be read once.

    DuckDB converts an exception in its input to text. An error of this library, or Ctrl-C, is raised unchanged instead.
    Filters that a join computes are turned off for the connection, which only the caller uses. Versions before 2.0
    cannot convert a UUID of such a filter to Arrow, and these batches could not use the filters.
    """
    import duckdb

    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")
    failures: list[BaseException] = []
    reader = pa.RecordBatchReader.from_batches(schema, _remembering(failures, batches))
    connection.register(name, reader)
    try:
        yield
    except duckdb.Error:
        if failures:
            raise failures[0] from None
        raise


def _remembering(failures: list[BaseException], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches. An exception that ends them early is also added to `failures`."""
    try:
        yield from batches
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise
