"""Rows that remember where in the caller's input they stood, for refusals after some of the input was left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa


def unused_name(schema: pa.Schema) -> str:
    """Longer than any name of a column."""
    return "_" * (1 + max(map(len, schema.names), default=0))


def numbered(rows: pa.RecordBatchReader, name: str) -> pa.RecordBatchReader:
    """The rows with their indexes in the input, which a refusal names although earlier rows of a key are gone."""
    schema = rows.schema.append(pa.field(name, pa.int64(), nullable=False))

    def batches() -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in rows:
            numbers = pa.array(np.arange(first, first + batch.num_rows))
            yield pa.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(schema, batches())
