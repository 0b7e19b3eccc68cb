"""For all values: a row is written exactly or rejected, never changed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StructType,
    TimestampType,
)

from tableformat.write.rows.conform import conform

INT, LONG = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)


def outcome(array: pa.Array, kind: IcebergType, *, required: bool = False) -> tuple[list[Any], list[int]]:
    result = conform(pa.record_batch({"x": array}), Schema(NestedField(1, "x", kind, required=required)))
    result.batch.validate(full=True)
    refused = [] if result.refused is None else result.refused.positions.tolist()
    return result.batch.column(0).to_pylist(), refused


def expected(values: list[Any], fits: Any) -> tuple[list[Any], list[int]]:
    return [value for value in values if fits(value)], [row for row, value in enumerate(values) if not fits(value)]


@settings(max_examples=examples(0.75), deadline=None)
@given(st.lists(st.none() | st.integers(*LONG) | st.integers(-3, 3)), st.booleans())
def test_conform_long_to_int(values: list[int | None], required: bool) -> None:
    array = pa.array(values, pa.int64())
    assert outcome(array, IntegerType(), required=required) == expected(
        values, lambda value: (not required) if value is None else INT[0] <= value <= INT[1]
    )


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.none() | st.integers(0, 2**64 - 1)))
def test_conform_unsigned_to_long(values: list[int | None]) -> None:
    assert outcome(pa.array(values, pa.uint64()), LongType()) == expected(
        values, lambda value: value is None or value <= LONG[1]
    )


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.none() | st.integers(*LONG) | st.sampled_from([2**53, 2**53 + 1, -(2**53), -(2**53) - 1])))
def test_conform_long_to_double(values: list[int | None]) -> None:
    assert outcome(pa.array(values, pa.int64()), DoubleType()) == expected(
        values, lambda value: value is None or abs(value) <= 2**53
    )


@settings(max_examples=examples(0.75), deadline=None)
@given(
    st.lists(st.none() | st.decimals(-99999, 99999, places=4)),
    st.integers(0, 4).flatmap(lambda scale: st.tuples(st.integers(max(scale, 1), 12), st.just(scale))),
)
def test_conform_decimal_to_smaller_decimal(values: list[Decimal | None], target: tuple[int, int]) -> None:
    precision, scale = target

    def fits(value: Decimal | None) -> bool:
        if value is None:
            return True
        return value == round(value, scale) and abs(value) < Decimal(10) ** (precision - scale)

    assert outcome(pa.array(values, pa.decimal128(9, 4)), DecimalType(precision, scale)) == expected(values, fits)


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.none() | st.integers(-(10**18), 10**18) | st.integers(-5, 5).map(lambda n: n * 1000)))
def test_conform_nanoseconds_to_microseconds(values: list[int | None]) -> None:
    kept, refused = outcome(pa.array(values, pa.timestamp("ns")), TimestampType())
    epoch = dt.datetime(1970, 1, 1)
    assert (kept, refused) == (
        [
            None if value is None else epoch + dt.timedelta(microseconds=value // 1000)
            for value in values
            if value is None or value % 1000 == 0
        ],
        [row for row, value in enumerate(values) if value is not None and value % 1000],
    )


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.none() | st.binary(max_size=4)))
def test_conform_binary_to_fixed(values: list[bytes | None]) -> None:
    assert outcome(pa.array(values, pa.binary()), FixedType(2)) == expected(
        values, lambda value: value is None or len(value) == 2
    )


NUMBER = st.none() | st.integers(0, 3) | st.just(2**40)
ELEMENT = StructType(
    NestedField(3, "a", IntegerType(), required=True), NestedField(4, "b", IntegerType(), required=False)
)
NESTED = ListType(2, ELEMENT, element_required=False)


@settings(max_examples=examples(1), deadline=None)
@given(
    st.lists(
        st.none() | st.lists(st.none() | st.fixed_dictionaries({"a": NUMBER, "b": NUMBER}), max_size=3), max_size=6
    ),
    st.integers(0, 2),
)
def test_conform_structs_in_lists(values: list[list[dict[str, int | None] | None] | None], first: int) -> None:
    def fits(value: list[dict[str, int | None] | None] | None) -> bool:
        return all(
            element is None or (element["a"] in range(4) and (element["b"] is None or element["b"] in range(4)))
            for element in value or []
        )

    kind = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    sliced = values[first:]
    assert outcome(pa.array(values, kind).slice(first), NESTED) == expected(sliced, fits)
