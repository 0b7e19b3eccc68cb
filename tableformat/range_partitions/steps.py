"""Steps: borders that are computed, so that 10,000 days are one bound and not 10,000.

    ordinal     ...   -1        0        1        2
    values        |--------|--------|--------|--------|
                       origin

Hours have 3,600 seconds in every zone. Longer steps begin at midnight in the zone. They follow the wall clock: a day
has 23 or 25 hours when clocks change.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError
from tableformat.keys.families import arrow_type_of

Ordinals = npt.NDArray[np.int64]

_SECONDS: Final = {"hour": 3_600, "day": 86_400, "week": 604_800}
_MONTHS: Final = {"month": 1, "year": 12}
_UNIT_NAMES: Final = (*_SECONDS, *_MONTHS)
_DURATION: Final = re.compile(r"\s*(\d+)?\s*([a-z]+?)s?\s*$", re.IGNORECASE)
_MOMENTS: Final[dict[type[PrimitiveType], Literal["us", "ns"]]] = {
    TimestampType: "us",
    TimestamptzType: "us",
    TimestampNanoType: "ns",
    TimestamptzNanoType: "ns",
}
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_PER_SECOND: Final = {"us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of units; `unit` is None for plain numbers."""

    count: int
    unit: str | None

    @property
    def text(self) -> str | int:
        """The duration in the form that users write."""
        return self.count if self.unit is None else f"{self.count} {self.unit}{'s' if self.count > 1 else ''}"


def parse_duration(given: Any, *, option: str) -> Duration:
    """The duration in `"3 months"`, `"day"` or a whole number. Raises InvalidArgumentError for any other value."""
    if isinstance(given, int) and not isinstance(given, bool):
        count, unit = given, None
    else:
        match = _DURATION.match(given) if isinstance(given, str) else None
        unit = match[2].lower() if match else None
        if match is None or unit not in _UNIT_NAMES:
            raise InvalidArgumentError(
                f"{option} must be a whole number, or a number of {', '.join(_UNIT_NAMES)}, such as '1 day', not "
                f"{shown(given)}."
            )
        count = int(match[1] or 1)
    if count <= 0:
        raise InvalidArgumentError(f"{option} must be above 0, not {shown(given)}.")
    return Duration(count, unit)


@dataclass(frozen=True, slots=True)
class Steps:
    """RP-4: the borders of one column's steps, in Iceberg's internal representation."""

    column_type: PrimitiveType
    duration: Duration
    origin: int
    """A border, as an internal value of the column."""
    zone: str
    """"UTC" for columns without a time zone."""

    def ordinals(self, values: npt.NDArray[np.int64]) -> Ordinals:
        """The ordinal of the step that contains each value."""
        if self.duration.unit in _MONTHS:
            counted = self._floor_months(values)
        elif self._has_wall_clock:
            counted = (self._to_wall(values) - self._wall_origin) // self._width
        else:
            return (values - self.origin) // self._width
        if not self._has_wall_clock:
            return counted
        # If clocks are set back over midnight, the wall clock passes the end of the day twice.
        counted = counted - (values < self.starts(counted))
        return counted + (values >= self.starts(counted + 1))

    def starts(self, ordinals: Ordinals) -> npt.NDArray[np.int64]:
        """The first value of each step."""
        if self.duration.unit in _MONTHS:
            wall = self._month_starts(ordinals)
        elif self._has_wall_clock:
            wall = self._wall_origin + ordinals * self._width
        else:
            return self.origin + ordinals * self._width
        return self._from_wall(wall) if self._has_wall_clock else wall

    def inside(self, lower: int, upper: int) -> npt.NDArray[np.int64]:
        """The borders of steps above `lower` and below `upper`."""
        if lower >= upper:
            return np.zeros(0, np.int64)
        first, last = self.ordinals(np.array([lower, upper - 1])).tolist()
        return self.starts(np.arange(first + 1, last + 1))

    def is_border(self, value: int) -> bool:
        return bool(self.starts(self.ordinals(np.array([value])))[0] == value)

    def less(self, value: int, duration: Duration) -> int:
        """The value minus a duration. If a month does not have the day, its last day is used."""
        if duration.unit in _MONTHS:
            months = duration.count * _MONTHS[duration.unit]
            return int(self._minus_months(value, months))
        return value - duration.count * _width_of(self.column_type, duration)

    # -- units --------------------------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return self.duration.count * _width_of(self.column_type, self.duration)

    @property
    def _has_wall_clock(self) -> bool:
        return self.zone != "UTC" and self.duration.unit != "hour"

    @property
    def _unit(self) -> Literal["us", "ns", "D"]:
        return _MOMENTS.get(type(self.column_type), "D")

    @property
    def _wall_origin(self) -> int:
        return int(self._to_wall(np.array([self.origin]))[0])

    @property
    def _month_count(self) -> int:
        assert self.duration.unit is not None
        return self.duration.count * _MONTHS[self.duration.unit]

    def _floor_months(self, values: npt.NDArray[np.int64]) -> Ordinals:
        counted: Ordinals = (self._months(values) - self._months(np.array([self.origin]))[0]) // self._month_count
        return counted

    def _months(self, values: npt.NDArray[np.int64]) -> Ordinals:
        wall = self._to_wall(values) if self._has_wall_clock else values
        months: Ordinals = wall.astype(f"datetime64[{self._unit}]").astype("datetime64[M]").astype(np.int64)
        return months

    def _month_starts(self, ordinals: Ordinals) -> npt.NDArray[np.int64]:
        months = self._months(np.array([self.origin]))[0] + ordinals * self._month_count
        moments = months.astype("datetime64[M]").astype(f"datetime64[{self._unit}]")
        starts: npt.NDArray[np.int64] = moments.astype(np.int64)
        return starts

    def _minus_months(self, value: int, months: int) -> int:
        wall = self._to_wall(np.array([value])) if self._has_wall_clock else np.array([value])
        moment = wall.astype(f"datetime64[{self._unit}]")
        month = moment.astype("datetime64[M]")
        target = month - months
        shifted = target.astype(moment.dtype) + (moment - month.astype(moment.dtype))
        end = (target + 1).astype(moment.dtype) - 1
        result = np.minimum(shifted, end).astype(np.int64)
        return int((self._from_wall(result) if self._has_wall_clock else result)[0])

    def _to_wall(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        moments = pa.array(values, pa.int64()).view(pa.timestamp(self._unit, tz=self.zone))
        return np.asarray(pc.local_timestamp(moments).view(pa.int64()))

    def _from_wall(self, wall: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        moments = pa.array(wall, pa.int64()).view(pa.timestamp(self._unit))
        zoned = pc.assume_timezone(moments, self.zone, ambiguous="earliest", nonexistent="latest")
        return np.asarray(zoned.view(pa.int64()))


def steps_of(column_type: PrimitiveType, duration: Duration, *, origin: int | None, zone: str, column: str) -> Steps:
    """RP-4: the steps of a column. Raises InvalidArgumentError, which names both, if the steps do not fit."""
    _check_unit(column_type, duration, option="step", column=column)
    if zone != "UTC":
        if not isinstance(column_type, _ZONED):
            raise InvalidArgumentError(
                f"time_zone={zone!r}: column {column!r} is {column_type}, which has no time zone; its steps follow "
                "the stored values."
            )
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
            raise InvalidArgumentError(f"time_zone={zone!r} is not a time zone of the IANA database.") from error
    steps = Steps(column_type, duration, 0 if origin is None else origin, zone)
    if origin is None and steps._has_wall_clock:
        steps = Steps(column_type, duration, int(steps._from_wall(np.zeros(1, np.int64))[0]), zone)
    if duration.unit in _MONTHS and not steps.is_border(steps.origin):
        raise InvalidArgumentError(f"origin: steps of {duration.text} must begin at the start of a month.")
    return steps


def check_age(column_type: PrimitiveType, duration: Duration, *, column: str) -> None:
    """Raise InvalidArgumentError if a retention does not fit the column."""
    _check_unit(column_type, duration, option="retain", column=column)


def moment_unit(column_type: PrimitiveType) -> Literal["us", "ns"]:
    """The unit of a timestamp column."""
    return _MOMENTS[type(column_type)]


def values_as_int64(column: pa.Array, column_type: PrimitiveType) -> npt.NDArray[np.int64]:
    """The internal values of a column without nulls, whose type supports steps."""
    plain = column.cast(arrow_type_of(column_type)) if column.type != arrow_type_of(column_type) else column
    width = pa.int32() if plain.type.bit_width == 32 else pa.int64()
    return np.asarray(plain.view(width)).astype(np.int64, copy=False)


def _check_unit(column_type: PrimitiveType, duration: Duration, *, option: str, column: str) -> None:
    is_number = isinstance(column_type, IntegerType | LongType)
    is_moment = type(column_type) in _MOMENTS
    fits = is_number if duration.unit is None else is_moment or isinstance(column_type, DateType)
    if not fits or (duration.unit == "hour" and not is_moment):
        kinds = "whole numbers for int and long, durations for dates and timestamps, hours for timestamps only"
        raise InvalidArgumentError(
            f"{option}={duration.text!r} does not fit column {column!r} of type {column_type}: use {kinds}."
        )


def _width_of(column_type: PrimitiveType, duration: Duration) -> int:
    """The width of one unit, in the column's internal representation."""
    if duration.unit is None:
        return 1
    seconds = _SECONDS[duration.unit]
    unit = _MOMENTS.get(type(column_type))
    return seconds // _SECONDS["day"] if unit is None else seconds * _PER_SECOND[unit]
