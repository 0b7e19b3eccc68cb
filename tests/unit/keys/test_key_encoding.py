"""The bytes of encoded keys, which stored files depend on."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
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

from tableformat.errors import InvalidKeyError
from tableformat.keys.encoding import encode_rows, encode_values


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
def test_one_column(value: Any, key_type: PrimitiveType, encoded: str) -> None:
    """RD-4: the payload of each family."""
    assert encode_values((value,), [key_type]).hex() == encoded


def test_columns_follow_each_other_and_fewer_values_are_a_prefix() -> None:
    """RD-5."""
    types = [StringType(), LongType()]
    assert encode_values(("a", 0), types).hex() == "02610001" + "028000000000000000"
    assert encode_values(("a", 0), types).startswith(encode_values(("a",), types))
    assert encode_values((), types) == b""


def test_a_string_that_begins_with_another_is_no_key_that_begins_with_it() -> None:
    """RD-5: the terminator distinguishes ("a",) from ("ab",)."""
    types = [StringType(), LongType()]
    assert not encode_values(("ab", 0), types).startswith(encode_values(("a",), types))


def test_sliced_columns_are_read_from_their_own_rows() -> None:
    """RD-4: offsets into shared buffers, zero bytes outside the slice."""
    texts = pa.array(["\0", "b", "c\0", "\0"]).slice(1, 2)
    numbers = pa.array([9, 1, None, 9]).slice(1, 2)
    fixed = pa.array([b"xx", b"aa", b"bb", b"yy"], pa.binary(2)).slice(1, 2)
    types = [StringType(), LongType(), FixedType(2)]
    expected = [encode_values(("b", 1, b"aa"), types), encode_values(("c\0", None, b"bb"), types)]
    assert encode_rows([texts, numbers, fixed], types).to_pylist() == expected


def test_more_values_than_columns_are_refused() -> None:
    with pytest.raises(InvalidKeyError, match="2 values given for a key of 1 columns"):
        encode_values((1, 2), [LongType()])
