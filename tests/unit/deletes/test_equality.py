"""Equality deletes applied to rows in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyiceberg.types import (
    DoubleType,
    FixedType,
    LongType,
    PrimitiveType,
    StringType,
)

from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.matching.range_match import deleted_runs
from tableformat.keys.families import arrow_type_of

Rows = Sequence[tuple[object, ...]]


def columns_of(rows: Rows, types: Sequence[PrimitiveType]) -> list[pa.ChunkedArray]:
    return [
        pa.chunked_array([pa.array([row[index] for row in rows], arrow_type_of(iceberg_type))])
        for index, iceberg_type in enumerate(types)
    ]


def keys_of(types: Sequence[PrimitiveType], *deletes: tuple[Rows, int]) -> EqualityKeys:
    described = [
        ([comparable(column, kind) for column, kind in zip(columns_of(rows, types), types, strict=True)], number)
        for rows, number in deletes
    ]
    return EqualityKeys.collapse(tuple(range(1, len(types) + 1)), types, described)


def survivors(keys: EqualityKeys, rows: Rows, data_sequence_number: int = 1) -> list[tuple[object, ...]]:
    mask = keys.deleted_mask(columns_of(rows, keys.types), data_sequence_number)
    assert mask.dtype == np.bool_, "a mask of another type would choose rows by their number"
    return [row for row, is_deleted in zip(rows, mask.tolist(), strict=True) if not is_deleted]


def test_null_matches_only_null() -> None:
    """DA-4"""
    keys = keys_of([LongType(), StringType()], ([(1, None), (None, "b"), (None, None)], 2))
    rows = [(1, None), (1, ""), (None, "b"), (0, "b"), (None, None), (None, "c")]
    assert survivors(keys, rows) == [(1, ""), (0, "b"), (None, "c")]


def test_row_written_with_its_equality_delete_is_kept() -> None:
    """DA-2: strictly older data only."""
    keys = keys_of([LongType()], ([(1,)], 5))
    assert survivors(keys, [(1,)], data_sequence_number=5) == [(1,)]
    assert survivors(keys, [(1,)], data_sequence_number=4) == []


def test_floats_match_by_value() -> None:
    """DA-5: written by others, because this library does not write them."""
    keys = keys_of([DoubleType()], ([(-0.0,), (float("nan"),)], 2))
    assert survivors(keys, [(0.0,), (-0.0,), (float("nan"),), (1.0,), (None,)]) == [(1.0,), (None,)]


def test_trailing_zero_bytes_are_significant() -> None:
    keys = keys_of([StringType(), FixedType(2)], ([("a\0", b"\0\0"), ("", b"a\0")], 2))
    rows = [("a\0", b"\0\0"), ("a", b"\0\0"), ("", b"a\0"), ("", b"\0a")]
    assert survivors(keys, rows) == [("a", b"\0\0"), ("", b"\0a")]


def test_row_mixing_values_of_two_keys_does_not_match() -> None:
    """A row that takes each of its columns from a different key does not match a key."""
    keys = keys_of([LongType(), StringType(), LongType()], ([(1, "a", 1), (2, "b", 2), (1, "b", 3)], 2))
    rows = [(x, y, z) for x in (1, 2) for y in ("a", "b") for z in (1, 2, 3)]
    assert survivors(keys, rows) == [row for row in rows if row not in [(1, "a", 1), (2, "b", 2), (1, "b", 3)]]


def test_multi_column_matching_with_many_or_few_candidates() -> None:
    """Both ways of going on to the next column, many rows left and few rows left, keep the offsets."""
    rows = [(number % 1000, f"s{number}") for number in range(10_000)]
    keys = keys_of([LongType(), StringType()], ([(7, "s1007"), (7, "s2008"), (8, "s9008")], 2))
    found = keys.deleted_rows(columns_of(rows, keys.types), 1)
    assert found.tolist() == [1007, 9008]


def test_point_search_in_sorted_rows_agrees_with_lookup() -> None:
    keys = keys_of([LongType(), StringType()], ([(2, "b"), (None, "a"), (2, None)], 4), ([(1, "z"), (2, "b")], 9))
    rows = [("a", None), ("b", 2), ("b", 2), ("z", 1), ("z", 5)]
    points = keys.point_spans((2, 1))
    assert points.sequence_numbers.tolist() == [4, 4, 9, 9]
    text, number = (pa.array([row[index] for row in rows], kind) for index, kind in ((0, pa.string()), (1, pa.int64())))
    starts, ends = deleted_runs([text, number], points)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 4)]
    assert keys.point_spans((2, 1)) is points


def test_value_bounds_contain_every_value() -> None:
    keys = keys_of([StringType(), DoubleType()], ([("b", 1.0), (None, 2.0), ("a\0", 3.0)], 4))
    text, floating = keys.value_bounds_by_column
    assert (text.has_null, floating) == (True, None)
    assert (text.lower, text.upper) == (b"\x02a\x00\xff\x00\x01", b"\x02b\x00\x01\xff")
