"""Spans from prefixes and bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import IntegerType, LongType, StringType

from tableformat.deletes.spans.cuts import CutArray, cut_before
from tableformat.deletes.spans.spans import INHERITED, SpanArray, sort_and_merge, span_of_bounds, spans_of_prefixes
from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.keys.encoding import encode_values
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1, 2, 3), ("id1", "id2", "num_cal"), (StringType(), LongType(), IntegerType()))


def cut(*values: Any) -> bytes:
    return encode_values(values, KEY.types)


def stretches(spans: SpanArray) -> list[tuple[bytes, bytes]]:
    return list(zip(spans.lower.encoded.to_pylist(), spans.upper.encoded.to_pylist(), strict=True))


def test_prefixes_are_sorted_and_deduplicated() -> None:
    """RD-1, RD-5, RD-7: before(p) .. after(p), columns in any order, narrower types taken."""
    prefixes = pa.table({"id2": pa.array([3, 1, 3], pa.int32()), "id1": ["b", "a\0", "b"]})
    spans = spans_of_prefixes(KEY, prefixes)
    assert stretches(spans) == [(cut("a\0", 1), cut("a\0", 1) + b"\xff"), (cut("b", 3), cut("b", 3) + b"\xff")]
    assert spans.sequence_numbers is None
    in_order = spans_of_prefixes(KEY, pa.table({"id1": ["a", "a", "b"]}))
    assert stretches(in_order) == [(cut("a"), cut("a") + b"\xff"), (cut("b"), cut("b") + b"\xff")]


def test_merged_spans_keep_their_common_sequence_number() -> None:
    """RD-7, RD-8: spans that overlap or touch are merged, and keep their sequence number."""
    bounds = [(("c",), ("d",)), (("a",), ("b",)), (("b",), ("b", 5)), (("d", 2), None)]
    spans = SpanArray.concat([span_of_bounds(KEY, *each) for each in bounds])
    for numbers in (None, [4, 4, 4, 4]):
        merged = sort_and_merge(replace(spans, sequence_numbers=None if numbers is None else np.array(numbers)))
        assert stretches(merged) == [(cut("a"), cut("b", 5)), (cut("c"), cut("d")), (cut("d", 2), b"\xff")]
        assert (None if merged.sequence_numbers is None else merged.sequence_numbers.tolist()) == (
            None if numbers is None else [4, 4, 4]
        )


def test_null_is_a_prefix_value_and_sorts_first() -> None:
    """RD-5."""
    spans = spans_of_prefixes(KEY, pa.table({"id1": pa.array(["", None])}))
    assert stretches(spans) == [(cut(None), cut(None) + b"\xff"), (cut(""), cut("") + b"\xff")]


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ({"id2": [1]}, r"prefix \(id2\) is not a leading part of the key \(id1, id2, num_cal\)\. .* \(id1\)"),
        ({"id1": ["a"], "num_cal": [1]}, r"\(id1, num_cal\) is not a leading part"),
        ({"id1": ["a"], "value": [1]}, "unknown column 'value' in a prefix of the key"),
        ({"Id1": ["a"]}, "Did you mean 'id1'"),
        ({}, r"prefix \(\) is not a leading part"),
        ({"id1": [5]}, "column 'id1' is string in the key"),
        ({"id1": ["a"], "id2": [1.5]}, "column 'id2' is long in the key"),
    ],
)
def test_invalid_prefix_error_names_the_column(prefixes: dict[str, list[Any]], message: str) -> None:
    """RD-5."""
    with pytest.raises((InvalidKeyError, UnknownColumnError), match=message):
        spans_of_prefixes(KEY, pa.table(prefixes))


def test_bounds_are_half_open_and_may_be_of_different_length() -> None:
    """RD-1: before(lower) .. before(upper)."""
    assert stretches(span_of_bounds(KEY, ("a", 3), ("b",))) == [(cut("a", 3), cut("b"))]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (("b",), ("a", 3), r"lower bound \('b',\) is above upper bound \('a', 3\)"),
        ((), ("a",), "an empty tuple is not a bound"),
        (("a",), (), "an empty tuple is not a bound"),
        (("a", 1, 2, 3), None, "4 values given for key"),
        ((1,), None, r"column 'id1' is string, not 1 \(int\)"),
    ],
)
def test_invalid_bounds_are_rejected(lower: Any, upper: Any, message: str) -> None:
    with pytest.raises(InvalidKeyError, match=message):
        span_of_bounds(KEY, lower, upper)


def test_spans_without_sequence_number_inherit_the_entry_number() -> None:
    """RD-8."""
    spans = spans_of_prefixes(KEY, pa.table({"id1": ["a", "b"]}))
    numbered = spans.with_sequence_number(7)
    assert numbered.sequence_numbers is not None
    assert numbered.sequence_numbers.tolist() == [7, 7]
    mixed = SpanArray(KEY, spans.lower, spans.upper, np.array([3, INHERITED]))
    assert mixed.with_sequence_number(7).sequence_numbers.tolist() == [3, 7]
    assert numbered.with_sequence_number(9).sequence_numbers.tolist() == [7, 7]


A_CUT = cut_before(KEY, ("a", 3))
OTHER_KEY = KeyColumns((9,), ("id1",), (StringType(),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: CutArray(KEY, A_CUT.columns[:2], A_CUT.depth, A_CUT.after),
            r"2 columns of cuts for key \(id1",
        ),
        (lambda: CutArray(KEY, A_CUT.columns, A_CUT.depth, np.array([True, False])), "1 depths and 2 sides of cuts"),
        (
            lambda: CutArray(KEY, A_CUT.columns, np.zeros(3, np.int8), np.zeros(3, np.bool_)),
            r"columns of \[1, 1, 1\] values for 3 cuts",
        ),
        (lambda: SpanArray(KEY, A_CUT, A_CUT.slice(0, 0), None), "1 lower and 0 upper cuts"),
        (lambda: SpanArray(KEY, A_CUT, A_CUT, np.array([1, 2])), "2 sequence numbers for 1 spans"),
        (lambda: SpanArray(OTHER_KEY, A_CUT, A_CUT, None), r"fields \(9,\), lower cuts of fields \(1, 2, 3\)"),
        (
            lambda: SpanArray(KEY, A_CUT, cut_before(OTHER_KEY, ("a",)), None),
            r"fields \(1, 2, 3\), upper cuts of fields \(9,\)",
        ),
    ],
)
def test_inconsistent_parts_raise_assertion_with_both_values(make: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        make()


def test_digest_depends_on_cut_bytes_and_boundaries() -> None:
    def digest(*names: str) -> bytes:
        return spans_of_prefixes(KEY, pa.table({"id1": list(names)})).lower.digest

    assert digest("a", "b") == digest("a", "b")
    assert len({digest("a", "b"), digest("a"), digest("ab"), digest("a", "c"), digest("a\0\1\2b")}) == 5
