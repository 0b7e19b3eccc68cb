"""The order of keys by Python's own comparisons: the test oracle for `tableformat.keys` and everything above it."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Values: TypeAlias = tuple[Any, ...]


def sort_key(value: Any) -> tuple[Any, ...]:
    """RD-4: the sort key of a value in its column: null first, then values, NaN last; -0.0 equals 0.0.

    Python compares text by code point and UUIDs as unsigned numbers, which is the required order.
    """
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, value)


def sort_keys(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """The sort key of a tuple of values. It compares like the key that begins with it; null equals null (DA-4)."""
    return tuple(sort_key(value) for value in values)


def is_covered(values: Values, lower: Values | None, upper: Values | None) -> bool:
    """RD-1: whether a key lies in before(lower) .. before(upper). A bound of None is open.

    A cut before a tuple lies below all keys that begin with the tuple, so only that number of values is compared.
    """
    above_lower = lower is None or sort_keys(values[: len(lower)]) >= sort_keys(lower)
    below_upper = upper is None or sort_keys(values[: len(upper)]) < sort_keys(upper)
    return above_lower and below_upper


def fingerprint(rows: Iterable[Row], columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """The rows as a multiset. -0.0 and 0.0 differ, all NaNs are equal, and True differs from 1."""
    return Counter(tuple(_identity(row.get(name)) for name in columns) for row in rows)


def _identity(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", "NaN" if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, Mapping):
        return ("struct", tuple((name, _identity(inner)) for name, inner in sorted(value.items())))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(_identity, value)))
    if isinstance(value, uuid.UUID):
        return ("bytes", value.bytes)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return ("instant", value.astimezone(dt.UTC).replace(tzinfo=None))
    return (type(value).__name__, value)


def event_sort_key(event: Row, order_by: str | None) -> tuple[Any, ...]:
    """Order of events: null below NaN below values. An event without a time loses against one with a time."""
    value = event.get(order_by) if order_by is not None else None
    if value is None:
        return (0,)
    return (1,) if isinstance(value, float) and math.isnan(value) else (2, value)
