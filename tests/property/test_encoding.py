"""The byte order of encoded keys is the key order, for every type."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import arrow_column, comparable_row, cut_array, key_of, keyed_cases, type_choices, values_of
from pyiceberg.types import DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, PrimitiveType

from tableformat.keys.encoding import encode_rows, encode_runs
from tableformat.keys.key_columns import KeyColumns


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[list[PrimitiveType], list[tuple[Any, ...]]]:
    types = draw(st.lists(type_choices, min_size=1, max_size=4))
    pools = [draw(st.lists(st.none() | values_of(key_type), min_size=1, max_size=4)) for key_type in types]
    return types, draw(st.lists(st.tuples(*[st.sampled_from(pool) for pool in pools]), min_size=1, max_size=8))


def encoded_rows(types: list[PrimitiveType], rows: list[tuple[Any, ...]]) -> list[bytes]:
    columns = [
        arrow_column(list(values), key_type) for values, key_type in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return encode_rows(columns, types).to_pylist()


@settings(max_examples=examples(1), deadline=None)
@given(typed_rows())
def test_encoded_keys_are_ordered_like_keys(case: tuple[list[PrimitiveType], list[tuple[Any, ...]]]) -> None:
    """RD-4: order and equality, against a plain comparator."""
    types, rows = case
    encoded = encoded_rows(types, rows)
    for left, left_bytes in zip(rows, encoded, strict=True):
        for right, right_bytes in zip(rows, encoded, strict=True):
            assert (left_bytes < right_bytes) == (comparable_row(left) < comparable_row(right))
            assert (left_bytes == right_bytes) == (comparable_row(left) == comparable_row(right))


@settings(max_examples=examples(1), deadline=None)
@given(typed_rows())
def test_prefix_interval_contains_exactly_its_keys(
    case: tuple[list[PrimitiveType], list[tuple[Any, ...]]],
) -> None:
    """RD-1, RD-5: before(p) <= key < after(p) for the keys that begin with p and for no others."""
    types, rows = case
    encoded = encoded_rows(types, rows)
    key = key_of(types)
    for depth in range(len(types) + 1):
        before = cut_array(key, [(row[:depth], False) for row in rows]).encoded.to_pylist()
        after = cut_array(key, [(row[:depth], True) for row in rows]).encoded.to_pylist()
        for prefix, low, high in zip(rows, before, after, strict=True):
            for row, row_bytes in zip(rows, encoded, strict=True):
                begins_with = comparable_row(row[:depth]) == comparable_row(prefix[:depth])
                assert (low <= row_bytes < high) == begins_with


@settings(max_examples=examples(1), deadline=None)
@given(keyed_cases(), st.booleans())
def test_run_encoding_equals_row_encoding(case: tuple[KeyColumns, list[tuple[Any, ...]], Any], is_sorted: bool) -> None:
    """RD-4: for rows in any order, and if equal rows are adjacent."""
    key, rows, _ = case
    if is_sorted:
        rows.sort(key=comparable_row)
    columns = [
        pa.chunked_array([arrow_column([row[position] for row in rows], key_type)])
        for position, key_type in enumerate(key.types)
    ]
    keys, begins = encode_runs(columns, key.types)
    runs = np.repeat(np.arange(len(keys)), np.diff(begins, append=len(rows)))
    assert keys.take(pa.array(runs)).equals(encode_rows(columns, key.types))
    is_exact = not any(
        value is None or (isinstance(value, float) and math.isnan(value)) for row in rows for value in row
    )
    if is_sorted and is_exact:
        assert len(keys) == len({comparable_row(row) for row in rows})


# DuckDB reserves the ends of the temporal types for its infinities.
_DUCKDB_RANGE = st.integers(-(10**15), 10**15)


@settings(max_examples=examples(1), deadline=None)
@given(st.data())
def test_key_order_agrees_with_duckdb_sort_keys(data: st.DataObject) -> None:
    """RD-4: DuckDB's create_sort_key, an independent encoding, ranks the same rows the same way."""
    types = data.draw(st.lists(type_choices, min_size=1, max_size=3))
    pools = []
    for key_type in types:
        values = values_of(key_type)
        if type(key_type).__name__.startswith("Timestamp"):
            values = _DUCKDB_RANGE
        if isinstance(key_type, DateType):
            values = st.integers(-700_000, 2_900_000)
        pools.append(data.draw(st.lists(st.none() | values, min_size=1, max_size=4)))
    rows = data.draw(st.lists(st.tuples(*[st.sampled_from(pool) for pool in pools]), min_size=2, max_size=8))
    columns = [
        arrow_column(list(values), key_type) for values, key_type in zip(zip(*rows, strict=True), types, strict=True)
    ]
    table = pa.table({f"c{position}": column for position, column in enumerate(columns)})
    arguments = ", ".join(f"{name}, 'ASC NULLS FIRST'" for name in table.column_names)
    with duckdb.connect() as connection:
        connection.register("keys", table)
        # BIGINT for keys of at most 8 bytes, BLOB for others: both in key order.
        theirs = connection.sql(f"SELECT create_sort_key({arguments}) AS k FROM keys").arrow().read_all()["k"]
    ours = encode_rows(columns, types)
    assert pc.rank(ours, tiebreaker="dense").to_pylist() == pc.rank(theirs, tiebreaker="dense").to_pylist()


_WIDENINGS = [
    (IntegerType(), LongType()),
    (FloatType(), DoubleType()),
    (DecimalType(9, 2), DecimalType(30, 2)),
]


@settings(max_examples=examples(1), deadline=None)
@given(st.sampled_from(_WIDENINGS), st.data())
def test_type_promotion_does_not_change_encoded_keys(
    widening: tuple[PrimitiveType, PrimitiveType], data: st.DataObject
) -> None:
    """RD-4: int to long, float to double and more decimal digits."""
    narrow, wide = widening
    column = arrow_column(data.draw(st.lists(st.none() | values_of(narrow), max_size=6)), narrow)
    assert encode_rows([column], [narrow]).equals(encode_rows([column], [wide]))


def test_all_nans_are_one_key_above_infinity() -> None:
    """RD-4: NaN payloads and signs do not matter, nor does the sign of zero."""
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF], np.uint64)
    values = np.concatenate([nans.view(np.float64), [np.inf, 0.0, -0.0]])
    encoded = encode_rows([pa.array(values)], [DoubleType()]).to_pylist()
    assert len(set(encoded[:4])) == 1
    assert encoded[0] > encoded[4]
    assert encoded[5] == encoded[6]
