"""Concatenates batches of one schema."""

from __future__ import annotations

import pyarrow as pa


def one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows as one batch. The list must not be empty; it is emptied, so that its batches do not outlive the copy."""
    if len(batches) == 1:
        return batches.pop()
    table = pa.Table.from_batches(batches)
    batches.clear()
    return pa.RecordBatch.from_arrays([one_array(column) for column in table.columns], schema=table.schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array; a copy if it has several chunks."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
