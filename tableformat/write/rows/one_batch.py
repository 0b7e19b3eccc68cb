"""Batches of one schema put together."""

from __future__ import annotations

import pyarrow as pa


def one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows as one batch, of one batch at least; empties the list, so that the parts do not outlive the copy."""
    if len(batches) == 1:
        return batches.pop()
    table = pa.Table.from_batches(batches)
    batches.clear()
    return pa.RecordBatch.from_arrays([one_array(column) for column in table.columns], schema=table.schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A copy where there are several chunks."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
