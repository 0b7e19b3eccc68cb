"""Rounds nanosecond timestamps down to microseconds.

PyArrow rounds the smallest ones, in the year 1677, to the year 2262.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def without_finer_digits(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """DA-6: the values of a nanosecond array as a microsecond column reads them. Any other array is returned
    unchanged."""
    if pa.types.is_dictionary(column.type):
        values = without_finer_digits(column.dictionary, wanted)
        return column if values is column.dictionary else pa.DictionaryArray.from_arrays(column.indices, values)
    is_finer = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    is_cut = is_finer and pa.types.is_timestamp(wanted) and wanted.unit == "us"
    return whole_microseconds(column) if is_cut else column


def whole_microseconds(nanoseconds: pa.Array) -> pa.Array:
    """Rounded down, also before 1970. Nulls stay.

    >>> whole_microseconds(pa.array([-(2**63), -1, 1999, None], pa.timestamp("ns"))).cast(pa.int64()).to_pylist()
    [-9223372036854776, -1, 1, None]
    """
    numbers = np.asarray(nanoseconds.view(pa.int64()).fill_null(0))
    mask = np.asarray(nanoseconds.is_null())
    return pa.array(np.floor_divide(numbers, 1000), pa.int64(), mask=mask).cast(pa.timestamp("us", nanoseconds.type.tz))
