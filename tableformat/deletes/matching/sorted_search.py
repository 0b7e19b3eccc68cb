"""Where boundaries fall among rows that are sorted by the key: binary search, all boundaries at once.

Column by column, level by level, each boundary's range of candidate rows narrows to the rows that equal it so far.
What is left after its last bound column are the rows that begin with its values: a cut before them lies at the start
of that range, a cut after them at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tableformat.deletes.matching.boundaries import Boundaries, BoundaryColumn
from tableformat.keys.sort_words import Codes, Flags, KeyWords, NumberWords

Rows: TypeAlias = npt.NDArray[np.int64]


def rows_below(boundaries: Boundaries, columns: Sequence[KeyWords], row_count: int) -> Rows:
    """For each boundary the number of rows below it. Rows are sorted by the key, nulls first."""
    first = np.zeros(len(boundaries), np.int64)
    end = np.full(len(boundaries), row_count, np.int64)
    for position, (boundary, rows) in enumerate(zip(boundaries.columns, columns, strict=False)):
        active = np.flatnonzero((boundaries.depth > position) & (first < end))
        if len(active) == 0:
            break
        first[active], end[active] = _narrow(boundary, rows, active, first[active], end[active])
    return np.where(boundaries.after, end, first)


@dataclass(frozen=True, slots=True)
class _Level:
    """One word of one column of the rows."""

    words: KeyWords
    index: int
    count: int

    def codes(self, rows: Rows) -> Codes:
        return self.words.level(self.index, self.count, rows)


def _narrow(boundary: BoundaryColumn, rows: KeyWords, active: Rows, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The ranges [first, end) cut down to the rows whose value in this column equals the boundary's."""
    comparable = np.arange(len(active))
    if boundary.has_null or rows.valid is not None:
        present = boundary.valid()[active]
        first, end = _narrow_by_null(rows, present, first, end)
        comparable = np.flatnonzero(present & (first < end))
    for index in range(boundary.level_count):
        level = _Level(rows, index, boundary.level_count)
        needles = boundary.level(index)[active[comparable]]
        first[comparable], end[comparable] = _equal_range(level, needles, first[comparable], end[comparable])
        comparable = comparable[first[comparable] < end[comparable]]
        if len(comparable) == 0:
            break
    return first, end


def _narrow_by_null(rows: KeyWords, present: Flags, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The ranges cut down to null rows for null boundaries and to the others for the others."""
    if rows.valid is None:
        return first, np.where(present, end, first)
    return _equal_range(_Level(NumberWords(rows.valid, None), 0, 1), present.astype(np.int64), first, end)


def _equal_range(level: _Level, needles: Codes, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The rows of each range [first, end) whose word equals the needle; like questions are asked once."""
    is_new = np.ones(len(needles), np.bool_)
    is_new[1:] = (needles[1:] != needles[:-1]) | (first[1:] != first[:-1]) | (end[1:] != end[:-1])
    needles, first, end = needles[is_new], first[is_new], end[is_new]
    plain = _whole_int64_column(level.words, first, end)
    if plain is not None:
        left = np.searchsorted(plain, needles, side="left")
        right = np.searchsorted(plain, needles, side="right")
    else:
        left = _bisect(level, needles, first, end, past_equal=False)
        right = _end_of_equal(level, needles, left, end)
    question = np.cumsum(is_new) - 1
    return left[question], right[question]


def _end_of_equal(level: _Level, needles: Codes, left: Rows, end: Rows) -> Rows:
    """Where the rows equal to the needle end; they begin at `left`, and most often there are none."""
    right = left.copy()
    inside = np.flatnonzero(left < end)
    found = inside[level.codes(left[inside]) == needles[inside]]
    right[found] = _bisect(level, needles[found], left[found] + 1, end[found], past_equal=True)
    return right


def _bisect(level: _Level, needles: Codes, first: Rows, end: Rows, *, past_equal: bool) -> Rows:
    """For each needle the first row of its range that is not below it, or (past_equal) that is above it."""
    low, high = first.copy(), end.copy()
    searching = np.flatnonzero(low < high)
    while len(searching):
        middle = (low[searching] + high[searching]) >> 1
        codes = level.codes(middle)
        goes_up = codes <= needles[searching] if past_equal else codes < needles[searching]
        low[searching[goes_up]] = middle[goes_up] + 1
        high[searching[~goes_up]] = middle[~goes_up]
        searching = searching[low[searching] < high[searching]]
    return low


def _whole_int64_column(words: KeyWords, first: Rows, end: Rows) -> Codes | None:
    """The column itself when numpy's own search applies: int64 without nulls, every range the whole column."""
    if not isinstance(words, NumberWords) or words.valid is not None or words.values.dtype != np.int64:
        return None
    is_whole = bool((first == 0).all() and (end == len(words.values)).all())
    return cast("Codes", words.values) if is_whole else None
