"""Metrics from Parquet footers."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.metadata.column_bounds import from_bound
from tableformat.parquet.parquet_metrics import Metrics, data_file_metrics

NAN = float("nan")


def with_id(name: str, arrow_type: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, arrow_type, metadata={"PARQUET:field_id": str(field_id)})


def footer(table: pa.Table, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata


def one_column(values: list[Any], arrow_type: pa.DataType, iceberg_type: PrimitiveType, **options: Any) -> Metrics:
    """Metrics of a file with one column of field id 1, one row group for each two rows."""
    table = pa.table([pa.array(values, arrow_type)], schema=pa.schema([with_id("c", arrow_type, 1)]))
    schema = Schema(NestedField(1, "c", iceberg_type))
    return data_file_metrics(footer(table, row_group_size=2), schema, **options)


@pytest.mark.parametrize(
    ("values", "arrow_type", "iceberg_type", "lower", "upper"),
    [
        ([3, None, -1], pa.int32(), IntegerType(), -1, 3),
        ([3, None, -1], pa.int32(), LongType(), -1, 3),
        ([True, False, None], pa.bool_(), BooleanType(), False, True),
        ([1.5, -0.5], pa.float32(), FloatType(), -0.5, 1.5),
        ([1.5, -0.5], pa.float32(), DoubleType(), -0.5, 1.5),
        ([10, 20, None], pa.date32(), DateType(), 10, 20),
        ([10, 20], pa.time64("us"), TimeType(), 10, 20),
        ([10, 20], pa.timestamp("us"), TimestampType(), 10, 20),
        ([-1, 20], pa.timestamp("ms", "UTC"), TimestamptzType(), -1000, 20_000),
        ([-1, 1001], pa.timestamp("ns"), TimestampType(), -1, 2),
        ([10, 20], pa.timestamp("ns"), TimestampNanoType(), 10, 20),
        ([10, 20], pa.timestamp("us"), TimestampNanoType(), 10_000, 20_000),
        (["b", "é", None], pa.string(), StringType(), "b", "é"),
        ([b"\xff\x00", b"\x00"], pa.binary(), BinaryType(), b"\x00", b"\xff\x00"),
        ([b"ab", b"\xffb"], pa.binary(2), FixedType(2), b"ab", b"\xffb"),
        ([bytes(16), b"\xff" * 16], pa.uuid(), UUIDType(), UUID(int=0), UUID(int=2**128 - 1)),
        ([Decimal("1.20"), Decimal("-3")], pa.decimal128(9, 2), DecimalType(9, 2), Decimal("-3.00"), Decimal("1.20")),
        ([Decimal("1.20"), None], pa.decimal128(38, 2), DecimalType(38, 2), Decimal("1.20"), Decimal("1.20")),
    ],
)
def test_bounds_of_every_type_are_minimum_and_maximum(
    values: list[Any], arrow_type: pa.DataType, iceberg_type: PrimitiveType, lower: Any, upper: Any
) -> None:
    metrics = one_column(values, arrow_type, iceberg_type)
    assert from_bound(metrics.lower_bounds[1], iceberg_type) == lower
    assert from_bound(metrics.upper_bounds[1], iceberg_type) == upper
    assert metrics.record_count == metrics.value_counts[1] == len(values)
    assert metrics.null_value_counts == {1: values.count(None)}


def test_decimals_stored_as_integers_have_bounds_too() -> None:
    table = pa.table(
        [pa.array([Decimal("1.20"), Decimal("-3.00")], pa.decimal128(9, 2))],
        schema=pa.schema([with_id("c", pa.decimal128(9, 2), 1)]),
    )
    metadata = footer(table, store_decimal_as_integer=True)
    metrics = data_file_metrics(metadata, Schema(NestedField(1, "c", DecimalType(9, 2))))
    assert from_bound(metrics.lower_bounds[1], DecimalType(9, 2)) == Decimal("-3.00")


def test_truncated_bounds_enclose_all_values() -> None:
    """FM-8."""
    strings = one_column(["a" * 20, "b" * 20], pa.string(), StringType())
    assert strings.lower_bounds == {1: b"a" * 16}
    assert strings.upper_bounds == {1: b"b" * 15 + b"c"}
    binaries = one_column([b"\x00" * 20, b"\xff" * 20], pa.binary(), BinaryType())
    assert binaries.lower_bounds == {1: bytes(16)}
    assert binaries.upper_bounds == {}, "nothing of 16 bytes lies above"
    whole = one_column(["a" * 20], pa.string(), StringType(), bound_width=None)
    assert whole.lower_bounds == whole.upper_bounds == {1: b"a" * 20}


def test_all_null_and_missing_row_group_statistics() -> None:
    assert one_column([None, None, "a", "b"], pa.string(), StringType()).upper_bounds == {1: b"b"}
    assert one_column([None, None], pa.string(), StringType()).upper_bounds == {}
    too_long_for_arrow = one_column(["a" * 5_000, "b", "c"], pa.string(), StringType())
    assert (too_long_for_arrow.lower_bounds, too_long_for_arrow.upper_bounds) == ({}, {})
    assert too_long_for_arrow.null_value_counts == {1: 0}


def test_nan_is_excluded_from_bounds_and_counted() -> None:
    metrics = one_column([NAN, 1.0, NAN, NAN], pa.float64(), DoubleType(), nan_value_counts={1: 3})
    assert metrics.nan_value_counts == {1: 3}
    assert metrics.lower_bounds.get(1) in (None, metrics.upper_bounds.get(1))
    uncounted = one_column([1.0], pa.float64(), DoubleType())
    assert uncounted.nan_value_counts is None


def test_zero_bounds_cover_both_zeros() -> None:
    metrics = one_column([0.0, -0.0], pa.float64(), DoubleType())
    assert str(from_bound(metrics.lower_bounds[1], DoubleType())) == "-0.0"
    assert str(from_bound(metrics.upper_bounds[1], DoubleType())) == "0.0"


def test_nested_columns_have_metrics_but_list_elements_only_sizes() -> None:
    inner = pa.struct([with_id("x", pa.int64(), 3), with_id("tags", pa.list_(with_id("element", pa.string(), 5)), 4)])
    mapping = pa.map_(with_id("key", pa.string(), 7).with_nullable(False), with_id("value", pa.int32(), 8))
    table = pa.table(
        [
            pa.array([{"x": 5, "tags": ["a"]}, None, {"x": None, "tags": []}], inner),
            pa.array([[("k", 1)], [], None], mapping),
            pa.array([1, 2, 3]),
        ],
        schema=pa.schema([with_id("s", inner, 2), with_id("m", mapping, 6), pa.field("no_id", pa.int64())]),
    )
    schema = Schema(
        NestedField(
            2,
            "s",
            StructType(NestedField(3, "renamed", LongType()), NestedField(4, "tags", ListType(5, StringType()))),
        ),
        NestedField(6, "m", MapType(7, StringType(), 8, IntegerType())),
    )
    metrics = data_file_metrics(footer(table), schema)
    assert set(metrics.column_sizes) == {3, 5, 7, 8}
    assert metrics.value_counts == {3: 3}
    assert metrics.null_value_counts == {3: 2}
    assert set(metrics.lower_bounds) == {3}
