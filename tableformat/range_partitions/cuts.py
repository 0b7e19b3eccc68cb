"""Cuts and ranges as comparable values (RD-1), with their text and JSON forms."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Inexact, InvalidOperation
from functools import total_ordering
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    FixedType,
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

from tableformat.arguments import shown
from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import InvalidArgumentError, InvalidKeyError
from tableformat.keys.arrow_columns import array_of_values
from tableformat.keys.encoding import AFTER_MARKER, encode_rows
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import array_of_internal_values, internal_values_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import exact_decimal

_UNITS: Final[dict[type[PrimitiveType], Literal["D", "us", "ns"]]] = {
    DateType: "D",
    TimestampType: "us",
    TimestamptzType: "us",
    TimestampNanoType: "ns",
    TimestamptzNanoType: "ns",
}
_ZONED: Final = (TimestamptzType, TimestamptzNanoType)
_COARSER: Final = ("s", "us")
"""Coarser units: text has no more digits than the value needs."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Cut:
    """RD-1: a position before or after every key that begins with the values. With `()`, before or after all keys."""

    values: tuple[Any, ...] = field(compare=False)
    """The values in Iceberg's internal representation."""
    after: bool = field(compare=False)
    encoded: bytes = field(repr=False)

    def __lt__(self, other: Cut) -> bool:
        return self.encoded < other.encoded

    @property
    def is_open(self) -> bool:
        return not self.values


START: Final = Cut((), False, b"")
END: Final = Cut((), True, AFTER_MARKER)


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """The keys between two cuts."""

    lower: Cut
    upper: Cut

    def meets(self, other: Range) -> bool:
        """Whether a key can be in both ranges."""
        return self.lower < other.upper and other.lower < self.upper

    def holds(self, other: Range) -> bool:
        return self.lower <= other.lower and other.upper <= self.upper


def internal_cut(key: KeyColumns, values: Sequence[Any], *, after: bool) -> Cut:
    """The cut at values in Iceberg's internal representation."""
    if not values:
        return END if after else START
    types = key.types[: len(values)]
    columns = [array_of_internal_values([value], key_type) for value, key_type in zip(values, types, strict=True)]
    encoded: bytes = encode_rows(columns, types)[0].as_py()
    return Cut(tuple(values), after, encoded + (AFTER_MARKER if after else b""))


def cuts_before(key: KeyColumns, values: Sequence[Any]) -> list[Cut]:
    """The cuts before internal values of a key of one column."""
    encoded = encode_rows([array_of_internal_values(values, key.types[0])], key.types)
    return [Cut((value,), False, each) for value, each in zip(values, encoded.to_pylist(), strict=True)]


def cut_at(key: KeyColumns, values: Any, *, after: bool, side: str) -> Cut:
    """The cut at a caller's value, or tuple of leading values. Raises InvalidArgumentError if they do not fit the range
    columns."""
    given = tuple(values) if isinstance(values, tuple | list) else (values,)
    if not given or len(given) > len(key) or any(value is None for value in given):
        raise InvalidArgumentError(
            f"{side} {shown(values)}: pass one value, or a tuple of up to {len(key)} leading values of "
            f"{', '.join(key.names)}; range columns have no nulls."
        )
    try:
        internal = [
            internal_values_of(array_of_values([value], key_type, name=name), key_type)[0]
            for value, key_type, name in zip(given, key.types, key.names, strict=False)
        ]
    except InvalidKeyError as error:
        raise InvalidArgumentError(f"{side} {shown(values)}: {error}") from error
    return internal_cut(key, internal, after=after)


def spans_of(key: KeyColumns, ranges: Sequence[Range]) -> SpanArray:
    """The ranges as spans without sequence numbers."""
    if not ranges:
        return SpanArray.empty(key)
    lower = cut_array(key, [each.lower for each in ranges])
    return SpanArray(key, lower, cut_array(key, [each.upper for each in ranges]), None)


def cut_array(key: KeyColumns, cuts: Sequence[Cut]) -> CutArray:
    columns = tuple(
        _column([cut.values[position] if position < len(cut.values) else None for cut in cuts], key_type)
        for position, key_type in enumerate(key.types)
    )
    depth = np.array([len(cut.values) for cut in cuts], np.int8)
    return CutArray(key, columns, depth, np.array([cut.after for cut in cuts], np.bool_))


def _column(values: list[Any], key_type: PrimitiveType) -> pa.Array:
    known = [value for value in values if value is not None]
    return array_of_internal_values(values, key_type) if known else pa.nulls(len(values), arrow_type_of(key_type))


# -- text -----------------------------------------------------------------------------------------------------------


def range_text(key: KeyColumns, given: Range) -> str:
    """`[2024-01-01, 2024-04-01)`; `VALUE = 'Asia'` for a range of one value."""
    lower, upper = given.lower, given.upper
    if not lower.after and upper.after and lower.values and lower.values == upper.values:
        return f"VALUE = {values_text(key, lower.values)}"
    left = "(-inf" if lower.is_open else f"{'(' if lower.after else '['}{values_text(key, lower.values)}"
    right = "inf)" if upper.is_open else f"{values_text(key, upper.values)}{']' if upper.after else ')'}"
    return f"{left}, {right}"


def values_text(key: KeyColumns, values: Sequence[Any]) -> str:
    texts = [value_text(value, key_type) for value, key_type in zip(values, key.types, strict=False)]
    return texts[0] if len(key) == 1 else f"({', '.join(texts)})"


def value_text(value: Any, key_type: PrimitiveType) -> str:
    """The value in the form for users. Midnight is shown as a date."""
    if isinstance(key_type, StringType):
        return quoted(value)
    text = value_to_json(value, key_type)
    if text == "":
        return quoted(text)
    if isinstance(key_type, TimestampType | TimestamptzType | TimestampNanoType | TimestamptzNanoType):
        return str(text).removesuffix("+00:00").removesuffix("T00:00:00")
    return str(text).lower() if isinstance(key_type, BooleanType) else str(text)


def quoted(text: str) -> str:
    """The text in quotes. Quotes inside are doubled."""
    return "'" + text.replace("'", "''") + "'"


# -- JSON -----------------------------------------------------------------------------------------------------------


def cut_to_json(key: KeyColumns, cut: Cut) -> Any:
    """RP-1: the JSON of a cut. It is null for an open end, a list of values for a cut before them, or `{"after":
    [...]}`."""
    if cut.is_open:
        return None
    values = [value_to_json(value, key_type) for value, key_type in zip(cut.values, key.types, strict=False)]
    return {"after": values} if cut.after else values


def cut_from_json(key: KeyColumns, given: Any, *, is_upper: bool) -> Cut:
    if given is None:
        return END if is_upper else START
    after = isinstance(given, dict)
    values = given["after"] if after else given
    if not isinstance(values, list) or not 0 < len(values) <= len(key):
        raise InvalidArgumentError(f"{shown(given)} is not a boundary of {', '.join(key.names)}.")
    internal = [value_from_json(value, key_type) for value, key_type in zip(values, key.types, strict=False)]
    return internal_cut(key, internal, after=after)


def value_to_json(value: Any, key_type: PrimitiveType) -> Any:
    """Iceberg's JSON single-value form of an internal value."""
    unit = _UNITS.get(type(key_type))
    if unit is not None:
        moment = np.array(value, np.int64).astype(f"datetime64[{unit}]")
        shown = next((each for each in _COARSER if moment.astype(f"datetime64[{each}]") == moment), unit)
        text = str(moment if unit == "D" else moment.astype(f"datetime64[{shown}]"))
        return text + ("+00:00" if isinstance(key_type, _ZONED) else "")
    match key_type:
        case TimeType():
            return str(np.datetime64(int(value), "us")).partition("T")[2].removesuffix(".000000")
        case DecimalType():
            return str(value)
        case UUIDType():
            return str(uuid.UUID(bytes=bytes(value)))
        case BinaryType() | FixedType():
            return bytes(value).hex()
        case _:
            return value


def value_from_json(given: Any, key_type: PrimitiveType) -> Any:  # noqa: PLR0911 (one a type)
    """The internal value. Raises InvalidArgumentError for JSON that is not a value of the type."""
    try:
        unit = _UNITS.get(type(key_type))
        if unit is not None:
            text = _without_zone(str(given), key_type)
            return int(np.array(text, f"datetime64[{unit}]").astype(np.int64))
        match key_type:
            case TimeType():
                return int(np.datetime64(f"1970-01-01T{given}", "us").astype(np.int64))
            case DecimalType():
                return exact_decimal(str(given), key_type)
            case UUIDType():
                return uuid.UUID(given).bytes
            case BinaryType() | FixedType():
                return bytes.fromhex(given)
            case BooleanType() if isinstance(given, bool):
                return given
            case IntegerType() | LongType() if isinstance(given, int) and not isinstance(given, bool):
                return given
            case StringType() if isinstance(given, str):
                return given
    except (ValueError, TypeError, AttributeError, Inexact, InvalidOperation) as error:
        raise InvalidArgumentError(f"{shown(given)} is not a value of type {key_type}: {error}.") from error
    raise InvalidArgumentError(f"{shown(given)} is not a value of type {key_type}.")


def _without_zone(text: str, key_type: PrimitiveType) -> str:
    if not isinstance(key_type, _ZONED):
        return text
    bare = text.removesuffix("Z").removesuffix("+00:00")
    if bare == text and len(text) > len("2024-01-01"):
        raise ValueError("a moment with a time zone ends in +00:00")
    return bare
