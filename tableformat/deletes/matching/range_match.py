"""Finds the rows of a data file that the spans of range deletes cover.

A data file has one sequence number, so the caller passes only newer spans (RD-2). They are sorted and disjoint
(`coverage.py` prepares them). The test is parity: a row is deleted if an odd number of boundaries is at or below its
key.

Rows sorted by the key are searched for all boundaries at once. Column by column, sort word by sort word, each
boundary's range of candidate rows is narrowed to the rows that equal it so far. After its last bound column, the
remaining rows are the ones that begin with its values. A cut before them is at the start of that range, a cut after
them at its end. Rows in any other order are located with the boundaries' trie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.deletes.matching.boundary_trie import (
    NULL_LEVEL,
    Boundaries,
    BoundaryColumn,
    BoundaryTrie,
    TrieLevel,
    boundaries_of,
)
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.long_words import with_long_values
from tableformat.keys.sort_words import Codes, Flags, NumberWords, RowChoice, SortWords, sort_words_of

Rows: TypeAlias = npt.NDArray[np.int64]


def rows_below(boundaries: Boundaries, columns: Sequence[SortWords], row_count: int) -> Rows:
    """For each boundary, the number of rows below it. Rows are sorted by the key, nulls first."""
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
    """One sort word of one column of the rows."""

    sort_words: SortWords
    index: int
    count: int

    def codes(self, rows: Rows) -> Codes:
        return self.sort_words.level(self.index, self.count, rows)


def _narrow(boundary: BoundaryColumn, rows: SortWords, active: Rows, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The ranges [first, end), narrowed to the rows whose value in this column equals the boundary's."""
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


def _narrow_by_null(rows: SortWords, present: Flags, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The ranges, narrowed to null rows for null boundaries and to other rows for other boundaries."""
    if rows.valid is None:
        return first, np.where(present, end, first)
    return _equal_range(_Level(NumberWords(rows.valid, None), 0, 1), present.astype(np.int64), first, end)


def _equal_range(level: _Level, needles: Codes, first: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The rows of each range [first, end) whose sort word equals the needle. Equal needles in equal ranges are searched
    only once."""
    is_new = np.ones(len(needles), np.bool_)
    is_new[1:] = (needles[1:] != needles[:-1]) | (first[1:] != first[:-1]) | (end[1:] != end[:-1])
    needles, first, end = needles[is_new], first[is_new], end[is_new]
    plain = _whole_int64_column(level.sort_words, first, end)
    if plain is not None:
        left = np.searchsorted(plain, needles, side="left")
        right = np.searchsorted(plain, needles, side="right")
    else:
        left = _bisect(level, needles, first, end, past_equal=False)
        right = _end_of_equal(level, needles, left, end)
    question = np.cumsum(is_new) - 1
    return left[question], right[question]


def _end_of_equal(level: _Level, needles: Codes, left: Rows, end: Rows) -> Rows:
    """The end of the rows that equal the needle. The rows begin at `left`, and their number is usually zero."""
    right = left.copy()
    inside = np.flatnonzero(left < end)
    found = inside[level.codes(left[inside]) == needles[inside]]
    right[found] = _bisect(level, needles[found], left[found] + 1, end[found], past_equal=True)
    return right


def _bisect(level: _Level, needles: Codes, first: Rows, end: Rows, *, past_equal: bool) -> Rows:
    """For each needle, the first row of its range that is not below it, or (past_equal) that is above it."""
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


def _whole_int64_column(sort_words: SortWords, first: Rows, end: Rows) -> Codes | None:
    """The column itself if numpy's own search can be used: int64 without nulls, and every range is the whole column."""
    if not isinstance(sort_words, NumberWords) or sort_words.valid is not None or sort_words.values.dtype != np.int64:
        return None
    is_whole = bool((first == 0).all() and (end == len(sort_words.values)).all())
    return cast("Codes", sort_words.values) if is_whole else None


KeyColumn: TypeAlias = pa.Array | pa.ChunkedArray | None
"""One key column of a file; None if it is null in every row."""

_BATCH_ROWS: Final = 1 << 16
"""Number of rows that walk through the trie at once: their sort words and indexes stay in the processor's cache."""


def deleted_runs(
    columns: Sequence[KeyColumn], spans: SpanArray, *, row_count: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """RD-1, RD-11: the runs [start, end) of deleted rows, sorted and disjoint. The file is sorted by the key, nulls
    first.

    `columns` are the spans' key columns in key order; further columns are ignored. They may have types that promote to
    the key's. `row_count` is needed only if every column is None. O(spans * log rows).

    >>> from pyiceberg.types import LongType
    >>> from tableformat.deletes.spans.spans import spans_of_prefixes
    >>> from tableformat.keys.key_columns import KeyColumns
    >>> spans = spans_of_prefixes(KeyColumns((1,), ("n",), (LongType(),)), pa.table({"n": [3, 5, 6]}))
    >>> starts, ends = deleted_runs([pa.array([1, 3, 3, 4, 5, 6, 7])], spans)
    >>> starts.tolist(), ends.tolist()
    ([1, 4], [3, 6])
    """
    count = _row_count(columns, row_count)
    if len(spans) == 0 or count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    boundaries = boundaries_of(spans)
    sort_words = _key_sort_words(columns, spans, boundaries, count)
    positions = rows_below(boundaries, sort_words, count)
    starts, ends = positions[0::2], positions[1::2]
    is_filled = starts < ends
    starts, ends = starts[is_filled], ends[is_filled]
    if len(starts) == 0:
        return starts, ends
    breaks = starts[1:] > ends[:-1]
    return starts[np.concatenate([[True], breaks])], ends[np.concatenate([breaks, [True]])]


def deleted_mask(columns: Sequence[KeyColumn], spans: SpanArray, *, row_count: int | None = None) -> Flags:
    """RD-1: for rows in any order, whether each row is deleted. The arguments are the same as for `deleted_runs`.

    >>> from pyiceberg.types import LongType
    >>> from tableformat.deletes.spans.spans import spans_of_prefixes
    >>> from tableformat.keys.key_columns import KeyColumns
    >>> spans = spans_of_prefixes(KeyColumns((1,), ("n",), (LongType(),)), pa.table({"n": [3, 5]}))
    >>> deleted_mask([pa.array([5, 1, 3, 4])], spans).tolist()
    [True, False, True, False]
    """
    count = _row_count(columns, row_count)
    mask = np.zeros(count, np.bool_)
    if len(spans) == 0 or count == 0:
        return mask
    boundaries = boundaries_of(spans)
    sort_words = _key_sort_words(columns, spans, boundaries, count)
    trie = BoundaryTrie(boundaries, tuple(column.valid is not None for column in sort_words))
    if trie.all_rows_deleted is not None:
        mask[:] = trie.all_rows_deleted
        return mask
    for start in range(0, count, _BATCH_ROWS):
        stop = min(start + _BATCH_ROWS, count)
        mask[start:stop] = _batch_mask(trie, sort_words, start, stop)
    return mask


def _batch_mask(trie: BoundaryTrie, sort_words: Sequence[SortWords], start: int, stop: int) -> Flags:
    row_count = stop - start
    deleted = np.empty(row_count, np.bool_)
    rows, node, depth = np.arange(row_count), np.zeros(row_count, np.int64), 0
    while len(rows):
        level = trie.level(depth)
        chosen = slice(start, stop) if len(rows) == row_count else rows + start
        settled, going_on, node = level.descend(node, _codes(sort_words, level, chosen, len(rows)))
        deleted[rows] = settled
        rows, depth = rows[going_on], depth + 1
    return deleted


def _codes(sort_words: Sequence[SortWords], level: TrieLevel, rows: RowChoice, row_count: int) -> Codes:
    """The values of the chosen rows that the level compares. Nulls sort first (RD-4)."""
    column = sort_words[level.column]
    if level.level != NULL_LEVEL:
        return column.level(level.level, level.level_count, rows)
    return np.ones(row_count, np.int64) if column.valid is None else column.valid[rows].astype(np.int64)


def _key_sort_words(
    columns: Sequence[KeyColumn], spans: SpanArray, boundaries: Boundaries, row_count: int
) -> list[SortWords]:
    """The sort words of those key columns that some cut binds."""
    column_count = len(boundaries.columns)
    assert len(columns) >= column_count, f"{len(columns)} columns given, the spans bind {column_count}"
    found = []
    for column, key_type, boundary in zip(columns, spans.key.types, boundaries.columns, strict=False):
        words = sort_words_of(column, key_type, row_count)
        found.append(words if boundary.long_values is None else with_long_values(words, boundary.long_values))
    return found


def _row_count(columns: Sequence[KeyColumn], row_count: int | None) -> int:
    lengths = {len(column) for column in columns if column is not None}
    if row_count is not None:
        lengths.add(row_count)
    assert len(lengths) == 1, f"key columns of different or unknown lengths: {sorted(lengths)}"
    return lengths.pop()
