"""The bytes of encoded keys, which stored files depend on."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
)

from tableformat.keys.encoding import encode_values


@pytest.mark.parametrize(
    ("value", "key_type", "encoded"),
    [
        (None, LongType(), "01"),
        (False, BooleanType(), "0200"),
        (0, LongType(), "028000000000000000"),
        (-1, IntegerType(), "027fffffffffffffff"),
        (dt.date(1970, 1, 2), DateType(), "028000000000000001"),
        (dt.datetime(1970, 1, 1, 0, 0, 1), TimestampType(), "0280000000000f4240"),
        (0.0, DoubleType(), "028000000000000000"),
        (-0.0, DoubleType(), "028000000000000000"),
        (float("inf"), DoubleType(), "02fff0000000000000"),
        (float("nan"), DoubleType(), "02ffffffffffffffff"),
        (Decimal("-0.01"), DecimalType(9, 2), "027fffffffffffffffffffffffffffffff"),
        ("", StringType(), "020001"),
        ("a\0", StringType(), "026100ff0001"),
        (b"\0\xff", BinaryType(), "0200ffff0001"),
        (b"\0\1", FixedType(2), "020001"),
    ],
)
def test_encoding_of_each_type(value: Any, key_type: PrimitiveType, encoded: str) -> None:
    """RD-4: the payload of each family."""
    assert encode_values((value,), [key_type]).hex() == encoded
