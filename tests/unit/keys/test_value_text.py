"""Values on the command line and in JSON output."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.cli.json_values import json_rows, json_value
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.keys.value_text import parse_tuple, parse_value


def parsed(text: str, column_type: IcebergType) -> Any:
    return parse_value(text, "c", Schema(NestedField(1, "c", column_type)), where="db.t")


@pytest.mark.parametrize(
    ("column_type", "text", "value"),
    [
        (BooleanType(), "True", True),
        (IntegerType(), "-5", -5),
        (LongType(), "9223372036854775807", 2**63 - 1),
        (DoubleType(), "1e3", 1000.0),
        (DoubleType(), "-inf", -math.inf),
        (DecimalType(10, 2), "1.50", Decimal("1.50")),
        (DateType(), "2026-01-31", dt.date(2026, 1, 31)),
        (TimeType(), "12:30:00.5", dt.time(12, 30, 0, 500_000)),
        (TimestampType(), "2026-01-31T12:00:00", dt.datetime(2026, 1, 31, 12)),
        (TimestamptzType(), "2026-01-31T12:00Z", dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)),
        (StringType(), "", ""),
        (StringType(), " spaces = kept ", " spaces = kept "),
        (BinaryType(), "0x00ff", b"\x00\xff"),
        (FixedType(2), "00FF", b"\x00\xff"),
        (UUIDType(), "6ba7b810-9dad-11d1-80b4-00c04fd430c8", uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")),
        (LongType(), r"\N", None),
    ],
)
def test_value_text_is_parsed_by_column_type(column_type: IcebergType, text: str, value: Any) -> None:
    assert parsed(text, column_type) == value


@pytest.mark.parametrize(
    ("column_type", "text", "advice"),
    [
        (BooleanType(), "1", "write true or false."),
        (LongType(), "1.0", "write a whole number such as 42."),
        (DoubleType(), "1e999", "write a number such as 1.5."),
        (DecimalType(10, 2), "NaN", "write a number such as 1.5."),
        (DateType(), "31.1.2026", "write a date such as 2026-01-31."),
        (TimestampType(), "2026-01-31T12:00Z", "write a time without a zone such as 2026-01-31T12:00:00."),
        (TimestamptzType(), "2026-01-31T12:00", "write a time with its zone such as 2026-01-31T12:00:00+00:00."),
        (BinaryType(), "0xf", "write hexadecimal digits such as 00ff."),
        (UUIDType(), "6ba7", "write a UUID such as 6ba7b810-9dad-11d1-80b4-00c04fd430c8."),
    ],
)
def test_invalid_value_text_error_names_column_type_and_example(
    column_type: IcebergType, text: str, advice: str
) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        parsed(text, column_type)
    assert str(raised.value) == f"c={text}: column 'c' is {column_type}; {advice}"


def test_nested_and_unknown_columns() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be passed as text"):
        parsed("1", ListType(2, LongType(), element_required=False))
    with pytest.raises(UnknownColumnError):
        parse_value("1", "d", Schema(NestedField(1, "c", LongType())), where="db.t")


def test_multi_column_values_are_comma_separated_with_quotes() -> None:
    schema = Schema(NestedField(1, "a", StringType()), NestedField(2, "b", LongType()))
    assert parse_tuple('"x,y",3', ["a", "b"], schema, where="db.t") == ("x,y", 3)
    assert parse_tuple("x", ["a", "b"], schema, where="db.t") == ("x",)
    assert parse_tuple("x,y", ["a"], schema, where="db.t") == ("x,y",)
    with pytest.raises(InvalidArgumentError, match=r"has 3 values for the columns \(a, b\)"):
        parse_tuple("x,1,2", ["a", "b"], schema, where="db.t")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (0.1, 0.1),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (Decimal("12.50"), "12.50"),
        (dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), "2026-01-31T12:00:00+00:00"),
        (dt.time(12, 30), "12:30:00"),
        (b"\x00\xff", "00ff"),
        ({"a": [Decimal("1.0"), None]}, {"a": ["1.0", None]}),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_json_form_of_a_value(value: Any, told: Any) -> None:
    assert json_value(value) == told


def test_json_rows_with_maps_nanoseconds_and_out_of_range_times() -> None:
    batch = pa.record_batch(
        {
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "ns": pa.array([1], pa.timestamp("ns")),
            "far": pa.array([10**18], pa.timestamp("us")),
        }
    )
    assert json_rows(batch, ["m", "ns", "far"]) == [
        {"m": {"k": 1}, "ns": "1970-01-01T00:00:00", "far": "<value out of range: 1000000000000000000>"}
    ]
