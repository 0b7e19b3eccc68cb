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
    StringType,
    TimestampType,
    UUIDType,
)

from tableformat.deletes.matching.comparable_values import comparable


def chunked(*values: object, arrow_type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, arrow_type)])


def test_zeros_are_equal_and_all_nans_are_equal() -> None:
    """DA-5"""
    other_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
    values = pa.chunked_array([pa.array(np.array([0.0, -0.0, np.nan, other_nan, 1.5]))])
    bits = comparable(values, DoubleType()).to_pylist()
    assert bits[0] == bits[1]
    assert bits[2] == bits[3]
    assert len(set(bits)) == 3


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


def test_uuids_are_compared_as_bytes() -> None:
    raw = bytes(range(16))
    extension = pa.chunked_array([pa.ExtensionArray.from_storage(pa.uuid(), pa.array([raw], pa.binary(16)))])
    assert comparable(extension, UUIDType()).to_pylist() == [raw]
    assert comparable(chunked(raw, arrow_type=pa.binary(16)), UUIDType()).to_pylist() == [raw]
