"""Timestamps of nanoseconds as the microseconds that they lie in.

PyArrow rounds the least ones, of 1677, to a moment of 2262.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def without_finer_digits(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """DA-6: nanoseconds that a column of microseconds reads as, in whatever array they stand; any other array is given
    back as it is."""
    if pa.types.is_dictionary(column.type):
        values = without_finer_digits(column.dictionary, wanted)
        return column if values is column.dictionary else pa.DictionaryArray.from_arrays(column.indices, values)
    is_finer = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    is_cut = is_finer and pa.types.is_timestamp(wanted) and wanted.unit == "us"
    return whole_microseconds(column) if is_cut else column


def whole_microseconds(nanoseconds: pa.Array) -> pa.Array:
    """Rounded down, before 1970 too; nulls stay.

    >>> whole_microseconds(pa.array([-(2**63), -1, 1999, None], pa.timestamp("ns"))).cast(pa.int64()).to_pylist()
    [-9223372036854776, -1, 1, None]
    """
    numbers = np.asarray(nanoseconds.view(pa.int64()).fill_null(0))
    mask = np.asarray(nanoseconds.is_null())
    return pa.array(np.floor_divide(numbers, 1000), pa.int64(), mask=mask).cast(pa.timestamp("us", nanoseconds.type.tz))
