"""Filters of engines, translated for metadata: each is implied by pyarrow's result, and equal to it if marked as
exact."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)

from tableformat.filters.arrow_filter import translate
from tableformat.filters.row_filter import filter_rows
from tableformat.metadata.arrow_schema import arrow_schema

SCHEMA = Schema(
    NestedField(1, "row", LongType(), required=True),
    NestedField(2, "i", LongType(), required=False),
    NestedField(3, "s", StringType(), required=False),
    NestedField(4, "d", DoubleType(), required=False),
    NestedField(5, "day", DateType(), required=False),
    NestedField(6, "ts", TimestampType(), required=False),
    NestedField(7, "b", BooleanType(), required=False),
    NestedField(8, "st", StructType(NestedField(9, "x", LongType(), required=False)), required=False),
)
ARROW = arrow_schema(SCHEMA)
VALUES: dict[str, list[Any]] = {
    "i": [None, -1, 0, 1, 2],
    "s": [None, "", "a", "ab", "b'\"\n"],
    "d": [None, math.nan, -1.5, -0.0, 0.0, 2.0, math.inf],
    "day": [None, dt.date(1969, 12, 31), dt.date(2024, 1, 1)],
    "ts": [None, dt.datetime(1969, 12, 31, 1), dt.datetime(2024, 1, 1)],
    "b": [None, True, False],
    "st": [None, {"x": None}, {"x": 1}, {"x": 2}],
}
OPERATORS = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


@st.composite
def leaves(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(VALUES)))
    values = [value for value in VALUES[name] if value is not None]
    column = pc.field(name)
    if name == "st":
        column, values = pc.field("st", "x"), [1, 2]
    kind = draw(st.sampled_from(["compare", "mirrored", "in", "guarded in", "null", "valid", "special"]))
    if kind == "compare":
        return getattr(column, draw(st.sampled_from(OPERATORS)))(draw(st.sampled_from(values)))
    if kind == "mirrored":
        return pc.Expression._call("less", [pc.scalar(draw(st.sampled_from(values))), column])
    if kind in ("in", "guarded in"):
        contained = column.isin(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
        return contained if kind == "in" else pc.if_else(column.is_valid(), contained, pa.scalar(None, pa.bool_()))
    if kind == "null":
        return column.is_null(nan_is_null=name == "d" and draw(st.booleans()))
    if kind == "valid":
        return column.is_valid()
    return draw(
        st.sampled_from(
            [
                pc.is_nan(pc.field("d")),
                pc.starts_with(pc.field("s"), "a"),
                pc.ends_with(pc.field("s"), "b"),
                pc.field("b"),
                pc.field("i").cast(pa.int32()) == 1,
                pc.field("i") + 1 == 2,
                pc.field("i") == pa.scalar(1, pa.int8()),
                pc.field("i") == 1.5,
                pc.scalar(True),
            ]
        )
    )


expressions = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(lambda left, right: left & right, inner, inner),
        st.builds(lambda left, right: left | right, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=5,
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = [
        {"row": number, **{name: draw(st.sampled_from(values)) for name, values in VALUES.items()}}
        for number in range(draw(st.integers(0, 8)))
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)


@settings(max_examples=examples(1.5), deadline=None)
@given(tables(), expressions)
@example(pa.Table.from_pylist([{"row": 0, "d": math.nan}], schema=ARROW), ~(pc.field("d") > 1.0))
@example(pa.Table.from_pylist([{"row": 0, "i": None}], schema=ARROW), ~pc.field("i").isin([1]))
def test_translated_filter_keeps_all_rows_of_pyarrow(rows: pa.Table, expression: pc.Expression) -> None:
    expected = ds.dataset(rows).to_table(filter=expression)["row"].to_pylist()
    translation = translate(expression, SCHEMA, ARROW)
    kept = filter_rows(translation.bound, rows)["row"].to_pylist()
    assert [row for row in expected if row not in kept] == []
    if translation.is_exact:
        assert kept == expected


def test_duckdb_filters_are_translated_exactly() -> None:
    """Without this, point lookups would read whole tables."""
    expression = (pc.field("s") == 'it\'s "a"\n') & pc.if_else(
        pc.field("i").is_valid(), pc.field("i").isin([1, 2]), pa.scalar(None, pa.bool_())
    )
    translation = translate(expression, SCHEMA, ARROW)
    assert translation.is_exact
    assert translation.columns == ("i", "s")


def test_column_names_with_syntax_characters_are_not_parsed() -> None:
    name = "a'\nliteral: '0"
    schema = Schema(NestedField(1, name, LongType(), required=False))
    translation = translate(pc.field(name) == 1, schema, arrow_schema(schema))
    assert not translation.is_exact
    assert translation.columns is None
