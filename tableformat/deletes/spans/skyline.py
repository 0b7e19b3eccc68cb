"""The skyline of overlapping spans: at every point of the key space the newest span that covers it (RD-9).

    7:        e----j                    7:        e----j
    5:    c------h        becomes       5:    c-e
    3:  b-----g      p--s               3:  b-c            p--s

Cuts become ranks, and a span of n elementary intervals is two overlapping blocks of the largest power of two in n.
Blocks of a level are a running maximum in one array; going down a level, every block hands its number to its two
halves. That is O(K log K) array work for K spans, without a loop over spans.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tableformat.deletes.spans.cut_ranks import rank_cuts
from tableformat.deletes.spans.spans import INHERITED, SpanArray

NOTHING = np.int64(-1)
"""A number below every sequence number. Fragments with it are gaps."""


def skyline(spans: SpanArray) -> SpanArray:
    """RD-9: sorted disjoint fragments, each with the newest number over it. Empty spans are removed, and adjacent
    fragments with equal numbers are joined."""
    numbers = spans.sequence_numbers
    assert numbers is not None, "spans need their sequence numbers before they are compared (RD-8)"
    assert not (numbers == INHERITED).any(), "a span still inherits its sequence number (RD-8)"
    if len(spans) == 0:
        return spans
    ranks = rank_cuts(spans.lower, spans.upper)
    newest = newest_per_interval(ranks.lower, ranks.upper, numbers, ranks.rank_count - 1)
    begins = np.flatnonzero(np.diff(newest, prepend=NOTHING - 1))
    ends = np.append(begins[1:], len(newest))
    is_covered = newest[begins] != NOTHING
    begins, ends = begins[is_covered], ends[is_covered]
    return SpanArray(spans.key, ranks.cuts_at(begins), ranks.cuts_at(ends), newest[begins])


def newest_per_interval(
    lower: npt.NDArray[np.int64], upper: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], interval_count: int
) -> npt.NDArray[np.int64]:
    """The largest number over each interval [rank, rank + 1); NOTHING if no span covers it. Numbers are 0 or more.

    In the diagram of the module, b, c, e, g, h, j, p, s are the ranks 0 to 7. A span of three intervals is two blocks
    of two, so it begins on the level of blocks of two: [2, 5) with number 7 is the blocks [2, 4) and [3, 5).

        blocks of two, by their first interval     3 5 7 7 - - -
        intervals: a block's number for both       3 5 7 7 7 - -
        and [6, 7), which is one interval          3 5 7 7 7 - 3

    >>> lower, upper, numbers = np.array([2, 1, 0, 6]), np.array([5, 4, 3, 7]), np.array([7, 5, 3, 3])
    >>> newest_per_interval(lower, upper, numbers, 7).tolist()
    [3, 5, 7, 7, 7, -1, 3]
    """
    is_filled = lower < upper
    lower, upper, numbers = lower[is_filled], upper[is_filled], numbers[is_filled]
    newest = np.full(interval_count, NOTHING)
    if len(lower) == 0:
        return newest
    levels = np.frexp((upper - lower).astype(np.float64))[1] - 1
    for level in range(int(levels.max()), -1, -1):
        block = 1 << level
        # Blocks of the higher level begin at i and at i + block of this level.
        halves = newest.copy()
        if block < interval_count:
            np.maximum(halves[block:], newest[:-block], out=halves[block:])
        here = np.flatnonzero(levels == level)
        np.maximum.at(halves, lower[here], numbers[here])
        np.maximum.at(halves, upper[here] - block, numbers[here])
        newest = halves
    return newest
