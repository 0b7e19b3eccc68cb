"""Typed keys for property tests: values in Iceberg's internal form, a plain comparator, Arrow columns."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
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

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns

type_choices = st.sampled_from(
    [
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DecimalType(9, 2),
        DecimalType(38, 6),
        DateType(),
        TimeType(),
        TimestampType(),
        TimestamptzType(),
        TimestampNanoType(),
        TimestamptzNanoType(),
        StringType(),
        BinaryType(),
        FixedType(3),
        FixedType(11),
        UUIDType(),
    ]
)
"""Every primitive type that can be part of a key."""

_EDGE_TEXTS = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "a\0b",
    "ab",
    "\x01",
    "\uffff",
    "\U00010000",
    "common-prefix-1",
    "common-prefix-10",
]
_EDGE_BYTES = [b"", b"\0", b"\0\0", b"\0\xff", b"\x01", b"\xff", b"\xff\xff", b"abcdefgh", b"abcdefgh\0", b"abcdefghi"]


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return st.sampled_from([low, low + 1, -1, 0, 1, high]) | st.integers(-3, 3) | st.integers(low, high)


def _decimals(decimal_type: DecimalType) -> st.SearchStrategy[Decimal]:
    largest = 10**decimal_type.precision - 1
    unscaled = st.sampled_from([-largest, -1, 0, 1, largest]) | st.integers(-largest, largest)
    return unscaled.map(lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -decimal_type.scale)))


def values_of(key_type: PrimitiveType) -> st.SearchStrategy[Any]:  # noqa: PLR0911 (one a type)
    """Values of one type with its edges over-represented."""
    match key_type:
        case BooleanType():
            return st.booleans()
        case IntegerType() | DateType():
            return _integers(32)
        case TimeType():
            return st.integers(0, 86_399_999_999)
        case FloatType():
            return st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.floats(width=32)
        case DoubleType():
            return st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.floats()
        case DecimalType():
            return _decimals(key_type)
        case StringType():
            return st.sampled_from(_EDGE_TEXTS) | st.text(max_size=20)
        case BinaryType():
            return st.sampled_from(_EDGE_BYTES) | st.binary(max_size=20)
        case FixedType():
            return st.binary(min_size=len(key_type), max_size=len(key_type))
        case UUIDType():
            return st.sampled_from([bytes(16), b"\x7f" * 16, b"\x80" * 16, b"\xff" * 16]) | st.binary(
                min_size=16, max_size=16
            )
        case _:
            return _integers(64)


def comparable(value: Any) -> tuple[Any, ...]:
    """A value that Python compares in key order: nulls first, NaN last and equal to itself, text by its UTF-8 bytes."""
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (1, value.encode() if isinstance(value, str) else value)


def comparable_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(comparable(value) for value in row)


def arrow_column(values: list[Any], key_type: PrimitiveType) -> pa.Array:
    """Internal values in the Arrow type of the key."""
    arrow_type = arrow_type_of(key_type)
    if pa.types.is_temporal(arrow_type):
        return pa.array(values, pa.int32() if arrow_type.bit_width == 32 else pa.int64()).view(arrow_type)
    return pa.array(values, arrow_type)


def key_of(types: list[PrimitiveType]) -> KeyColumns:
    count = len(types)
    return KeyColumns(tuple(range(1, count + 1)), tuple(f"k{position}" for position in range(count)), tuple(types))


Cut: TypeAlias = tuple[tuple[Any, ...], bool]
"""Bound leading values, and whether the cut is after them."""


def cut_array(key: KeyColumns, cuts: list[Cut]) -> CutArray:
    columns = tuple(
        arrow_column([values[position] if position < len(values) else None for values, _ in cuts], key_type)
        for position, key_type in enumerate(key.types)
    )
    depth = np.array([len(values) for values, _ in cuts], np.int8)
    return CutArray(key, columns, depth, np.array([after for _, after in cuts], np.bool_))


def is_above(row: tuple[Any, ...], cut: Cut) -> bool:
    """RD-1, the plain way: whether a key lies above a cut."""
    values, after = cut
    prefix, bound = comparable_row(row[: len(values)]), comparable_row(values)
    return prefix > bound if after else prefix >= bound


@st.composite
def keyed_cases(
    draw: st.DrawFn, *, max_columns: int = 3
) -> tuple[KeyColumns, list[tuple[Any, ...]], list[tuple[Cut, Cut]]]:
    """A key, rows of it, and pairs of cuts; values come from a few for each column, so that rows and cuts coincide."""
    types = draw(st.lists(type_choices, min_size=1, max_size=max_columns))
    pools = [draw(st.lists(st.none() | values_of(key_type), min_size=1, max_size=4)) for key_type in types]
    row = st.tuples(*[st.sampled_from(pool) for pool in pools])
    cut = st.tuples(st.tuples(row, st.integers(0, len(types))).map(lambda pair: pair[0][: pair[1]]), st.booleans())
    rows = draw(st.lists(row, max_size=25))
    pairs = draw(st.lists(st.tuples(cut, cut), max_size=6))
    return key_of(types), rows, pairs


def span_array(key: KeyColumns, pairs: list[tuple[Cut, Cut]], numbers: list[int] | None = None) -> SpanArray:
    lower, upper = cut_array(key, [pair[0] for pair in pairs]), cut_array(key, [pair[1] for pair in pairs])
    return SpanArray(key, lower, upper, None if numbers is None else np.array(numbers, np.int64))
