"""Converts the literals of a filter to the types of their columns.

A literal need not be a value of the column's type: `id > 1.5` on an int column, `price = 1.005` on decimal(5, 2), `n <
1e12` on an int column. Rounding, as PyIceberg's own literals do, would change which rows match. Therefore a literal is
fitted: the result is the largest value of the column's type that is not greater, and whether it is equal. Every
comparison follows from these two.

Values are in Iceberg's internal representation: dates as days, times and timestamps as microseconds (nanoseconds for
the `_ns` types), UUIDs, fixed and binary as bytes, decimals as Decimal in the column's scale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
from pyiceberg.expressions import literals as iceberg
from pyiceberg.expressions.literals import Literal
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.keys.exact_decimals import decimal_of

ZONED_TYPES = (TimestamptzType, TimestamptzNanoType)
NANO_TYPES = (TimestampNanoType, TimestamptzNanoType)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROS_PER_DAY = 86_400_000_000
_FRACTION = re.compile(r"\.(\d+)")
LocalTime: TypeAlias = Callable[[datetime], datetime]
"""Converts a time without an offset, if it is not to be read as UTC."""
_BLOB_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Fitted:
    """The position of a literal among the values of a column's type."""

    floor: Any
    """The largest value of the type that is not greater than the literal; None if all values are greater."""
    exact: bool
    """Whether the literal equals `floor`."""


def fit(literal: Literal[Any], column_type: PrimitiveType) -> Fitted:
    """Fit a PyIceberg literal. Raises TypeError or ValueError, with the reason, if it cannot be compared with the type.

    A number is taken as a date, time or timestamp in its internal representation only because PyIceberg expressions
    allow it. SQL text is rejected earlier.
    """
    fitting = _FITTING.get(type(column_type))
    if fitting is None:
        raise TypeError(f"values of type {column_type} cannot be compared")
    return fitting(literal, column_type)


def literal_of(value: Any, column_type: PrimitiveType) -> Literal[Any]:
    """The PyIceberg literal of an internal value. Nanosecond timestamps are long literals, because PyIceberg has no
    literals for them."""
    match column_type:
        case DateType():
            return iceberg.DateLiteral(value)
        case TimeType():
            return iceberg.TimeLiteral(value)
        case TimestampType() | TimestamptzType():
            return iceberg.TimestampLiteral(value)
        case UUIDType():
            return iceberg.UUIDLiteral(value)
        case FixedType():
            return iceberg.FixedLiteral(value)
    return iceberg.literal(value)


def date_days(text: str) -> int:
    """The days since 1970-01-01 of an ISO date."""
    return (date.fromisoformat(text.strip()) - _EPOCH.date()).days


def time_micros(text: str) -> int:
    """The microseconds since midnight of an ISO time."""
    at = time.fromisoformat(text.strip())
    if at.tzinfo is not None:
        raise ValueError("a time has no time zone")
    return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond


def timestamp_nanos(text: str, *, zoned: bool) -> int:
    """The nanoseconds since the epoch of an ISO date or timestamp. Without an offset it is UTC; an offset requires
    `zoned`."""
    fraction = _FRACTION.search(text)
    digits = fraction.group(1) if fraction else ""
    if len(digits) > 9:
        raise ValueError("more than nine digits after the point")
    moment = datetime.fromisoformat(_FRACTION.sub("", text, count=1).strip())
    if moment.tzinfo is not None and not zoned:
        raise ValueError("the column has no time zone, but the literal has one")
    seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + int(digits.ljust(9, "0"))


def with_offset(text: str, local_time: LocalTime) -> str:
    """An ISO date or timestamp as the same moment in UTC. A text with an offset is unchanged."""
    fraction = _FRACTION.search(text)
    moment = datetime.fromisoformat(_FRACTION.sub("", text, count=1).strip())
    if moment.tzinfo is not None:
        return text
    in_utc = local_time(moment).astimezone(UTC).replace(tzinfo=None)
    return f"{in_utc.isoformat()}{fraction.group() if fraction else ''}+00:00"


def blob_bytes(text: str) -> bytes:
    """The bytes of a BLOB literal: ASCII characters, and all other bytes as \\xHH."""
    return _BLOB_ESCAPE.sub(lambda escape: bytes([int(escape.group(1), 16)]), text.encode("ascii"))


def _fit_integer(literal: Literal[Any], column_type: IntegerType | LongType) -> Fitted:
    number = _number(literal.value)
    if isinstance(number, float):
        return Fitted(None if number < 0 else column_type.max, exact=False)
    return _within(number, column_type)


def _within(number: Fraction | int, stored_as: IntegerType | LongType) -> Fitted:
    """A number fitted to 32 or 64 bits."""
    if number < stored_as.min:
        return Fitted(None, exact=False)
    floor = min(math.floor(number), stored_as.max)
    return Fitted(floor, exact=floor == number)


def _fit_decimal(literal: Literal[Any], column_type: DecimalType) -> Fitted:
    number = _number(_decimal(literal.value) if isinstance(literal, iceberg.StringLiteral) else literal.value)
    limit = 10**column_type.precision - 1
    if isinstance(number, float):
        unscaled, exact = (None if number < 0 else limit), False
    else:
        scaled = number * 10**column_type.scale
        unscaled = None if scaled < -limit else min(math.floor(scaled), limit)
        exact = unscaled == scaled
    return Fitted(None if unscaled is None else decimal_of(unscaled, column_type.scale), exact=exact)


def _decimal(text: str) -> Decimal:
    """Iceberg's JSON writes decimals as text, so expressions that are read from JSON contain text."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("not a number") from None


def _fit_float(literal: Literal[Any], column_type: FloatType | DoubleType) -> Fitted:
    """The nearest float, like a cast in SQL engines. A number beyond the largest float lies between it and infinity."""
    number = _number(literal.value)
    largest = _largest_float(isinstance(column_type, FloatType))
    if isinstance(number, Fraction):
        if number > Fraction(largest):
            return Fitted(largest, exact=False)
        if number < -Fraction(largest):
            return Fitted(-math.inf, exact=False)
        number = float(number)
    if isinstance(column_type, FloatType):
        number = float(np.float32(number))
    return Fitted(number, exact=True)


def fit_double_among_floats(number: float) -> Fitted:
    """A 64-bit number is compared exactly with a 32-bit column. A number without a type of its own becomes the nearest
    float (`_fit_float`)."""
    largest = _largest_float(True)
    if math.isinf(number):
        return Fitted(number, exact=True)
    if abs(number) > largest:
        return Fitted(largest if number > 0 else -math.inf, exact=False)
    near = nearest_float(number)
    if near > number:
        near = float(np.nextafter(np.float32(near), np.float32(-np.inf)))
    return Fitted(near, exact=near == number)


def nearest_float(number: float) -> float:
    """The 32-bit float; infinite for a number that is too large."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


@cache
def _largest_float(is_single: bool) -> float:
    return float(np.finfo(np.float32 if is_single else np.float64).max)


def _fit_boolean(literal: Literal[Any], _: BooleanType) -> Fitted:
    return Fitted(_instance(literal.value, bool), exact=True)


def _fit_string(literal: Literal[Any], _: StringType) -> Fitted:
    return Fitted(_instance(literal.value, str), exact=True)


def _fit_time(literal: Literal[Any], _: TimeType) -> Fitted:
    value = literal.value
    return Fitted(time_micros(value) if isinstance(value, str) else _integer(value), exact=True)


def _fit_uuid(literal: Literal[Any], _: UUIDType) -> Fitted:
    value = literal.value
    return Fitted(UUID(value).bytes if isinstance(value, str) else _sized(value, 16), exact=True)


def _fit_fixed(literal: Literal[Any], column_type: FixedType) -> Fitted:
    return Fitted(_sized(_bytes(literal.value), len(column_type)), exact=True)


def _fit_binary(literal: Literal[Any], _: BinaryType) -> Fitted:
    return Fitted(_bytes(literal.value), exact=True)


def _fit_date(literal: Literal[Any], _: DateType) -> Fitted:
    value = literal.value
    if isinstance(value, str):
        return Fitted(date_days(value), exact=True)
    if isinstance(literal, iceberg.TimestampLiteral):
        return _within(Fraction(value, _MICROS_PER_DAY), IntegerType())
    return _within(_integer(value), IntegerType())


def _fit_timestamp(literal: Literal[Any], column_type: PrimitiveType) -> Fitted:
    """A number is the internal value. PyIceberg's date and timestamp literals contain days and microseconds."""
    value = literal.value
    in_nanos = isinstance(column_type, NANO_TYPES)
    if isinstance(value, str):
        nanos = timestamp_nanos(value, zoned=isinstance(column_type, ZONED_TYPES))
    elif isinstance(literal, iceberg.DateLiteral):
        nanos = value * _MICROS_PER_DAY * 1000
    elif isinstance(literal, iceberg.TimestampLiteral):
        nanos = value * 1000
    else:
        return _within(_integer(value), LongType())
    return _within(nanos if in_nanos else Fraction(nanos, 1000), LongType())


def _number(value: Any) -> Fraction | float:
    """The exact number; infinities and NaN stay floats. NaN is greater than everything, so for types without it, it
    acts like infinity."""
    if isinstance(value, (bool, str, bytes)) or not isinstance(value, (int, float, Decimal)):
        raise TypeError("not a number")
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if isinstance(value, Decimal) and not value.is_finite():
        return float(value)
    return Fraction(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a value of that type")
    return value


def _instance(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError("not a value of that type")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return blob_bytes(value)
    if not isinstance(value, bytes):
        raise TypeError("not binary")
    return value


def _sized(value: Any, size_bytes: int) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("not binary")
    if len(value) != size_bytes:
        raise ValueError(f"{len(value)} bytes long, not {size_bytes}")
    return value


_FITTING: Final[dict[type[IcebergType], Callable[[Literal[Any], Any], Fitted]]] = {
    BooleanType: _fit_boolean,
    IntegerType: _fit_integer,
    LongType: _fit_integer,
    FloatType: _fit_float,
    DoubleType: _fit_float,
    DecimalType: _fit_decimal,
    StringType: _fit_string,
    DateType: _fit_date,
    TimeType: _fit_time,
    TimestampType: _fit_timestamp,
    TimestamptzType: _fit_timestamp,
    TimestampNanoType: _fit_timestamp,
    TimestamptzNanoType: _fit_timestamp,
    UUIDType: _fit_uuid,
    FixedType: _fit_fixed,
    BinaryType: _fit_binary,
}
