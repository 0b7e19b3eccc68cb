"""The bounds of a range delete file in its manifest entry."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
from pyiceberg.types import BinaryType, DoubleType, LongType, PrimitiveType, StringType, TimestampType

from tableformat.deletes.spans.bounds import entry_bounds
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge, span_of_bounds, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1, 2), ("s", "n"), (StringType(), LongType()))


def number(value: int) -> bytes:
    return struct.pack("<q", value)


def union(*spans: SpanArray) -> SpanArray:
    return sort_and_merge(SpanArray.concat(spans))


def key_of(key_type: PrimitiveType) -> KeyColumns:
    return KeyColumns((1,), ("k",), (key_type,))


def test_prefix_is_bounded_in_all_its_columns() -> None:
    """RD-10."""
    spans = spans_of_prefixes(KEY, pa.table({"s": ["a"], "n": [3]}))
    assert entry_bounds(spans) == ({1: b"a", 2: number(3)}, {1: b"a", 2: number(3)})
    assert entry_bounds(spans_of_prefixes(KEY, pa.table({"s": ["a"]}))) == ({1: b"a"}, {1: b"a"})


def test_prefixes_are_bounded_by_minimum_and_maximum() -> None:
    """FM-15, RD-10: later columns are bounded by all spans, regardless of the order of the first column."""
    spans = spans_of_prefixes(KEY, pa.table({"s": ["a", "b", "c"], "n": [3, -1, 2]}))
    assert entry_bounds(spans) == ({1: b"a", 2: number(-1)}, {1: b"c", 2: number(3)})


def test_columns_after_a_range_column_are_not_bounded() -> None:
    """RD-10: between ("a", 3) and ("b", 5) lies ("a", 1000000)."""
    assert entry_bounds(span_of_bounds(KEY, ("a", 3), ("b", 5))) == ({1: b"a"}, {1: b"b"})
    assert entry_bounds(span_of_bounds(KEY, ("a", 3), ("a", 5))) == ({1: b"a", 2: number(3)}, {1: b"a", 2: number(5)})


def test_open_sides_are_unbounded_and_open_lower_side_includes_nulls() -> None:
    """FM-15, RD-10: a file with nulls and large values must not be pruned by an upper bound."""
    assert entry_bounds(span_of_bounds(KEY, ("a",), None)) == ({1: b"a"}, {})
    assert entry_bounds(span_of_bounds(KEY, None, ("a",))) == ({}, {})
    assert entry_bounds(union(span_of_bounds(KEY, (None,), ("a",)), span_of_bounds(KEY, ("c",), ("d",)))) == ({}, {})


def test_null_prefix_leaves_only_its_column_unbounded() -> None:
    """RD-10."""
    spans = spans_of_prefixes(KEY, pa.table({"s": pa.array([None], pa.string()), "n": [3]}))
    assert entry_bounds(spans) == ({2: number(3)}, {2: number(3)})


def test_float_columns_are_bounded_on_both_sides_or_not_at_all() -> None:
    """RD-10: NaN lies above every bound; zeros are widened to both signs."""
    key = key_of(DoubleType())
    assert entry_bounds(span_of_bounds(key, (1.0,), None)) == ({}, {})
    assert entry_bounds(span_of_bounds(key, (1.0,), (math.nan,))) == ({}, {})
    lower, upper = entry_bounds(spans_of_prefixes(key, pa.table({"k": [0.0]})))
    assert (lower, upper) == ({1: struct.pack("<d", -0.0)}, {1: struct.pack("<d", 0.0)})


def test_long_text_is_truncated_outwards() -> None:
    """RD-10."""
    text: Any = "customer-account-0001"
    lower, upper = entry_bounds(spans_of_prefixes(key_of(StringType()), pa.table({"k": [text]})))
    assert (lower, upper) == ({1: b"customer-account"}, {1: b"customer-accounu"})


def test_floats_are_bounded_by_their_values_and_zeros_by_both_zeros() -> None:
    """FM-15, RD-10: -0.0 sorts before 0.0, and readers of bounds take them for one."""
    key = key_of(DoubleType())
    lower, upper = entry_bounds(span_of_bounds(key, (1.5,), (2.5,)))
    assert (lower, upper) == ({1: struct.pack("<d", 1.5)}, {1: struct.pack("<d", 2.5)})
    lower, upper = entry_bounds(spans_of_prefixes(key, pa.table({"k": [0.0]})))
    assert (lower, upper) == ({1: struct.pack("<d", -0.0)}, {1: struct.pack("<d", 0.0)})


def test_timestamps_beyond_python_range_are_bounded() -> None:
    """RD-10: the largest timestamp of 64 bits has no datetime."""
    largest = pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us"))
    spans = spans_of_prefixes(key_of(TimestampType()), pa.table({"k": largest}))
    assert entry_bounds(spans) == ({1: number(2**63 - 1)}, {1: number(2**63 - 1)})


def test_bytes_that_cannot_be_truncated_upwards_have_no_upper_bound() -> None:
    """FM-15, RD-10: nothing of sixteen bytes is above."""
    spans = spans_of_prefixes(key_of(BinaryType()), pa.table({"k": [b"\xff" * 40]}))
    assert entry_bounds(spans) == ({1: b"\xff" * 16}, {})
