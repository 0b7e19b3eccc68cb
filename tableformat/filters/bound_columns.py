"""Column bounds of many files as numbers or byte strings whose order is the order of the values.

A bound that is not a value of the column's type is marked. `file_statistics` then evaluates the file by itself. Source:
Iceberg table specification, "Binary single-value serialization".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
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
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.metadata.column_bounds import DATE_PROMOTIONS

Flags = npt.NDArray[np.bool_]

_DECIMAL_BYTES: Final = 16
_INT64_MAX: Final = (1 << 63) - 1
_WIDTHS: Final[Mapping[type[IcebergType], Mapping[int, str]]] = {
    BooleanType: {1: "|u1"},
    IntegerType: {4: "<i4"},
    DateType: {4: "<i4"},
    LongType: {4: "<i4", 8: "<i8"},
    TimeType: {8: "<i8"},
    FloatType: {4: "<f4"},
    DoubleType: {4: "<f4", 8: "<f8"},
    **{
        promoted: {4: "<i4", 8: "<i8"}
        for promoted in (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)
    },
}
"""For types with numeric bounds: the possible widths, and the number type of each. Narrow bounds were written before a
promotion."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundColumn:
    """The lower or the upper bounds of one column in n files."""

    values: npt.NDArray[Any] | pa.LargeBinaryArray
    """Arbitrary for unknown bounds."""
    is_known: Flags
    is_odd: Flags
    """True if the bytes are not a value of the type."""


def bound_column(stored: pa.BinaryArray, column_type: IcebergType, *, is_upper: bool) -> BoundColumn | None:
    """The bounds in comparable form; None for a type whose bounds are not ordered here. NaN is not a bound."""
    if type(column_type) in _WIDTHS:
        return _numbers(stored, column_type)
    is_known = np.asarray(stored.is_valid())
    nothing = np.zeros(len(stored), np.bool_)
    if isinstance(column_type, (StringType, BinaryType, FixedType)):
        return BoundColumn(stored.cast(pa.large_binary()).fill_null(b""), is_known, nothing)
    if isinstance(column_type, DecimalType):
        return _decimals(stored, is_known)
    if isinstance(column_type, UUIDType):
        return _uuids(stored, is_known, is_upper=is_upper)
    return None


def comparable_literal(value: Any, column_type: IcebergType) -> Any:
    """A literal of a filter in the form of its column's bounds."""
    if isinstance(column_type, StringType):
        return value.encode(errors="surrogatepass")
    if isinstance(column_type, DecimalType):
        return _decimal_bytes(value, column_type)
    return value


def literal_array(literals: Sequence[Any], column_type: IcebergType) -> npt.NDArray[Any] | pa.LargeBinaryArray:
    """Many literals in the form of the bounds. Raises OverflowError for a number that this form cannot hold."""
    if type(column_type) not in _WIDTHS:
        return pa.array(literals, pa.large_binary())
    return np.array(literals, np.float64 if isinstance(column_type, (FloatType, DoubleType)) else np.int64)


def _numbers(stored: pa.BinaryArray, column_type: IcebergType) -> BoundColumn:
    is_known = np.asarray(stored.is_valid())
    lengths = np.asarray(pc.binary_length(stored).fill_null(0))
    is_float = isinstance(column_type, (FloatType, DoubleType))
    values = np.zeros(len(stored), np.float64 if is_float else np.int64)
    is_read = ~is_known
    for width, dtype in _WIDTHS[type(column_type)].items():
        here = np.flatnonzero(is_known & (lengths == width))
        if len(here) == 0:
            continue
        numbers = _matrix(stored, here, width).view(dtype).ravel()
        factor: int = DATE_PROMOTIONS.get(type(column_type), 1) if width == 4 else 1  # type: ignore[call-overload]
        is_read[here] = True
        if factor != 1:
            # A distant date has no timestamp in 64 bits; Python's numbers can hold it.
            is_read[here] = np.abs(numbers.astype(np.int64)) <= _INT64_MAX // factor
            numbers = numbers.astype(np.int64) * factor
        values[here] = numbers
    if isinstance(column_type, BooleanType):
        values = np.minimum(values, 1)
    is_odd = ~is_read
    if is_float:
        is_known = is_known & ~np.isnan(values)
    return BoundColumn(values, is_known, is_odd)


def _matrix(stored: pa.BinaryArray, rows: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """The bytes of values of one length, one row for each value."""
    chosen = stored if len(rows) == len(stored) else stored.take(pa.array(rows))
    fixed = chosen.cast(pa.binary(width))
    data = np.frombuffer(fixed.buffers()[1], np.uint8)
    matrix: npt.NDArray[np.uint8] = data[fixed.offset * width : (fixed.offset + len(fixed)) * width]
    return np.ascontiguousarray(matrix).reshape(len(rows), width)


def _decimals(stored: pa.BinaryArray, is_known: Flags) -> BoundColumn:
    lengths = np.asarray(pc.binary_length(stored).fill_null(0))
    fits = is_known & (lengths >= 1) & (lengths <= _DECIMAL_BYTES)
    padded = np.zeros((len(stored), _DECIMAL_BYTES), np.uint8)
    for width in np.unique(lengths[fits]).tolist():
        here = np.flatnonzero(fits & (lengths == width))
        unscaled = _matrix(stored, here, width)
        padded[here] = np.where(unscaled[:, :1] > 0x7F, np.uint8(0xFF), np.uint8(0))
        padded[here, _DECIMAL_BYTES - width :] = unscaled
    padded[:, 0] ^= 0x80
    return BoundColumn(_rows(padded), is_known, is_known & ~fits)


def _uuids(stored: pa.BinaryArray, is_known: Flags, *, is_upper: bool) -> BoundColumn:
    """The array form of `uuid_bound`: only one half is trusted, and only on one side."""
    fits = is_known & (np.asarray(pc.binary_length(stored).fill_null(0)) == 16)
    values = np.zeros((len(stored), 16), np.uint8)
    here = np.flatnonzero(fits)
    if len(here):
        values[here] = _matrix(stored, here, 16)
    values[:, 8:] = 0xFF if is_upper else 0
    is_trusted = (values[:, 0] >= 0x80) == is_upper
    return BoundColumn(_rows(values), fits & is_trusted, is_known & ~fits)


def _rows(matrix: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    count, width = matrix.shape
    offsets = np.arange(count + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(
        pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))]
    )


def _decimal_bytes(value: Decimal, column_type: DecimalType) -> bytes:
    unscaled = Fraction(value) * 10**column_type.scale
    assert unscaled.denominator == 1, "literals of filters are converted to the scale of their column"
    biased: int = unscaled.numerator + (1 << 127)
    return biased.to_bytes(_DECIMAL_BYTES, "big")
