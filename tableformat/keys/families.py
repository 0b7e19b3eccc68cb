"""Type families of key columns. The types of a family share one encoding, so stored bounds stay valid after a
promotion.

Rule RD-4 (`specs/range-deletes.md`). Only Iceberg's primitive types can be part of a key. Unknown, geometry and
geography have no order.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import pyarrow as pa
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

from tableformat.errors import InvalidKeyError


class KeyFamily(Enum):
    """Encodings of values as bytes with the same order (RD-4)."""

    BOOLEAN = "boolean"
    """One byte, false before true."""
    INTEGER = "integer"
    """8 bytes, big endian, sign flipped: int, long, date (days), time (µs), timestamps (µs or ns)."""
    FLOAT = "float"
    """8 bytes of the double. -0.0 equals 0.0; all NaNs are equal and greater than infinity."""
    DECIMAL = "decimal"
    """16 bytes of the unscaled value, big endian, sign flipped; the scale belongs to the column."""
    VARIABLE_BYTES = "variable-bytes"
    """string (UTF-8, hence code point order) and binary: 00 becomes 00 FF, the end is 00 01."""
    FIXED_BYTES = "fixed-bytes"
    """fixed and uuid: the bytes themselves, unsigned."""


_FAMILIES: Final[dict[type[IcebergType], KeyFamily]] = {
    BooleanType: KeyFamily.BOOLEAN,
    IntegerType: KeyFamily.INTEGER,
    LongType: KeyFamily.INTEGER,
    DateType: KeyFamily.INTEGER,
    TimeType: KeyFamily.INTEGER,
    TimestampType: KeyFamily.INTEGER,
    TimestamptzType: KeyFamily.INTEGER,
    TimestampNanoType: KeyFamily.INTEGER,
    TimestamptzNanoType: KeyFamily.INTEGER,
    FloatType: KeyFamily.FLOAT,
    DoubleType: KeyFamily.FLOAT,
    DecimalType: KeyFamily.DECIMAL,
    StringType: KeyFamily.VARIABLE_BYTES,
    BinaryType: KeyFamily.VARIABLE_BYTES,
    FixedType: KeyFamily.FIXED_BYTES,
    UUIDType: KeyFamily.FIXED_BYTES,
}

FAMILIES_WITH_EXACT_ORDER: Final = frozenset(KeyFamily) - {KeyFamily.FLOAT}
"""Floating-point values have NaN and two zeros."""

_ARROW_TYPES: Final[dict[type[IcebergType], pa.DataType]] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", tz="UTC"),
    TimestampNanoType: pa.timestamp("ns"),
    TimestamptzNanoType: pa.timestamp("ns", tz="UTC"),
    StringType: pa.large_string(),
    BinaryType: pa.large_binary(),
    UUIDType: pa.binary(16),
}

_PROMOTIONS: Final[dict[type[IcebergType], tuple[type[IcebergType], ...]]] = {
    IntegerType: (LongType,),
    FloatType: (DoubleType,),
    DateType: (TimestampType, TimestampNanoType),
}


def family_of(key_type: IcebergType) -> KeyFamily:
    """RD-4: the family of a primitive type. Raises InvalidKeyError for types without an order and for nested types."""
    family = _FAMILIES.get(type(key_type))
    if family is None:
        raise InvalidKeyError(
            f"a column of type {key_type} cannot be part of a key, because it has no order. Choose other columns."
        )
    return family


def family_of_type(kind: PrimitiveType) -> KeyFamily | None:
    """The family of a primitive type; None for a type without an order."""
    return _FAMILIES.get(type(kind))


def arrow_type_of(key_type: PrimitiveType) -> pa.DataType:
    """The Arrow type for key values of an Iceberg type. A UUID is 16 plain bytes."""
    if isinstance(key_type, DecimalType):
        return pa.decimal128(key_type.precision, key_type.scale)
    if isinstance(key_type, FixedType):
        return pa.binary(len(key_type))
    family_of(key_type)
    return _ARROW_TYPES[type(key_type)]


def fixed_width_bytes(key_type: PrimitiveType) -> int:
    """The length in bytes of a value of fixed(n) or UUID."""
    return len(key_type) if isinstance(key_type, FixedType) else 16


def can_promote(narrow: PrimitiveType, wide: PrimitiveType) -> bool:
    """Whether a schema may change one type to the other without changing values. A type promotes to itself."""
    if narrow == wide:
        return True
    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        return narrow.scale == wide.scale and narrow.precision <= wide.precision
    return type(wide) in _PROMOTIONS.get(type(narrow), ())
