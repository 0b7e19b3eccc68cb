"""RD-14: adjacent spans with no possible key between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import DateType, DoubleType, IntegerType, LongType, PrimitiveType, StringType

from tableformat.deletes.spans.neighbours import joined_neighbours
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge, span_of_bounds, spans_of_prefixes
from tableformat.keys.families import arrow_type_of
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1, 2, 3), ("s", "n", "m"), (StringType(), LongType(), IntegerType()))


def _of(values: list[tuple[Any, ...]]) -> SpanArray:
    names = KEY.names[: len(values[0])]
    columns = {name: list(column) for name, column in zip(names, zip(*values, strict=True), strict=True)}
    return spans_of_prefixes(KEY, pa.table(columns))


def _ends(spans: SpanArray) -> list[tuple[Any, Any]]:
    lower, upper = (
        list(zip(*(column.to_pylist() for column in cuts.columns), strict=True)) for cuts in (spans.lower, spans.upper)
    )
    return list(zip(lower, upper, strict=True))


def test_consecutive_integers_after_equal_values_are_one_span() -> None:
    """RD-14."""
    joined = joined_neighbours(_of([("a", 3), ("a", 4), ("a", 5), ("b", 6), ("b", 8), (None, 1), (None, 2)]))
    assert _ends(joined) == [
        ((None, 1, None), (None, 2, None)),
        (("a", 3, None), ("a", 5, None)),
        (("b", 6, None), ("b", 6, None)),
        (("b", 8, None), ("b", 8, None)),
    ]
    assert not joined.lower.after.any()
    assert joined.upper.after.all()


@pytest.mark.parametrize(
    ("key_type", "values"),
    [
        (StringType(), ["3", "4"]),
        (DoubleType(), [3.0, 4.0]),
        (DateType(), [3, 4]),  # A date may be promoted to a timestamp, which has values between two days.
        (LongType(), [None, 0]),
        (LongType(), [-(2**63), 2**63 - 1]),
        (IntegerType(), [-(2**31), 2**31 - 1]),
        (LongType(), [5]),
    ],
)
def test_spans_without_adjacent_integers_are_not_merged(key_type: PrimitiveType, values: list[Any]) -> None:
    column = pa.array(values, arrow_type_of(key_type))
    spans = spans_of_prefixes(KeyColumns((1,), ("k",), (key_type,)), pa.table({"k": column}))
    assert joined_neighbours(spans) is spans


def test_largest_integer_ends_a_run() -> None:
    top = 2**63 - 1
    assert _ends(joined_neighbours(_of([("a", top - 1), ("a", top), ("b", -top - 1)]))) == [
        (("a", top - 1, None), ("a", top, None)),
        (("b", -top - 1, None), ("b", -top - 1, None)),
    ]


def test_spans_of_different_depth_are_not_merged() -> None:
    """after('a') and before('b', 1), before('b', 4) and before('b', 5): other keys lie between."""
    halves = [span_of_bounds(KEY, ("b", 2), ("b", 4)), span_of_bounds(KEY, ("b", 5), ("b", 7))]
    spans = sort_and_merge(SpanArray.concat([_of([("a",)]), *halves, _of([("b", 7, 1)]), _of([("b", 8)])]))
    assert len(joined_neighbours(spans)) == len(spans) == 5


@pytest.mark.parametrize("numbers", [None, np.array([7, 7])], ids=["inherited", "stated"])
def test_spans_with_open_sides_or_other_prefixes_are_not_merged(numbers: Any) -> None:
    """RD-14, RD-8: key 4 lies between, and so do all keys between ('a', 1, 3) and ('b', 1, 4)."""
    halves = SpanArray.concat([span_of_bounds(KEY, ("b", 2), ("b", 4)), span_of_bounds(KEY, ("b", 5), ("b", 7))])
    others = _of([("a", 1, 3), ("b", 1, 4)])
    for spans in (halves, others):
        numbered = spans if numbers is None else spans.with_sequence_numbers(numbers)
        assert joined_neighbours(numbered) is numbered
