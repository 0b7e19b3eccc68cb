"""Columns in a form in which equal values are equal bytes."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    UUIDType,
)

from tableformat.deletes.matching.comparable_values import comparable
from tableformat.keys.families import arrow_type_of


def chunked(*values: object, arrow_type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, arrow_type)])


def test_both_zeros_are_one_value_and_every_nan_is_one_value() -> None:
    """DA-5"""
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    values = pa.chunked_array([pa.array(np.array([0.0, -0.0, np.nan, other_nan, 1.5]))])
    bits = comparable(values, DoubleType()).to_pylist()
    assert bits[0] == bits[1]
    assert bits[2] == bits[3]
    assert len(set(bits)) == 3


def test_a_null_float_stays_null() -> None:
    """DA-4"""
    assert comparable(chunked(None, 0.0, arrow_type=pa.float32()), DoubleType()).to_pylist() == [None, 0]


@pytest.mark.parametrize(
    ("narrow", "wide", "value", "expected"),
    [
        (pa.int32(), LongType(), -7, -7),
        (pa.decimal128(9, 2), DecimalType(18, 2), Decimal("-1.25"), Decimal("-1.25")),
        (pa.date32(), TimestampType(), dt.date(2020, 1, 2), dt.datetime(2020, 1, 2)),
        (pa.large_string(), StringType(), "é\0", "é\0"),
    ],
)
def test_promoted_columns_are_compared_in_the_wider_type(narrow, wide, value, expected) -> None:
    """DA-6"""
    assert comparable(chunked(value, None, arrow_type=narrow), wide).to_pylist() == [expected, None]


def test_floats_are_compared_as_doubles() -> None:
    """DA-6: float promoted to double keeps its value."""
    narrow = comparable(chunked(0.1, arrow_type=pa.float32()), DoubleType())
    assert narrow.equals(comparable(chunked(float(np.float32(0.1)), arrow_type=pa.float64()), DoubleType()))


def test_uuids_are_compared_as_bytes_whether_or_not_arrow_knows_them() -> None:
    raw = bytes(range(16))
    extension = pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), pa.array([raw], pa.binary(16)))])
    assert comparable(extension, UUIDType()).to_pylist() == [raw]
    assert comparable(chunked(raw, arrow_type=pa.binary(16)), UUIDType()).to_pylist() == [raw]


def test_a_column_of_another_kind_is_an_error() -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        comparable(chunked("x", arrow_type=pa.string()), LongType())


@pytest.mark.parametrize("wide", [TimestampType(), LongType(), StringType(), UUIDType(), DoubleType()], ids=str)
def test_columns_without_chunks(wide: PrimitiveType) -> None:
    """As from a file without row groups."""
    nothing = pa.chunked_array([], arrow_type_of(wide))
    assert comparable(nothing, wide).to_pylist() == []
