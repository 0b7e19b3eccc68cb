"""Converts column bounds of manifests (Iceberg's single-value binary form) to encoded key columns (RD-4).

The conversion works on bytes, one value at a time: planning handles a few bounds of each of thousands of files, and
making Python values of them would cost more than everything else. Source: Iceberg table specification, "Binary
single-value serialization".
"""

from __future__ import annotations

import math
import struct
from typing import Final

from pyiceberg.types import (
    DateType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)

from tableformat.keys.encoding import ESCAPED_ZERO, TERMINATOR, VALUE_MARKER
from tableformat.keys.families import KeyFamily, family_of, fixed_width_bytes

_INT64_OFFSET: Final = 1 << 63
_INT128_OFFSET: Final = 1 << 127
_UINT64_MAX: Final = (1 << 64) - 1
_MICROS_PER_DAY: Final = 86_400_000_000
_UNITS_PER_DAY: Final = {
    TimestampType: _MICROS_PER_DAY,
    TimestamptzType: _MICROS_PER_DAY,
    TimestampNanoType: _MICROS_PER_DAY * 1000,
    TimestamptzNanoType: _MICROS_PER_DAY * 1000,
}


class MalformedBoundError(ValueError):
    """Bytes that are not a value of the column's type or of a type that promotes to it."""


def encode_bound(bound: bytes, key_type: PrimitiveType, *, is_upper: bool) -> bytes | None:  # noqa: PLR0911 (one a family)
    """RD-4: marker and payload of a column bound; None if it bounds nothing (NaN, a date outside the range of
    timestamps)."""
    match family_of(key_type):
        case KeyFamily.VARIABLE_BYTES:
            return VALUE_MARKER + bound.replace(b"\x00", ESCAPED_ZERO) + TERMINATOR
        case KeyFamily.INTEGER:
            number = _integer(bound, key_type)
            if not -_INT64_OFFSET <= number < _INT64_OFFSET:
                return None
            return VALUE_MARKER + (number + _INT64_OFFSET).to_bytes(8, "big")
        case KeyFamily.BOOLEAN:
            _check_length(bound, (1,), key_type)
            return VALUE_MARKER + (b"\x00" if bound == b"\x00" else b"\x01")
        case KeyFamily.FLOAT:
            return _float(bound, key_type)
        case KeyFamily.DECIMAL:
            _check_length(bound, range(1, 17), key_type)
            return VALUE_MARKER + (int.from_bytes(bound, "big", signed=True) + _INT128_OFFSET).to_bytes(16, "big")
        case KeyFamily.FIXED_BYTES:
            width = fixed_width_bytes(key_type)
            if len(bound) > width:
                raise MalformedBoundError(f"{len(bound)} bytes for {key_type}")
            return VALUE_MARKER + bound.ljust(width, b"\xff" if is_upper else b"\x00")


def uuid_bound(bound: bytes, *, is_upper: bool) -> bytes | None:
    """The bound of a UUID column of several row groups, as far as it is valid in the order of bytes; None if it proves
    nothing.

    Some writers merge the bounds of row groups in signed order. A first byte below 80 is the smallest in both orders
    only if there is no negative UUID, which would be the signed minimum. Even then the lower half may be wrong. The
    reverse holds for upper bounds: they are trusted if the first byte is 80 or more.
    """
    if (bound[0] >= 0x80) != is_upper:
        return None
    return bound[:8] + (b"\xff" if is_upper else b"\x00") * 8


def _integer(bound: bytes, key_type: PrimitiveType) -> int:
    _check_length(bound, (4,) if isinstance(key_type, DateType) else (4, 8), key_type)
    number = int.from_bytes(bound, "little", signed=True)
    return number * _UNITS_PER_DAY.get(type(key_type), 1) if len(bound) == 4 else number


def _float(bound: bytes, key_type: PrimitiveType) -> bytes | None:
    _check_length(bound, (4, 8), key_type)
    (number,) = struct.unpack("<f" if len(bound) == 4 else "<d", bound)
    if math.isnan(number):
        return None
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")
    ordered = bits ^ _UINT64_MAX if bits & _INT64_OFFSET else bits | _INT64_OFFSET
    return VALUE_MARKER + ordered.to_bytes(8, "big")


def _check_length(bound: bytes, allowed: tuple[int, ...] | range, key_type: PrimitiveType) -> None:
    if len(bound) not in allowed:
        raise MalformedBoundError(f"{len(bound)} bytes for {key_type}")
