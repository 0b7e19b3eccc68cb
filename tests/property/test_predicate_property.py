"""Filters return the same rows as DuckDB, on random tables with nulls, NaN, infinities and both zeros."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.expressions import Not
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    StringType,
    TimestampType,
)

from tableformat.filters.bound_filter import TRUE, bind_filter, comparisons, is_nan_value, to_expression
from tableformat.filters.predicate import parse_where
from tableformat.filters.pruning import ColumnStatistics, decide, residual
from tableformat.filters.row_filter import filter_rows, matching_rows
from tableformat.metadata.arrow_schema import arrow_schema

SCHEMA = Schema(
    NestedField(1, "row", IntegerType(), required=True),
    NestedField(2, "i", IntegerType(), required=False),
    NestedField(3, "s", StringType(), required=False),
    NestedField(4, "d", DoubleType(), required=False),
    NestedField(5, "day", DateType(), required=False),
    NestedField(6, "ts", TimestampType(), required=False),
    NestedField(7, "price", DecimalType(5, 2), required=False),
    NestedField(8, "is_set", BooleanType(), required=False),
)

VALUES = {
    "i": [None, -2, -1, 0, 1, 2, 3],
    "s": [None, "", "a", "ab", "abc", "b", "é", "\U00010000", "￿", "it's"],
    "d": [None, float("nan"), float("-inf"), -1.5, -0.0, 0.0, 1.5, 2.0, float("inf")],
    "day": [None, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    "ts": [None, dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 12)],
    "price": [None, Decimal("-1.25"), Decimal("0.00"), Decimal("1.00"), Decimal("1.01")],
    "is_set": [None, True, False],
}
LITERALS = {
    "i": ["-1", "0", "1", "2", "7", "1.5", "-0.5", "3000000000", "NULL"],
    "s": ["''", "'a'", "'ab'", "'é'", "'it''s'", "NULL"],
    "d": ["-1.5", "0.0", "2.0", "1", "'NaN'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "NULL"],
    "day": ["DATE '1970-01-01'", "'2024-02-29'", "TIMESTAMP '1969-12-31 12:00:00'", "NULL"],
    "ts": ["TIMESTAMP '1970-01-01 00:00:00'", "DATE '2024-02-29'", "'2024-02-29 12:00:00'", "NULL"],
    "price": ["1", "1.00", "1.005", "-1.25", "1000.5", "NULL"],
    "is_set": ["TRUE", "FALSE", "NULL"],
}
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]

columns = st.sampled_from(sorted(VALUES))


@st.composite
def leaves(draw: st.DrawFn) -> str:
    name = draw(columns)
    literal = st.sampled_from(LITERALS[name])
    kind = draw(st.sampled_from(["compare", "mirrored", "in", "between", "null", "special"]))
    if kind == "compare":
        return f"{name} {draw(st.sampled_from(OPERATORS))} {draw(literal)}"
    if kind == "mirrored":
        return f'{draw(literal)} {draw(st.sampled_from(OPERATORS))} "{name}"'
    if kind == "in":
        values = ", ".join(draw(st.lists(literal, min_size=1, max_size=3)))
        return f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({values})"
    if kind == "between":
        return f"{name} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {draw(literal)} AND {draw(literal)}"
    if kind == "null":
        return f"{name} {draw(st.sampled_from(['IS NULL', 'IS NOT NULL']))}"
    special = [
        "isnan(d)",
        "s LIKE 'a%'",
        "s NOT LIKE 'ab%'",
        "s LIKE 'ab'",
        "s LIKE '%'",
        "starts_with(s, 'a')",
        "is_set",
        "is_set IS TRUE",
        "is_set IS NOT FALSE",
        "i IS NOT DISTINCT FROM 1",
        "i IS DISTINCT FROM 1",
        "i IS DISTINCT FROM NULL",
        "TRUE",
        "FALSE",
        "1 = 1",
    ]
    return draw(st.sampled_from(special))


conditions = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 8))
    rows = [{name: draw(st.sampled_from(values)) for name, values in VALUES.items()} for _ in range(count)]
    return pa.Table.from_pylist(
        [{"row": number, **values} for number, values in enumerate(rows)], schema=arrow_schema(SCHEMA)
    )


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    with duckdb.connect() as opened:
        yield opened


@settings(max_examples=examples(1.5), deadline=None)
@given(tables(), conditions)
def test_filters_agree_with_duckdb(connection: duckdb.DuckDBPyConnection, rows: pa.Table, condition: str) -> None:
    connection.register("rows_of_test", rows)
    expected = connection.execute(f"SELECT row FROM rows_of_test WHERE {condition} ORDER BY row").fetchall()
    bound = bind_filter(parse_where(condition, SCHEMA), SCHEMA)
    assert [(row,) for row in filter_rows(bound, rows)["row"].to_pylist()] == expected


@settings(max_examples=examples(1), deadline=None)
@given(tables(), conditions)
def test_negated_pyiceberg_expressions_follow_sql_nulls(rows: pa.Table, condition: str) -> None:
    """An expression and its PyIceberg negation never match the same row."""
    expression = parse_where(condition, SCHEMA)
    matches = set(filter_rows(bind_filter(expression, SCHEMA), rows)["row"].to_pylist())
    others = set(filter_rows(bind_filter(Not(expression), SCHEMA), rows)["row"].to_pylist())
    assert matches.isdisjoint(others)


@settings(max_examples=examples(1), deadline=None)
@given(tables(), conditions)
def test_residual_filter_after_pruning_selects_the_same_rows(rows: pa.Table, condition: str) -> None:
    """Facts drawn from the rows themselves must never decide a row wrongly."""
    bound = bind_filter(parse_where(condition, SCHEMA), SCHEMA)
    left = residual(bound, lambda leaf: decide(leaf, _facts(rows, leaf.path[0])))
    assert filter_rows(left, rows)["row"].to_pylist() == filter_rows(bound, rows)["row"].to_pylist()


@settings(max_examples=examples(1), deadline=None)
@given(tables(), conditions)
def test_filter_round_trip_through_pyiceberg_expression(rows: pa.Table, condition: str) -> None:
    bound = bind_filter(parse_where(condition, SCHEMA), SCHEMA)
    again = bind_filter(to_expression(bound), SCHEMA)
    assert again == bound or any(leaf.is_float for leaf in comparisons(bound))
    assert filter_rows(again, rows)["row"].to_pylist() == filter_rows(bound, rows)["row"].to_pylist()


def test_always_true_filter_reads_no_rows() -> None:
    assert matching_rows(TRUE, arrow_schema(SCHEMA).empty_table()) is True


def _facts(rows: pa.Table, name: str) -> ColumnStatistics:
    values = rows[name].to_pylist()
    nan_count = sum(is_nan_value(value) for value in values)
    known = [_internal(value) for value in values if value is not None and not is_nan_value(value)]
    return ColumnStatistics(
        may_be_null=None in values,
        may_be_nan=nan_count > 0,
        may_have_values=bool(known),
        lower=min(known, default=None),
        upper=max(known, default=None),
    )


def _internal(value: object) -> object:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return value
