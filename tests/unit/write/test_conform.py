from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
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
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import InvalidArgumentError, RowsRefusedError, SchemaMismatchError, UnknownColumnError
from tableformat.write.rows.conform import ConformedRows, conform, table_arrow_schema

ONE = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def schema_of(kind: IcebergType, *, required: bool = False, name: str = "x") -> Schema:
    return Schema(NestedField(1, name, kind, required=required))


def conformed(array: pa.Array, kind: IcebergType, *, required: bool = False) -> tuple[list[Any], list[tuple[int, str]]]:
    """Values that fit, and (row, reason) of the others."""
    result = conform(pa.record_batch({"x": array}), schema_of(kind, required=required))
    assert result.batch.schema == table_arrow_schema(schema_of(kind, required=required))
    result.batch.validate(full=True)
    if result.refused is None:
        return result.batch.column(0).to_pylist(), []
    refused = result.refused
    return result.batch.column(0).to_pylist(), list(
        zip(refused.positions.tolist(), refused.reasons.to_pylist(), strict=True)
    )


@pytest.mark.parametrize(
    ("array", "kind", "expected"),
    [
        (pa.array([1, None], pa.int8()), LongType(), [1, None]),
        (pa.array([1], pa.uint32()), LongType(), [1]),
        (pa.array([2**31 - 1, -(2**31)]), IntegerType(), [2**31 - 1, -(2**31)]),
        (pa.array([1.5], pa.float32()), DoubleType(), [1.5]),
        (pa.array([0.5, float("inf"), None]), FloatType(), [0.5, float("inf"), None]),
        (pa.array([3], pa.int64()), DoubleType(), [3.0]),
        (pa.array(["a", None], pa.string()), StringType(), ["a", None]),
        (pa.array(["a"], pa.string_view()), StringType(), ["a"]),
        (pa.array(["a", None, "a"]).dictionary_encode(), StringType(), ["a", None, "a"]),
        (pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("s")), TimestampType(), [dt.datetime(2026, 1, 1)]),
        (pa.array([1000], pa.timestamp("ns")), TimestampType(), [dt.datetime(1970, 1, 1, 0, 0, 0, 1)]),
        (pa.array([86_400_000], pa.date64()), DateType(), [dt.date(1970, 1, 2)]),
        (pa.array([1], pa.time32("s")), TimeType(), [dt.time(0, 0, 1)]),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), DecimalType(9, 2), [Decimal("1.50")]),
        (pa.array([Decimal("1.50")], pa.decimal256(40, 2)), DecimalType(3, 1), [Decimal("1.5")]),
        (pa.array([7, -7]), DecimalType(4, 2), [Decimal("7.00"), Decimal("-7.00")]),
        (pa.array([None, None], pa.null()), StringType(), [None, None]),
        (pa.array([b"ab", None]), FixedType(2), [b"ab", None]),
        (pa.array([b"ab"], pa.binary(2)), BinaryType(), [b"ab"]),
        (pa.array([str(ONE), None, ONE.hex.upper()]), UUIDType(), [ONE, None, ONE]),
        (pa.array([ONE.bytes], pa.binary(16)), UUIDType(), [ONE]),
        (pa.array([ONE.bytes, None], pa.binary()), UUIDType(), [ONE, None]),
        (pa.array([ONE], pa.uuid()), UUIDType(), [ONE]),
        (pa.array([], pa.string()), UUIDType(), []),
        (pa.array([True, None]), BooleanType(), [True, None]),
    ],
)
def test_values_in_range_are_converted_exactly(array: pa.Array, kind: IcebergType, expected: list[Any]) -> None:
    assert conformed(array, kind) == (expected, [])


@pytest.mark.parametrize(
    ("array", "kind", "kept", "refused"),
    [
        (pa.array([1, 2**31, None]), IntegerType(), [1, None], [(1, "2147483648 does not fit int")]),
        (pa.array([2**63, 5], pa.uint64()), LongType(), [5], [(0, "9223372036854775808 does not fit long")]),
        (pa.array([1e300, 2.0]), FloatType(), [2.0], [(0, "1e+300 does not fit float")]),
        (pa.array([2**53 + 1, 1]), DoubleType(), [1.0], [(0, "9007199254740993 does not fit double")]),
        (
            pa.array([Decimal("1.55"), Decimal("1.50"), Decimal("99.90")], pa.decimal128(4, 2)),
            DecimalType(2, 1),
            [Decimal("1.5")],
            [(0, "1.55 does not fit decimal(2, 1) exactly"), (2, "99.90 does not fit decimal(2, 1) exactly")],
        ),
        (pa.array([100, 7]), DecimalType(3, 1), [Decimal("7.0")], [(0, "100.0 does not fit decimal(3, 1) exactly")]),
        (
            pa.array([1001, 2000], pa.timestamp("ns")),
            TimestampType(),
            [dt.datetime(1970, 1, 1, 0, 0, 0, 2)],
            [
                (
                    0,
                    "1970-01-01 00:00:00.000001001 has nanoseconds, which timestamp cannot store; round them to "
                    "microseconds, or use a column of type timestamp_ns in a table with format-version 3",
                )
            ],
        ),
        (pa.array([str(ONE), "no uuid"]), UUIDType(), [ONE], [(1, "no uuid is not a UUID")]),
        (pa.array([b"a", b"bc"]), FixedType(2), [b"bc"], [(0, "1 bytes long, but fixed[2] requires exactly 2")]),
    ],
)
def test_value_out_of_range_rejects_its_row_with_the_reason(
    array: pa.Array, kind: IcebergType, kept: list[Any], refused: list[tuple[int, str]]
) -> None:
    assert conformed(array, kind) == (kept, refused)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["1"]), LongType()),
        (pa.array([1]), StringType()),
        (pa.array([1.0]), LongType()),
        (pa.array([1.0]), DecimalType(4, 2)),
        (pa.array([True]), IntegerType()),
        (pa.array([b"a"]), StringType()),
        (pa.array(["a"]), BinaryType()),
        (pa.array([1], pa.timestamp("us", "UTC")), TimestampType()),
        (pa.array([1], pa.timestamp("us")), TimestamptzType()),
        (pa.array([1], pa.timestamp("us")), DateType()),
        (pa.array([b"abc"], pa.binary(3)), FixedType(2)),
        (pa.array([[1]]), LongType()),
        (pa.array([1]), ListType(2, LongType())),
    ],
)
def test_types_of_different_families_fail_the_whole_call(array: pa.Array, kind: IcebergType) -> None:
    with pytest.raises(SchemaMismatchError) as raised:
        conformed(array, kind)
    assert str(kind) in str(raised.value)
    assert str(array.type) in str(raised.value)


def test_invalid_utf8_text_is_rejected() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32).tobytes()), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(SchemaMismatchError):
        conformed(broken, StringType())


def test_unknown_column_error_suggests_the_nearest() -> None:
    with pytest.raises(UnknownColumnError):
        conform(pa.record_batch({"nme": ["a"]}), schema_of(StringType(), name="name"))


def test_duplicate_column_is_rejected() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(SchemaMismatchError):
        conform(batch, schema_of(LongType()))


def test_a_missing_required_column_fails_the_call_and_an_optional_one_is_null() -> None:
    schema = Schema(NestedField(1, "a", LongType(), required=True), NestedField(2, "b", StringType(), required=False))
    assert conform(pa.record_batch({"a": [1]}), schema).batch.to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(SchemaMismatchError):
        conform(pa.record_batch({"b": ["x"]}), schema)


def test_missing_column_uses_its_write_default() -> None:
    schema = Schema(
        NestedField(1, "a", LongType(), required=True),
        NestedField(2, "b", StringType(), required=True, write_default="none"),
    )
    assert conform(pa.record_batch({"a": [1, 2]}), schema).batch.column("b").to_pylist() == ["none", "none"]


def test_columns_are_matched_by_name_and_reordered() -> None:
    schema = Schema(NestedField(1, "a", LongType(), required=False), NestedField(2, "b", LongType(), required=False))
    assert conform(pa.record_batch({"b": [2], "a": [1]}), schema).batch.schema.names == ["a", "b"]


NESTED = Schema(
    NestedField(
        1,
        "person",
        StructType(
            NestedField(2, "name", StringType(), required=True),
            NestedField(3, "age", IntegerType(), required=False),
        ),
        required=False,
    ),
    NestedField(4, "tags", ListType(5, IntegerType(), element_required=True), required=False),
    NestedField(6, "scores", MapType(7, StringType(), 8, IntegerType(), value_required=True), required=False),
)


def nested_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema(
        [
            pa.field("person", pa.struct([("age", pa.int64()), ("name", pa.string())])),
            pa.field("tags", pa.list_(pa.int64())),
            pa.field("scores", pa.map_(pa.string(), pa.int64())),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema)


def test_nested_columns_are_conformed_inside() -> None:
    rows = [
        {"person": {"name": "A", "age": 1}, "tags": [1, 2], "scores": [("x", 1)]},
        {"person": None, "tags": None, "scores": None},
        {"person": {"name": "B", "age": None}, "tags": [], "scores": []},
    ]
    result = conform(nested_batch(rows), NESTED)
    assert result.refused is None
    assert result.batch.to_pylist() == rows
    result.batch.validate(full=True)
    assert conform(nested_batch(rows).slice(1), NESTED).batch.to_pylist() == rows[1:]


def test_nested_value_out_of_range_rejects_row_with_dotted_name() -> None:
    good = {"person": {"name": "A", "age": 1}, "tags": [1], "scores": [("x", 1)]}
    rows = [
        {**good, "person": {"name": None, "age": 1}},
        good,
        {**good, "person": {"name": "A", "age": 2**40}},
        {**good, "tags": [1, None, 2**40]},
        {**good, "scores": [("x", 1), ("y", None)]},
        {**good, "person": None},
    ]
    result = conform(nested_batch(rows), NESTED)
    assert result.refused is not None
    refused = result.refused
    columns, reasons = refused.columns.to_pylist(), refused.reasons.to_pylist()
    assert list(zip(refused.positions.tolist(), columns, reasons, strict=True)) == [
        (0, "person.name", "is null in a required column"),
        (2, "person.age", "1099511627776 does not fit int"),
        (3, "tags.element", "1099511627776 does not fit int"),
        (4, "scores.value", "is null in a required column"),
    ]
    assert result.batch.to_pylist() == [good, {**good, "person": None}]


PAIR = Schema(NestedField(1, "a", IntegerType(), required=True), NestedField(2, "b", IntegerType(), required=False))


def pairs(*rows: tuple[int | None, int | None]) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array([a for a, _ in rows]), "b": pa.array([b for _, b in rows])})


def reader(*batches: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batches[0].schema, list(batches))


def test_fail_mode_counts_all_rejected_rows() -> None:
    stream = reader(pairs((1, 1), (2, 2)), pairs((3, 2**40), (4, 4)), pairs((2**40, 5)))
    with pytest.raises(RowsRefusedError) as raised:
        list(ConformedRows(stream, PAIR))
    assert raised.value.refused.to_pylist() == [
        {"row_index": 2, "column": "b", "reason": "1099511627776 does not fit int"},
        {"row_index": 4, "column": "a", "reason": "1099511627776 does not fit int"},
    ]


def test_fail_mode_reports_a_bounded_number_of_rows() -> None:
    batch = pairs(*[(2**40, 1)] * 900)
    with pytest.raises(RowsRefusedError) as raised:
        list(ConformedRows(reader(batch, batch, batch), PAIR))
    assert raised.value.refused.column("row_index").to_pylist() == list(range(1000))


def test_rejection_error_keeps_its_class_through_arrow_reader() -> None:
    with pytest.raises(RowsRefusedError):
        ConformedRows(reader(pairs((2**40, 1))), PAIR).to_reader().read_all()


def test_divert_mode_keeps_rejected_rows_unchanged() -> None:
    rows = ConformedRows(reader(pairs((1, 1)), pairs((2**40, 7), (3, 3))), PAIR, on_refused="divert")
    assert pa.Table.from_batches(list(rows)).to_pylist() == [{"a": 1, "b": 1}, {"a": 3, "b": 3}]
    assert rows.refused is not None
    assert rows.refused.to_pylist() == [
        {
            "a": 2**40,
            "b": 7,
            "_row_index": 1,
            "_refused_column": "a",
            "_refused_reason": "1099511627776 does not fit int",
        }
    ]


def test_unknown_on_refused_value_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="on_refused must be 'fail' or 'divert', not 'skip'"):
        ConformedRows(reader(pairs((1, 1))), PAIR, on_refused="skip")
