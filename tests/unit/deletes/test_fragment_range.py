"""Ranges of skyline fragments, compared with plain intervals of integers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pyiceberg.types import LongType

from tableformat.deletes.spans.cuts import CutArray, cut_before
from tableformat.deletes.spans.fragment_range import FragmentRange, Skyline, spans_of
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.key_columns import KeyColumns

KEY = KeyColumns((1,), ("id",), (LongType(),))
SPARSE = [(0, 5, 9), (5, 7, 4), (7, 8, 9), (10, 12, 9), (12, 13, 6), (20, 21, 9)]
"""Begin, end and sequence number of fragments: 8 to 10 and 13 to 20 are gaps."""


def cuts(values: list[int]) -> CutArray:
    return CutArray.concat([SpanArray.empty(KEY).lower, *(cut_before(KEY, (value,)) for value in values)])


def spans_at(intervals: list[tuple[int, int, int]]) -> SpanArray:
    lower, upper = cuts([each[0] for each in intervals]), cuts([each[1] for each in intervals])
    return SpanArray(KEY, lower, upper, np.array([each[2] for each in intervals], np.int64))


def intervals_of(spans: SpanArray) -> list[tuple[int, int, int]]:
    assert spans.sequence_numbers is not None
    lower, upper = (side.columns[0].to_pylist() for side in (spans.lower, spans.upper))
    return list(zip(lower, upper, spans.sequence_numbers.tolist(), strict=True))


def joined(fragments: list[tuple[int, int, int]], newer_than: int) -> list[tuple[int, int, int]]:
    """RD-2: what is newer, touching ones as one, of the smallest number among them."""
    found: list[tuple[int, int, int]] = []
    for begin, end, number in fragments:
        if number <= newer_than:
            continue
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end, min(found[-1][2], number))
        else:
            found.append((begin, end, number))
    return found


@pytest.mark.parametrize("newer_than", [0, 4, 6])
@pytest.mark.parametrize("begin", range(len(SPARSE)))
def test_fragment_range_merges_touching_newer_fragments(begin: int, newer_than: int) -> None:
    """RD-2: neither an older fragment nor a gap is bridged."""
    skyline = Skyline(spans_at(SPARSE))
    for end in range(begin + 1, len(SPARSE) + 1):
        expected = joined(SPARSE[begin:end], newer_than)
        if expected:
            fragments = FragmentRange(skyline, begin, end, newer_than)
            assert intervals_of(spans_of(fragments)) == expected
            assert intervals_of(pickle.loads(pickle.dumps(fragments))) == expected
            assert len(fragments) == end - begin


def test_fragment_ranges_of_several_files_are_merged_separately() -> None:
    """RD-2: the last fragment of one range and the first of the next touch, and belong to two files."""
    begins, ends, numbers = np.array([0, 1, 3, 5]), np.array([1, 3, 6, 6]), np.array([0, 0, 6, 8])
    found = Skyline(spans_at(SPARSE)).joined_spans(begins, ends, numbers)
    assert list(map(intervals_of, found)) == [
        joined(SPARSE[begin:end], number) for begin, end, number in zip(begins, ends, numbers, strict=True)
    ]
