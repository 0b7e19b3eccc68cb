"""Key columns of rows in pieces in which each column is one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from tableformat.deletes.matching.comparable_values import decoded
from tableformat.keys.arrow_columns import single_array

_CHUNK_ROWS_MIN: Final = 1 << 14
"""Shorter chunks are concatenated, because each chunk costs about forty array operations."""


def key_chunks(columns: Sequence[pa.ChunkedArray]) -> Iterator[list[pa.ChunkedArray]]:
    """The rows, in their order, in pieces in which each column is one array."""
    row_count = len(columns[0])
    piece_count = max(column.num_chunks for column in columns)
    if piece_count > 1 and piece_count * _CHUNK_ROWS_MIN > row_count:
        # Decoded: Arrow does not concatenate dictionaries if one of them contains a null.
        columns = [pa.chunked_array([single_array(decoded(column))]) for column in columns]
    names = [str(index) for index in range(len(columns))]
    for batch in pa.table(columns, names=names).to_batches():
        yield [pa.chunked_array([column]) for column in batch.columns]
