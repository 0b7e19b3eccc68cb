"""Ranges of skyline fragments, compared with plain intervals of integers."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from tableformat.deletes.spans.cut_ranks import rank_cuts
from tableformat.deletes.spans.cuts import CutArray, cut_before
from tableformat.deletes.spans.fragment_range import FragmentRange, Skyline, spans_of
from tableformat.deletes.spans.spans import SpanArray
from tableformat.deletes.spans.touching import SearchableSpans, touching_many
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
def test_a_range_is_what_is_newer_joined_where_it_touches(begin: int, newer_than: int) -> None:
    """RD-2: neither an older fragment nor a gap is bridged."""
    skyline = Skyline(spans_at(SPARSE))
    for end in range(begin + 1, len(SPARSE) + 1):
        expected = joined(SPARSE[begin:end], newer_than)
        if expected:
            fragments = FragmentRange(skyline, begin, end, newer_than)
            assert intervals_of(spans_of(fragments)) == expected
            assert intervals_of(pickle.loads(pickle.dumps(fragments))) == expected
            assert len(fragments) == end - begin


def test_ranges_of_several_files_are_joined_apart() -> None:
    """RD-2: the last fragment of one range and the first of the next touch, and belong to two files."""
    begins, ends, numbers = np.array([0, 1, 3, 5]), np.array([1, 3, 6, 6]), np.array([0, 0, 6, 8])
    found = Skyline(spans_at(SPARSE)).joined_spans(begins, ends, numbers)
    assert list(map(intervals_of, found)) == [
        joined(SPARSE[begin:end], number) for begin, end, number in zip(begins, ends, numbers, strict=True)
    ]


def test_gaps_and_numbers_of_a_range() -> None:
    """RD-9"""
    skyline = Skyline(spans_at(SPARSE))
    first, last = (np.array(sides) for sides in zip(*[(b, e) for b in range(6) for e in range(b + 1, 7)], strict=True))
    assert skyline.gaps_inside(first, last).tolist() == [
        sum(SPARSE[place][1] != SPARSE[place + 1][0] for place in range(begin, end - 1))
        for begin, end in zip(first, last, strict=True)
    ]
    assert skyline.extreme(np.minimum, first, last).tolist() == [
        min(each[2] for each in SPARSE[begin:end]) for begin, end in zip(first, last, strict=True)
    ]
    assert skyline.gaps_inside(np.array([6]), np.array([6])).shape == (1,), "an empty range behind the last"


@pytest.mark.parametrize("questions", [1, 1_000])
def test_spans_that_touch_bounds(questions: int) -> None:
    """RD-10, RD-12: a span that ends at the lower bound, or begins at the upper bound, shares no key with the file."""
    spans = spans_at(SPARSE)
    bounds = [(low, high) for low in range(-1, 23) for high in range(low + 1, 24)]
    lower, upper = cuts([low for low, _ in bounds]).encoded, cuts([high for _, high in bounds]).encoded
    searched = SearchableSpans.of(spans, questions)
    first, last = searched.touching(lower.to_pylist(), upper.to_pylist())
    many = touching_many(spans, lower, upper)
    for place, (low, high) in enumerate(bounds):
        want = [span for span, (begin, end, _) in enumerate(SPARSE) if begin < high and low < end]
        assert list(range(first[place], last[place])) == want
        assert (many[0][place], many[1][place]) == (first[place], last[place])
        for span in want:
            begin, end, _ = SPARSE[span]
            assert searched.holds(span, lower[place].as_py(), upper[place].as_py()) == (begin <= low and high <= end)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_cuts_have_the_ranks_of_their_values(count: int) -> None:
    """RD-1: equal cuts share a rank, on whichever side they are."""
    chosen = random.Random(count)
    begins = [chosen.randrange(-40, 40) for _ in range(count)]
    ends = [begin + chosen.randrange(1, 20) for begin in begins]
    ranks = rank_cuts(cuts(begins), cuts(ends))
    values = sorted({*begins, *ends})
    assert ranks.rank_count == len(values)
    assert ranks.lower.tolist() == [values.index(value) for value in begins]
    assert ranks.upper.tolist() == [values.index(value) for value in ends]
    held = ranks.cuts_at(np.arange(len(values)))
    assert held.encoded.equals(cuts(values).encoded if values else pa.array([], pa.large_binary()))
