"""Conversion of bounds to and from their binary form, and truncation of long bounds."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
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
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import CorruptFileError, InvalidArgumentError
from tableformat.metadata.column_bounds import from_bound, to_bound, truncate_lower, truncate_upper

ONE_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("value", "iceberg_type", "bound"),
    [
        (True, BooleanType(), b"\x01"),
        (-2, IntegerType(), b"\xfe\xff\xff\xff"),
        (1, LongType(), b"\x01" + bytes(7)),
        (-0.0, FloatType(), b"\x00\x00\x00\x80"),
        (1.0, DoubleType(), struct.pack("<d", 1.0)),
        (20_000, DateType(), struct.pack("<i", 20_000)),
        (5, TimeType(), struct.pack("<q", 5)),
        (-1, TimestampType(), b"\xff" * 8),
        (7, TimestamptzType(), struct.pack("<q", 7)),
        (7, TimestampNanoType(), struct.pack("<q", 7)),
        ("é", StringType(), b"\xc3\xa9"),
        ("", StringType(), b""),
        (b"\x00\xff\x00", BinaryType(), b"\x00\xff\x00"),
        (b"abc", FixedType(3), b"abc"),
        (ONE_UUID, UUIDType(), ONE_UUID.bytes),
        (Decimal("14.20"), DecimalType(9, 2), b"\x05\x8c"),
        (Decimal("-1.28"), DecimalType(9, 2), b"\x80"),
        (Decimal("99999999999999999999999999999999999999"), DecimalType(38, 0), (10**38 - 1).to_bytes(16, "big")),
    ],
)
def test_bounds_of_every_type_follow_the_specification(value: Any, iceberg_type: PrimitiveType, bound: bytes) -> None:
    assert to_bound(value, iceberg_type) == bound
    assert from_bound(bound, iceberg_type) == value


def test_bounds_written_before_promotion_are_decoded() -> None:
    assert from_bound(struct.pack("<i", -5), LongType()) == -5
    assert from_bound(struct.pack("<f", 0.5), DoubleType()) == 0.5
    assert from_bound(struct.pack("<i", 1), TimestampType()) == 86_400_000_000
    assert from_bound(struct.pack("<i", -1), TimestampNanoType()) == -86_400_000_000_000


def test_decimals_are_rescaled_but_never_rounded() -> None:
    assert to_bound(Decimal("1.5"), DecimalType(9, 2)) == b"\x00\x96"
    assert to_bound(3, DecimalType(9, 2)) == b"\x01\x2c"
    with pytest.raises(InvalidArgumentError, match=r"1\.005"):
        to_bound(Decimal("1.005"), DecimalType(9, 2))


@pytest.mark.parametrize(
    ("bound", "iceberg_type"), [(b"\x01", IntegerType()), (b"\xff", StringType()), (b"abc", UUIDType())]
)
def test_damaged_bound_error_names_the_file(bound: bytes, iceberg_type: PrimitiveType) -> None:
    with pytest.raises(CorruptFileError, match=r"data/1\.parquet"):
        from_bound(bound, iceberg_type, location="data/1.parquet")


def test_truncated_upper_bound_is_rounded_up() -> None:
    assert truncate_upper("abcd", 3) == "abd"
    assert truncate_upper("ab\U0010ffffd", 3) == "ac"
    assert truncate_upper("\U0010ffff" * 4, 3) is None
    assert truncate_upper("a\ud7ffb", 2) == "a\ue000"
    assert truncate_upper(b"a\xff\xffb", 3) == b"b"
    assert truncate_upper(b"\xff\xff\xff\xff", 3) is None
    assert truncate_upper("abc", 3) == "abc"


@given(st.text(), st.integers(1, 5))
def test_truncated_bounds_enclose_the_value(value: str, width: int) -> None:
    upper = truncate_upper(value, width)
    assert truncate_lower(value, width) <= value
    assert upper is None or (value <= upper and len(upper) <= width and upper.encode().decode() == upper)
