"""Key values from callers keep their value or are rejected."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
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

from tableformat.errors import InvalidKeyError
from tableformat.keys.arrow_columns import array_of_values, as_key_array

NOON = dt.datetime(2026, 1, 2, 12)
SOME_UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("value", "key_type", "stored"),
    [
        (True, BooleanType(), True),
        (np.int64(5), IntegerType(), 5),
        (1, DoubleType(), 1.0),
        (Decimal("1.2"), DecimalType(5, 2), Decimal("1.20")),
        (7, DecimalType(5, 2), Decimal("7.00")),
        (dt.date(1969, 12, 31), DateType(), dt.date(1969, 12, 31)),
        (dt.time(1, 2, 3, 4), TimeType(), dt.time(1, 2, 3, 4)),
        (NOON, TimestampType(), NOON),
        (NOON.replace(tzinfo=dt.UTC), TimestamptzType(), NOON.replace(tzinfo=dt.UTC)),
        ("a\0", StringType(), "a\0"),
        (bytearray(b"\0"), BinaryType(), b"\0"),
        (b"abc", FixedType(3), b"abc"),
        (SOME_UUID, UUIDType(), SOME_UUID.bytes),
        (None, UUIDType(), None),
    ],
)
def test_key_values_are_stored_exactly(value: Any, key_type: PrimitiveType, stored: Any) -> None:
    assert array_of_values([value], key_type, name="k").to_pylist() == [stored]


@pytest.mark.parametrize(
    ("value", "key_type"),
    [
        (1, BooleanType()),
        (True, LongType()),
        (1.0, LongType()),
        (1 << 31, IntegerType()),
        ("5", LongType()),
        (1e300, FloatType()),
        (Decimal("1.234"), DecimalType(5, 2)),
        (1.5, DecimalType(5, 2)),
        (NOON, DateType()),
        ("2026-01-02", DateType()),
        (dt.date(2026, 1, 2), TimestampType()),
        (NOON.replace(tzinfo=dt.UTC), TimestampType()),
        (NOON, TimestamptzType()),
        (b"a", StringType()),
        ("\ud800", StringType()),
        ("a", BinaryType()),
        (b"ab", FixedType(3)),
        (str(SOME_UUID), UUIDType()),
    ],
)
def test_key_values_with_lossy_conversion_are_rejected(value: Any, key_type: PrimitiveType) -> None:
    with pytest.raises(InvalidKeyError):
        array_of_values([value], key_type, name="k")


@pytest.mark.parametrize(
    ("column", "key_type", "stored"),
    [
        (pa.array([1, None], pa.int32()), LongType(), [1, None]),
        (pa.array(["a"]).dictionary_encode(), StringType(), ["a"]),
        (pa.chunked_array([["a"], ["b"]]), StringType(), ["a", "b"]),
        (pa.array(["a"], pa.string_view()), StringType(), ["a"]),
        (pa.array([0], pa.date32()), DateType(), [dt.date(1970, 1, 1)]),
        (pa.array([SOME_UUID.bytes], pa.uuid()), UUIDType(), [SOME_UUID.bytes]),
        (pa.array([b"abc"]), FixedType(3), [b"abc"]),
        (pa.nulls(1), DecimalType(5, 2), [None]),
        (pa.array([Decimal("1.20")]), DecimalType(9, 2), [Decimal("1.20")]),
        (pa.array([NOON], pa.timestamp("us")), TimestampNanoType(), [NOON]),
    ],
)
def test_key_columns_are_converted_if_lossless(column: Any, key_type: PrimitiveType, stored: list[Any]) -> None:
    assert as_key_array(column, key_type, name="k").to_pylist() == stored


@pytest.mark.parametrize(
    ("column", "key_type"),
    [
        (pa.array(["5"]), LongType()),
        (pa.array([5]), StringType()),
        (pa.array([1.0]), LongType()),
        (pa.array([1 << 40]), IntegerType()),
        (pa.array([(1 << 53) + 1]), DoubleType()),
        (pa.array(["2026-01-02"]), DateType()),
        (pa.array([NOON], pa.timestamp("us")), TimestamptzType()),
        (pa.array([1], pa.timestamp("ns")), TimestampType()),
        (pa.array(["a"]), BinaryType()),
        (pa.array([b"ab"], pa.binary(2)), FixedType(3)),
    ],
)
def test_key_columns_with_lossy_conversion_are_rejected(column: pa.Array, key_type: PrimitiveType) -> None:
    with pytest.raises(InvalidKeyError):
        as_key_array(column, key_type, name="k")
