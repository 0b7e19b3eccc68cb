"""The effect of range deletes on whole files, and ranges of numbers, compared with brute force."""

from __future__ import annotations

import pickle
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from example_counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from key_cases import key_of, span_array
from pyiceberg.types import LongType

from tableformat.deletes.spans import coverage
from tableformat.deletes.spans.coverage import Coverage, classify_bounds, classify_for_plan
from tableformat.deletes.spans.extremes import extremes
from tableformat.deletes.spans.fragment_range import FragmentRange
from tableformat.deletes.spans.key_bound_columns import KeyBoundColumns
from tableformat.deletes.spans.skyline import skyline
from tableformat.keys.encoding import AFTER_MARKER, encode_values

KEY = key_of([LongType()])
WIDTH = 24
numbers = st.integers(1, 6)
intervals = st.tuples(st.integers(0, WIDTH - 6), st.integers(0, 5)).map(lambda pair: (pair[0], sum(pair)))
numbered = st.tuples(intervals, numbers)
Fragment = tuple[int, int, int]
TOUCHING = [((first, first + 2), 5 + first % 2) for first in range(0, WIDTH, 3)]
"""Adjacent spans, with two sequence numbers by turns: files of two keys are adjacent too, and spans for one end where
spans for the next begin."""


def encoded(value: int) -> bytes:
    return encode_values((value,), KEY.types)


def fragments_of(spans: list[tuple[tuple[int, int], int]]) -> list[Fragment]:
    """RD-9: first and last value, both in it, and the newest number over them."""
    newest = [max((number for (a, b), number in spans if a <= value <= b), default=0) for value in range(WIDTH)]
    cuts = {0, WIDTH, *(a for (a, _), _ in spans), *(b + 1 for (_, b), _ in spans)}
    pieces = [(a, b - 1, newest[a]) for a, b in pairwise(sorted(cuts))]
    runs = [list(run) for _, run in groupby(pieces, key=lambda piece: piece[2])]
    return [(run[0][0], run[-1][1], run[0][2]) for run in runs if run[0][2]]


def meant_for(fragments: list[Fragment], lower: int, upper: int, number: int) -> list[Fragment]:
    """RD-2, RD-10: what touches the file and is newer, neighbours joined under the smallest of their numbers."""
    joined: list[Fragment] = []
    for first, last, newest in fragments:
        if newest <= number or last < lower or first > upper:
            continue
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last, min(joined[-1][2], newest))
        else:
            joined.append((first, last, newest))
    return joined


@settings(max_examples=examples(2), deadline=None)
@given(
    st.lists(numbered, max_size=12), st.lists(numbered, max_size=6), st.sampled_from([1, 2, 3, 1 << 20]), st.booleans()
)
@example(TOUCHING, [((first, first + 5), 0) for first in (0, 6, 12, 18)], 1 << 20, True)
def test_files_get_the_merged_spans_that_overlap_them(
    spans: list[tuple[tuple[int, int], int]], files: list[tuple[tuple[int, int], int]], at_once: int, sort: bool
) -> None:
    """RD-2, RD-10: regardless of the files that are looked up together, and of the number of fragments that are
    compared at once."""
    files = sorted(files) if sort else files
    cuts = [(((a,), False), ((b + 1,), False)) for (a, b), _ in spans]
    array = skyline(span_array(KEY, cuts, [number for _, number in spans]))
    bounds = KeyBoundColumns(
        pa.array([encoded(lower) for (lower, _), _ in files], pa.large_binary()),
        pa.array([encoded(upper) + AFTER_MARKER for (_, upper), _ in files], pa.large_binary()),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "_FRAGMENTS_AT_ONCE", at_once)
        numbers = np.array([number for _, number in files], np.int64)
        found = classify_bounds(array, bounds, numbers)
        patch.setattr(coverage, "_SPANS_OF_FILES_MAX", 0)
        ranges = classify_for_plan(array, bounds, numbers)
    expected = {}
    for position, ((lower, upper), number) in enumerate(files):
        if meant := meant_for(fragments_of(spans), lower, upper, number):
            covers = any(first <= lower and upper <= last for first, last, _ in meant)
            expected[position] = (Coverage.COVERED if covers else Coverage.PARTIAL, meant)
    assert list(found) == list(ranges) == list(expected)
    for position, (verdict, meant) in expected.items():
        got, of_file = found[position]
        assert got is verdict
        assert of_file.sequence_numbers is not None
        assert of_file.lower.encoded.to_pylist() == [encoded(first) for first, _, _ in meant]
        assert of_file.upper.encoded.to_pylist() == [encoded(last + 1) for _, last, _ in meant]
        assert of_file.sequence_numbers.tolist() == [number for _, _, number in meant]
        verdict_of_range, of_range = ranges[position]
        assert verdict_of_range is verdict
        assert isinstance(of_range, FragmentRange)
        assert len(of_range) >= len(of_file)
        for again in (of_range.spans(), pickle.loads(pickle.dumps(of_range))):
            assert again.lower.encoded.equals(of_file.lower.encoded)
            assert again.upper.encoded.equals(of_file.upper.encoded)


@pytest.mark.parametrize(("each", "total_max", "shares"), [(2, 100, True), (3, 100, False), (3, 8, True)])
def test_files_with_many_spans_share_a_skyline(each: int, total_max: int, shares: bool) -> None:
    """Three files; three spans overlap each of them."""
    array = skyline(span_array(KEY, [(((a,), False), ((a + 1,), False)) for a in (0, 2, 4)], [7, 7, 7]))
    lower, upper = encoded(-1), encoded(9) + AFTER_MARKER
    bounds = KeyBoundColumns(pa.array([lower] * 3, pa.large_binary()), pa.array([upper] * 3, pa.large_binary()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "_FEW_SPANS_OF_FILES", 1)
        patch.setattr(coverage, "_SPANS_OF_A_FILE", each)
        patch.setattr(coverage, "_SPANS_OF_FILES_MAX", total_max)
        found = classify_for_plan(array, bounds, np.array([4, 5, 6], np.int64))
    assert [isinstance(deletes, FragmentRange) for _, deletes in found.values()] == [shares] * 3


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.data())
def test_range_minimum_and_maximum_match_brute_force(numbers: list[int], data: st.DataObject) -> None:
    ends = st.tuples(st.integers(0, len(numbers) - 1), st.integers(1, len(numbers)))
    ranges = data.draw(st.lists(ends.filter(lambda pair: pair[0] < pair[1]), max_size=8))
    first, last = (np.array([pair[side] for pair in ranges], np.int64) for side in (0, 1))
    for better, of_python in ((np.maximum, max), (np.minimum, min)):
        found = extremes(better, np.array(numbers, np.int64), first, last)
        assert found.tolist() == [of_python(numbers[a:b]) for a, b in ranges]
