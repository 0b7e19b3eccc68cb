"""Years, months, days and hours of dates and timestamps as partition values: whole units since 1970.

numpy's calendar has all years of timestamps. PyArrow's calendar, which PyIceberg's transforms use, ends with the year
32767, and its hours overflow 32 bits.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, YearTransform

from tableformat.errors import InvalidArgumentError

TimeTransform: TypeAlias = YearTransform | MonthTransform | DayTransform | HourTransform  # type: ignore[type-arg]

_UNITS: Final = {YearTransform: "Y", MonthTransform: "M", DayTransform: "D"}
_MICROS_PER_HOUR: Final = 3_600_000_000
_LEAST, _LARGEST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


def time_partitions(transform: TimeTransform, column: pa.Array, name: str) -> pa.Array:
    """The partition value of each date or timestamp in microseconds. Raises InvalidArgumentError for hours that a
    partition value, an `int`, cannot hold; `name` is the field's name.

    >>> from pyiceberg.transforms import YearTransform
    >>> time_partitions(YearTransform(), pa.array([-(2**63), 2**63 - 1, None], pa.timestamp("us")), "year").to_pylist()
    [-292278, 292277, None]
    """
    is_date = pat.is_date(column.type)
    numbers = np.asarray(column.view(pa.int32() if is_date else pa.int64()).fill_null(0)).astype(np.int64)
    if isinstance(transform, HourTransform):
        found = numbers // _MICROS_PER_HOUR
    else:
        # The smallest number is NaT in numpy, but a day like others here.
        days = numbers if is_date else numbers // (24 * _MICROS_PER_HOUR)
        found = days.view("datetime64[D]").astype(f"datetime64[{_UNITS[type(transform)]}]").astype(np.int64)
    outside = (found < _LEAST) | (found > _LARGEST)
    if outside.any():
        raise InvalidArgumentError(
            f"partition field {name!r} has no value for {column[int(outside.argmax())].cast(pa.int64()).as_py()} "
            f"microseconds since 1970: {transform}s are stored in 32 bits. Nothing was changed. Remove such rows, or "
            "partition by day."
        )
    return pa.array(found.astype(np.int32), pa.int32(), mask=np.asarray(column.is_null()))
