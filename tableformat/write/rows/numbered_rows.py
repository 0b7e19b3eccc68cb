"""Adds row indexes of the caller's input, so that refusals have the right index after some of the input was omitted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa


def unused_name(schema: pa.Schema) -> str:
    """A name that is longer than every column name."""
    return "_" * (1 + max(map(len, schema.names), default=0))


def numbered(rows: pa.RecordBatchReader, name: str) -> pa.RecordBatchReader:
    """The rows with their indexes in the input. Refusals report these indexes, even if earlier rows of a key were
    omitted."""
    schema = rows.schema.append(pa.field(name, pa.int64(), nullable=False))

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in rows:
            numbers = pa.array(np.arange(first, first + batch.num_rows))
            yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, batches())
