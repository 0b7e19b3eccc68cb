"""Which rows of a data file the spans of range deletes cover.

A data file has one sequence number, so the caller passes only spans newer than it (RD-2), sorted and disjoint
(`verdict.py` makes them), and the test is parity: a row is deleted when an odd number of boundaries lies at or below
its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tableformat.deletes.matching.boundaries import boundaries_of
from tableformat.deletes.matching.boundary_trie import NULL_LEVEL, BoundaryTrie, TrieLevel
from tableformat.deletes.matching.sorted_search import rows_below
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.sort_words import Codes, Flags, KeyWords, RowChoice, words_of

KeyColumn: TypeAlias = pa.Array | pa.ChunkedArray | None
"""One key column of a file; None: null in every row."""

_BATCH_ROWS: Final = 1 << 16
"""Rows walked through the trie at once: their words and places stay in the processor's cache."""


def deleted_runs(
    columns: Sequence[KeyColumn], spans: SpanArray, *, row_count: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """RD-1, RD-11: the runs [start, end) of deleted rows of a file sorted by the key, nulls first; sorted and disjoint.

    `columns` are the spans' key columns in key order, further ones are ignored; they may be of types that promote to
    the key's. `row_count` is needed only when every column is None. O(spans * log rows).
    """
    count = _row_count(columns, row_count)
    if len(spans) == 0 or count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    boundaries = boundaries_of(spans)
    words = _key_words(columns, spans, len(boundaries.columns), count)
    positions = rows_below(boundaries, words, count)
    starts, ends = positions[0::2], positions[1::2]
    is_filled = starts < ends
    starts, ends = starts[is_filled], ends[is_filled]
    if len(starts) == 0:
        return starts, ends
    breaks = starts[1:] > ends[:-1]
    return starts[np.concatenate([[True], breaks])], ends[np.concatenate([breaks, [True]])]


def deleted_mask(columns: Sequence[KeyColumn], spans: SpanArray, *, row_count: int | None = None) -> Flags:
    """RD-1: for rows in any order, True where the row is deleted. Arguments as for `deleted_runs`."""
    count = _row_count(columns, row_count)
    mask = np.zeros(count, np.bool_)
    if len(spans) == 0 or count == 0:
        return mask
    boundaries = boundaries_of(spans)
    words = _key_words(columns, spans, len(boundaries.columns), count)
    trie = BoundaryTrie(boundaries, tuple(column.valid is not None for column in words))
    if trie.all_rows_deleted is not None:
        mask[:] = trie.all_rows_deleted
        return mask
    for start in range(0, count, _BATCH_ROWS):
        stop = min(start + _BATCH_ROWS, count)
        mask[start:stop] = _batch_mask(trie, words, start, stop)
    return mask


def _batch_mask(trie: BoundaryTrie, words: Sequence[KeyWords], start: int, stop: int) -> Flags:
    row_count = stop - start
    deleted = np.empty(row_count, np.bool_)
    rows, node, depth = np.arange(row_count), np.zeros(row_count, np.int64), 0
    while len(rows):
        level = trie.level(depth)
        chosen = slice(start, stop) if len(rows) == row_count else rows + start
        settled, going_on, node = level.descend(node, _codes(words, level, chosen, len(rows)))
        deleted[rows] = settled
        rows, depth = rows[going_on], depth + 1
    return deleted


def _codes(words: Sequence[KeyWords], level: TrieLevel, rows: RowChoice, row_count: int) -> Codes:
    """What the level compares of the chosen rows; nulls sort first (RD-4)."""
    column = words[level.column]
    if level.level != NULL_LEVEL:
        return column.level(level.level, level.level_count, rows)
    return np.ones(row_count, np.int64) if column.valid is None else column.valid[rows].astype(np.int64)


def _key_words(columns: Sequence[KeyColumn], spans: SpanArray, column_count: int, row_count: int) -> list[KeyWords]:
    """The words of those key columns that some cut binds."""
    assert len(columns) >= column_count, f"{len(columns)} columns given, the spans bind {column_count}"
    pairs = zip(columns[:column_count], spans.key.types[:column_count], strict=True)
    return [words_of(column, key_type, row_count) for column, key_type in pairs]


def _row_count(columns: Sequence[KeyColumn], row_count: int | None) -> int:
    lengths = {len(column) for column in columns if column is not None}
    if row_count is not None:
        lengths.add(row_count)
    assert len(lengths) == 1, f"key columns of different lengths, or of none that is known: {sorted(lengths)}"
    return lengths.pop()
