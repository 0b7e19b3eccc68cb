"""Timestamps of nanoseconds as the microseconds that they lie in.

PyArrow rounds the least ones, of 1677, to a moment of 2262.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def whole_microseconds(nanoseconds: pa.Array) -> pa.Array:
    """Rounded down, before 1970 too; nulls stay.

    >>> whole_microseconds(pa.array([-(2**63), -1, 1999, None], pa.timestamp("ns"))).cast(pa.int64()).to_pylist()
    [-9223372036854776, -1, 1, None]
    """
    numbers = np.asarray(nanoseconds.view(pa.int64()).fill_null(0))
    mask = np.asarray(nanoseconds.is_null())
    return pa.array(np.floor_divide(numbers, 1000), pa.int64(), mask=mask).cast(pa.timestamp("us", nanoseconds.type.tz))
