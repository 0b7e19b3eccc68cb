"""Batches that DuckDB takes from this library while it computes: what ends them early stays the error that it was."""

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

    DuckDB makes a text of what stops its input: an error of this library, or Ctrl-C, is raised as itself. Of the
    connection, which is the caller's own, filters that a join computes are turned off: versions before 2.0 cannot give
    a UUID to Arrow, and these batches could not use them.
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
    """The batches; what ends them early is put in `failures` too."""
    try:
        yield from batches
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise
