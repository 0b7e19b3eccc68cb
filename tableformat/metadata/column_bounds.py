"""Column bounds: conversion from and to Iceberg's single-value binary form, and truncation of long values.

Source: Iceberg table specification, "Binary single-value serialization". PyIceberg encodes the values. This module adds
the rules that PyIceberg leaves to callers: exact decimals, UUIDs as values, and bounds from before a promotion.
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, TypeVar
from uuid import UUID

from pyiceberg import conversions
from pyiceberg.types import (
    DateType,
    DecimalType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UUIDType,
)

from tableformat.errors import CorruptFileError, InvalidArgumentError

BOUND_WIDTH: Final = 16
"""The number of code points of a string, or bytes of a binary, in a bound: Iceberg's default metrics mode
`truncate(16)`."""

_EXACT: Final = Context(prec=60, traps=[Inexact, InvalidOperation])
_Text = TypeVar("_Text", str, bytes)
_LAST_CODE_POINT: Final = 0x10FFFF
_FIRST_SURROGATE: Final = 0xD800
_AFTER_SURROGATES: Final = 0xE000
_MICROS_PER_DAY: Final = 86_400_000_000
DATE_PROMOTIONS: Final = {
    TimestampType: _MICROS_PER_DAY,
    TimestamptzType: _MICROS_PER_DAY,
    TimestampNanoType: _MICROS_PER_DAY * 1000,
    TimestamptzNanoType: _MICROS_PER_DAY * 1000,
}


def to_bound(value: Any, iceberg_type: PrimitiveType) -> bytes:
    """The single-value binary form of a value, given in Iceberg's internal representation or as a Python value.

    Raises InvalidArgumentError for a value that the type cannot hold, including a decimal that would be rounded.
    """
    try:
        if isinstance(iceberg_type, DecimalType):
            value = exact_decimal(value, iceberg_type)
        return conversions.to_bytes(iceberg_type, value)
    except (struct.error, OverflowError, ValueError, TypeError, AttributeError, InvalidOperation, Inexact) as error:
        raise InvalidArgumentError(f"{value!r} is not a value of type {iceberg_type}.") from error


def from_bound(bound: bytes, iceberg_type: PrimitiveType, *, location: str = "column bound") -> Any:
    """The value in Iceberg's internal representation: days, microseconds, Decimal, UUID, bytes.

    A bound has the width of the type with which the file was written: a four-byte bound of a long, double or timestamp
    column is an int, float or date from before a promotion. Raises CorruptFileError, which names `location`.
    """
    factor = DATE_PROMOTIONS.get(type(iceberg_type))
    try:
        if factor is not None and len(bound) == 4:
            return conversions.from_bytes(DateType(), bound) * factor
        value = conversions.from_bytes(iceberg_type, bound)
        return UUID(bytes=bytes(bound)) if isinstance(iceberg_type, UUIDType) else value
    except (struct.error, ValueError, TypeError) as error:
        raise CorruptFileError(
            location, f"{bound.hex()} is not a bound of a {iceberg_type} column ({error})."
        ) from error


def exact_decimal(value: Any, decimal_type: DecimalType) -> Decimal:
    """The value with the type's scale. Raises decimal.Inexact if digits would be lost."""
    return Decimal(value).quantize(Decimal((0, (1,), -decimal_type.scale)), context=_EXACT)


def truncate_lower(value: _Text, width: int = BOUND_WIDTH) -> _Text:
    """The first `width` code points or bytes, which are never greater than the value."""
    return value[:width]


def truncate_upper(value: _Text, width: int = BOUND_WIDTH) -> _Text | None:
    """The smallest value of at most `width` code points or bytes that is not less than `value`; None if there is
    none."""
    if len(value) <= width:
        return value
    if isinstance(value, str):
        return _increment_string(value[:width])
    return _increment_bytes(value[:width])


def _increment_string(prefix: str) -> str | None:
    """The smallest string, not longer than `prefix`, that is greater than all strings with this prefix."""
    for position in reversed(range(len(prefix))):
        code_point = ord(prefix[position])
        if code_point < _LAST_CODE_POINT:
            # Surrogates are not characters: UTF-8 cannot encode them.
            successor = _AFTER_SURROGATES if code_point + 1 == _FIRST_SURROGATE else code_point + 1
            return prefix[:position] + chr(successor)
    return None


def _increment_bytes(prefix: bytes) -> bytes | None:
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
