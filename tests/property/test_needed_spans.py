"""The spans that can still delete a row, compared with counting keys one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import LongType

from tableformat.deletes.spans.needed_spans import joined_fragments, needed_fragments, spans_still_needed
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import DataFile

KEY = KeyColumns((1,), ("k",), (LongType(),))
KEYS = 12

ranges = st.tuples(st.integers(0, KEYS - 1), st.integers(1, KEYS), st.integers(1, 6)).filter(lambda r: r[0] < r[1])


def spans_of(drawn: list[tuple[int, int, int]]) -> SpanArray:
    return SpanArray.concat(
        [span_of_bounds(KEY, (lower,), (upper,)).with_sequence_number(number) for lower, upper, number in drawn]
    )


def data_of(drawn: list[tuple[int, int, int]]) -> list[DataFile]:
    return [
        DataFile(
            file_path=f"{index}",
            file_format="PARQUET",
            spec_id=0,
            record_count=1,
            file_size_bytes=1,
            sequence_number=number,
            value_counts={1: 1},
            null_value_counts={1: 0},
            lower_bounds={1: to_bound(lower, LongType())},
            upper_bounds={1: to_bound(upper - 1, LongType())},
        )
        for index, (lower, upper, number) in enumerate(drawn)
    ]


def as_ranges(spans: SpanArray) -> list[tuple[int, int, int]]:
    lower, upper = (cuts.columns[0].to_pylist() for cuts in (spans.lower, spans.upper))
    assert spans.sequence_numbers is not None
    return list(zip(lower, upper, spans.sequence_numbers.tolist(), strict=True))


@given(st.lists(ranges, min_size=1, max_size=8), st.lists(ranges, max_size=5))
def test_needed_spans_agree_with_brute_force(
    spans: list[tuple[int, int, int]], files: list[tuple[int, int, int]]
) -> None:
    """RD-2, RD-9, MT-10: nothing that is not needed could have deleted a key, and the rest deletes the same keys."""
    array = spans_of(spans)
    fragments = skyline(array)
    is_needed = needed_fragments(fragments, data_of(files))
    kept, is_newest = spans_still_needed(array, fragments, is_needed)

    def deleted(chosen: list[tuple[int, int, int]]) -> set[tuple[int, int]]:
        return {
            (index, key)
            for index, (first, last, number) in enumerate(files)
            for key in range(first, last)
            if any(lower <= key < upper and number < newer for lower, upper, newer in chosen)
        }

    assert deleted([span for span, needed in zip(spans, kept, strict=True) if needed]) == deleted(spans)
    left = fragments.take(np.flatnonzero(is_needed))
    assert deleted(as_ranges(left)) == deleted(spans)
    joined = joined_fragments(left, data_of(files))
    assert deleted(as_ranges(joined)) == deleted(spans), "MT-19: with larger numbers too"
    assert len(joined) <= len(left)
    for (lower, upper, number), newest in zip(spans, is_newest, strict=True):
        tops = [max(n for a, b, n in spans if a <= key < b) for key in range(lower, upper)]
        assert newest == (number in tops)


def test_no_span_is_needed_without_data() -> None:
    """MT-10"""
    fragments = skyline(spans_of([(0, 3, 5)]))
    assert not needed_fragments(fragments, []).any()
    assert not needed_fragments(SpanArray.empty(KEY).with_sequence_number(1), data_of([(0, 3, 1)])).any()
