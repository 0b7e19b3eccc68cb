"""Span algebra compared with brute force over a small key space."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow.compute as pc
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from key_cases import Cut, is_above, key_of, span_array
from pyiceberg.types import LongType

from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge

KEY = key_of([LongType()])
WIDTH = 16
cuts = st.tuples(st.integers(0, WIDTH - 1).map(lambda value: (value,)) | st.just(()), st.booleans())
numbered_spans = st.lists(st.tuples(cuts, cuts, st.integers(0, 6)), max_size=20)


def newest_per_key(spans: list[tuple[Cut, Cut, int]]) -> list[int | None]:
    """RD-9, the plain way."""
    newest: list[int | None] = []
    for value in range(WIDTH):
        over = [number for lower, upper, number in spans if is_above((value,), lower) and not is_above((value,), upper)]
        newest.append(max(over, default=None))
    return newest


def array_of(spans: list[tuple[Cut, Cut, int]]) -> SpanArray:
    return span_array(KEY, [(lower, upper) for lower, upper, _ in spans], [number for _, _, number in spans])


def listed(spans: SpanArray) -> list[tuple[bytes, bytes]]:
    return list(zip(spans.lower.encoded.to_pylist(), spans.upper.encoded.to_pylist(), strict=True))


def covered_keys(spans: SpanArray) -> list[int | None]:
    cut_lists = [
        [
            ((column,) if depth else (), bool(after))
            for column, depth, after in zip(array.columns[0].to_pylist(), array.depth, array.after, strict=True)
        ]
        for array in (spans.lower, spans.upper)
    ]
    numbers = [0] * len(spans) if spans.sequence_numbers is None else spans.sequence_numbers.tolist()
    return newest_per_key(list(zip(*cut_lists, numbers, strict=True)))


def assert_sorted_and_disjoint(spans: SpanArray) -> None:
    pairs = listed(spans)
    assert all(lower < upper for lower, upper in pairs)
    assert all(left[1] <= right[0] for left, right in pairwise(pairs))


@settings(max_examples=examples(1.5), deadline=None)
@given(numbered_spans)
def test_skyline_has_the_newest_span_at_every_key(spans: list[tuple[Cut, Cut, int]]) -> None:
    """RD-9: against brute force; fragments are sorted, disjoint, and no two that touch carry one number."""
    fragments = skyline(array_of(spans))
    assert_sorted_and_disjoint(fragments)
    assert covered_keys(fragments) == newest_per_key(spans)
    pairs, numbers = listed(fragments), fragments.sequence_numbers
    assert numbers is not None
    touching = [left[1] == right[0] for left, right in pairwise(pairs)]
    assert not any(joint and numbers[index] == numbers[index + 1] for index, joint in enumerate(touching))


@settings(max_examples=examples(1), deadline=None)
@given(numbered_spans, st.randoms(use_true_random=False))
def test_skyline_is_idempotent_and_order_independent(spans: list[tuple[Cut, Cut, int]], random: object) -> None:
    """RD-9."""
    fragments = skyline(array_of(spans))
    again = skyline(fragments)
    shuffled = list(spans)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = skyline(array_of(shuffled))
    for result in (again, other):
        assert listed(result) == listed(fragments)
        assert np.array_equal(result.sequence_numbers, fragments.sequence_numbers)


@settings(max_examples=examples(1), deadline=None)
@given(numbered_spans, st.integers(0, 20))
def test_skyline_is_associative(spans: list[tuple[Cut, Cut, int]], split: int) -> None:
    """RD-9: delete files may be combined in any grouping."""
    parts = [skyline(array_of(part)) for part in (spans[:split], spans[split:])]
    combined = skyline(SpanArray.concat(parts))
    whole = skyline(array_of(spans))
    assert listed(combined) == listed(whole)
    assert np.array_equal(combined.sequence_numbers, whole.sequence_numbers)


@settings(max_examples=examples(1), deadline=None)
@given(st.lists(st.tuples(cuts, cuts), max_size=20))
def test_merged_spans_cover_the_union_and_are_disjoint(pairs: list[tuple[Cut, Cut]]) -> None:
    """RD-7: union, sorted, disjoint, idempotent."""
    merged = sort_and_merge(span_array(KEY, pairs))
    assert_sorted_and_disjoint(merged)
    assert covered_keys(merged) == newest_per_key([(lower, upper, 0) for lower, upper in pairs])
    assert not pc.any(pc.equal(merged.upper.encoded[:-1], merged.lower.encoded[1:])).as_py()
    assert listed(sort_and_merge(merged)) == listed(merged)
