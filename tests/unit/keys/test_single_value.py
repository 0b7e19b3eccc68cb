"""Bounds in manifests as encoded keys."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    UUIDType,
)

from tableformat.keys.encoding import encode_values
from tableformat.keys.single_value import MalformedBoundError, encode_bound
from tableformat.metadata.column_bounds import to_bound


@pytest.mark.parametrize(
    ("value", "key_type"),
    [
        (True, BooleanType()),
        (-5, LongType()),
        (dt.date(1960, 2, 3), DateType()),
        (dt.datetime(1960, 2, 3, 4, 5, 6, 7), TimestampType()),
        (-1.5, DoubleType()),
        (-0.0, DoubleType()),
        (Decimal("-12345.67"), DecimalType(20, 2)),
        ("a\0b", StringType()),
        (b"abc", FixedType(3)),
        (bytes(range(16)), UUIDType()),
    ],
)
def test_bound_and_value_have_the_same_encoding(value: Any, key_type: PrimitiveType) -> None:
    """RD-4: one encoding, for values from rows and from manifests."""
    assert encode_bound(to_bound(value, key_type), key_type, is_upper=False) == encode_values((value,), [key_type])


@pytest.mark.parametrize(
    ("bound", "key_type", "value"),
    [
        (struct.pack("<i", -7), LongType(), -7),
        (struct.pack("<f", 0.5), DoubleType(), 0.5),
        (struct.pack("<i", -1), TimestampType(), dt.datetime(1969, 12, 31)),
        (b"\xff", DecimalType(38, 0), Decimal(-1)),
    ],
)
def test_bounds_written_before_promotion_are_read_by_length(bound: bytes, key_type: PrimitiveType, value: Any) -> None:
    """RD-4, RD-10."""
    assert encode_bound(bound, key_type, is_upper=True) == encode_values((value,), [key_type])


def test_date_beyond_nanosecond_range_is_not_a_bound() -> None:
    """RD-10."""
    assert encode_bound(struct.pack("<i", 2_000_000), TimestampNanoType(), is_upper=True) is None


def test_nan_is_not_a_bound() -> None:
    """RD-10."""
    assert encode_bound(struct.pack("<d", math.nan), DoubleType(), is_upper=False) is None


def test_truncated_fixed_bounds_are_padded_outwards() -> None:
    """RD-10: other writers cut fixed bounds like binary ones."""
    assert encode_bound(b"ab", FixedType(4), is_upper=False) == b"\x02ab\x00\x00"
    assert encode_bound(b"ab", FixedType(4), is_upper=True) == b"\x02ab\xff\xff"


@pytest.mark.parametrize(
    ("bound", "key_type"),
    [
        (b"abc", LongType()),
        (b"12345678", DateType()),
        (b"", DecimalType(9, 2)),
        (b"abc", FixedType(2)),
        (b"", BooleanType()),
    ],
)
def test_bound_of_wrong_length_is_malformed(bound: bytes, key_type: PrimitiveType) -> None:
    with pytest.raises(MalformedBoundError, match=f"{len(bound)} bytes for"):
        encode_bound(bound, key_type, is_upper=False)
