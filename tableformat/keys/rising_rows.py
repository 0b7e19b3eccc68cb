"""Checks batch by batch whether rows are sorted by a key: nulls first, then in key order (RD-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.keys.arrow_columns import plain_values
from tableformat.keys.sort_words import number_codes


class RisingRows:
    """RD-11: checks the promise of a sort marker on the columns that it names."""

    def __init__(self) -> None:
        self.falls_at: int | None = None
        """Position of the first row that is less than the previous one; None while the rows are sorted."""
        self._last: list[pa.Array] | None = None
        self._row_count = 0

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Check the next rows. The columns are in the order of the key."""
        if self.falls_at is not None or not len(columns[0]):
            return
        columns = [comparable_array(column) for column in columns]
        if self._last is not None:
            pairs = [pa.concat_arrays([last, column[:1]]) for last, column in zip(self._last, columns, strict=True)]
            if first_fall(pairs) is not None:
                self.falls_at = self._row_count
                return
        fall = first_fall(columns)
        if fall is not None:
            self.falls_at = self._row_count + fall
        # A copy, because a slice would keep the whole batch in memory.
        self._last = [column.take(pa.array([len(column) - 1])) for column in columns]
        self._row_count += len(columns[0])


def comparable_array(column: pa.Array) -> pa.Array:
    """An array that Arrow sorts in key order (RD-4): floats become codes, in which NaN is greater than infinity."""
    column = plain_values(column)
    if not pa.types.is_floating(column.type):
        return column
    mask = None if not column.null_count else column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(number_codes(column), mask=mask)


def first_fall(columns: Sequence[pa.Array]) -> int | None:
    """The position of the first row that is less than the previous one; None if the rows are sorted.

    Columns are compared one after the other. Null is less than every value.
    """
    row_count = len(columns[0])
    if row_count < 2:
        return None
    falls = np.zeros(row_count - 1, np.bool_)
    ties = np.ones(row_count - 1, np.bool_)
    for column in columns:
        before, after = column[:-1], column[1:]
        valid_before, valid_after = _flags(before.is_valid()), _flags(after.is_valid())
        greater = _flags(pc.fill_null(pc.greater(before, after), False))
        equal = _flags(pc.fill_null(pc.equal(before, after), False)) | ~(valid_before | valid_after)
        falls |= ties & (greater | (valid_before & ~valid_after))
        ties &= equal
        if not ties.any():
            break
    found = np.flatnonzero(falls)
    return int(found[0]) + 1 if len(found) else None


def _flags(column: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    flags: np.ndarray[Any, np.dtype[np.bool_]] = column.to_numpy(zero_copy_only=False)
    return flags
