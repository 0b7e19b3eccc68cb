"""The order of rows in a file: nulls first, then values as keys order them (RD-4), rows of equal keys as they came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PEEK_ROWS: Final = 64
"""Rows looked at first: input that is not sorted nearly always shows it there."""
_RANKED_FROM_ROWS: Final = 32_768
"""From here on it pays to sort a column of repeated strings by the rank of its distinct values."""
_SAMPLE_ROWS: Final = 4_096
_REPEATED_BELOW: Final = 0.97
"""Share of distinct values in the sample below which ranking was faster than comparing strings (2 M rows: 0.39 s
against 0.92 s with 45,000 distinct strings; the other way round when all are distinct)."""


def sorting_order(columns: Sequence[pa.Array]) -> pa.Array | None:
    """FM-6: row numbers in key order, stable; None when the rows are in order already.

    Arrow orders strings and binaries by unsigned bytes, which is the key order; floating point columns are no keys.
    """
    plain = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in columns]
    if is_sorted(plain):
        return None
    sortable = [_ranks(column) if len(plain) > 1 else column for column in plain]
    names = [str(position) for position in range(len(sortable))]
    keys = [(name, "ascending", "at_start") for name in names]
    return pc.sort_indices(pa.RecordBatch.from_arrays(sortable, names=names), sort_keys=keys)


def is_sorted(columns: Sequence[pa.Array]) -> bool:
    """Whether rows are in key order. Columns that hold nulls count as unsorted; sorting them again is right, only
    slower."""
    row_count = len(columns[0])
    if row_count < 2:
        return True
    if any(column.null_count for column in columns):
        return False
    if row_count > 2 * _PEEK_ROWS and not is_sorted([column.slice(0, _PEEK_ROWS) for column in columns]):
        return False
    undecided = None
    for column in columns:
        before, after = column.slice(0, row_count - 1), column.slice(1)
        falls = pc.greater(before, after)
        if pc.any(falls if undecided is None else pc.and_(falls, undecided)).as_py():
            return False
        equal = pc.equal(before, after)
        undecided = equal if undecided is None else pc.and_(equal, undecided)
        if not pc.any(undecided).as_py():
            return True
    return True


def follows(previous: Sequence[pa.Scalar], first: Sequence[pa.Scalar]) -> bool:
    """Whether a row with the key `first` may come after one with the key `previous` in a sorted file."""
    for before, after in zip(previous, first, strict=True):
        if not before.is_valid or not after.is_valid:
            if before.is_valid == after.is_valid:
                continue
            return not before.is_valid
        pair = pa.array([before, after], before.type)
        plain = pair.storage if isinstance(pair, pa.ExtensionArray) else pair
        if pc.less(plain[0], plain[1]).as_py():
            return True
        if pc.greater(plain[0], plain[1]).as_py():
            return False
    return True


def _ranks(column: pa.Array) -> pa.Array:
    """A column of strings with many repetitions as the ranks of its values; any other as it is."""
    is_bytes = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_string, pa.types.is_binary)
    if not any(check(column.type) for check in is_bytes) or len(column) < _RANKED_FROM_ROWS:
        return column
    step = len(column) // _SAMPLE_ROWS
    sample = column.take(pa.array(np.arange(_SAMPLE_ROWS) * step))
    if pc.count_distinct(sample).as_py() > _REPEATED_BELOW * _SAMPLE_ROWS:
        return column
    encoded = column.dictionary_encode()
    order = np.asarray(pc.sort_indices(encoded.dictionary))
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return pa.array(ranks).take(encoded.indices)
