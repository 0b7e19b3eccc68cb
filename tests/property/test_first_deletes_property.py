"""The first of several deletes that applies to a row, compared with brute force over a small key space."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import Cut, is_above, key_of, span_array
from pyiceberg.types import LongType

from tableformat.deletes.matching.delete_numbers import NO_DELETE, DeleteNumbers
from tableformat.deletes.matching.numbered_spans import NumberedSpans
from tableformat.deletes.matching.range_match import deleted_mask

KEY = key_of([LongType(), LongType()])
WIDTH = 6
numbers = st.integers(1, 9)
values = st.integers(0, WIDTH - 1)
cuts = st.tuples(st.lists(values, max_size=2).map(tuple), st.booleans())


@settings(max_examples=examples(1))
@given(st.lists(st.tuples(values, numbers), min_size=1), st.lists(st.tuples(values, st.integers(0, 9))))
def test_first_delete_of_a_key_after_a_sequence_number(
    pairs: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    """CF-10: keys without deletes, or with only older deletes, have none."""
    deletes = DeleteNumbers.of(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))
    assert deletes.numbers.tolist() == sorted({number for _, number in pairs})
    places = [min(place, len(deletes.numbers)) for _, place in asked]
    found = deletes.first(np.array([key for key, _ in asked], np.int64), np.array(places, np.int64))
    later = [deletes.numbers.tolist()[place:] for place in places]
    want = [
        min((number for each, number in pairs if each == key and number in new), default=NO_DELETE)
        for (key, _), new in zip(asked, later, strict=True)
    ]
    assert found.tolist() == want


@settings(max_examples=examples(1), deadline=None)
@given(
    st.lists(st.tuples(cuts, cuts, numbers), min_size=1, max_size=12),
    st.lists(st.tuples(values, values, st.integers(0, 9)), max_size=30),
)
def test_first_span_that_deletes_a_row(spans: list[tuple[Cut, Cut, int]], rows: list[tuple[int, int, int]]) -> None:
    """CF-10, RD-1: spans that overlap, are empty, or cover everything; each row in a file of its own age."""
    of = span_array(KEY, [(lower, upper) for lower, upper, _ in spans], [number for _, _, number in spans])
    numbered = NumberedSpans.of(of, pairs_max=1000)
    assert numbered is not None
    columns = [pa.chunked_array([pa.array([row[place] for row in rows], pa.int64())]) for place in range(2)]
    begin = [int(np.count_nonzero(numbered.deletes.numbers <= age)) for _, _, age in rows]
    found, at = numbered.first(columns[: len(numbered.field_ids)], np.array(begin, np.int64))
    want = {}
    for index, (*row, age) in enumerate(rows):
        over = [
            number
            for lower, upper, number in spans
            if number > age and is_above(tuple(row), lower) and not is_above(tuple(row), upper)
        ]
        if over:
            want[index] = min(over)
    assert dict(zip(found.tolist(), at.tolist(), strict=True)) == want
    in_reach = deleted_mask(columns, numbered.intervals, row_count=len(rows)).tolist()
    assert in_reach == [
        any(is_above(row, lower) and not is_above(row, upper) for lower, upper, _ in spans)
        for row in ((first, second) for first, second, _ in rows)
    ]


def test_too_many_overlapping_spans_are_not_materialized() -> None:
    spans = [((), (value,), value) for value in range(1, 6)]
    of = span_array(KEY, [((lower, False), (upper, True)) for lower, upper, _ in spans], [each[2] for each in spans])
    assert NumberedSpans.of(of, pairs_max=14) is None
    assert NumberedSpans.of(of, pairs_max=15) is not None
