"""The positions of the rows of one data file that are in the spans of range deletes.

row groups      |  0  |  1  |  2  |  3  |  4  |
spans         [---------)    [--)
                 all   read  read  none  none      by statistics; only undecided row groups are read
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray
from tableformat.deletes.spans.touching import SearchableSpans
from tableformat.parquet.key_reader import KeyReader

_ROWS_AT_ONCE: Final = 1 << 21
"""The number of rows whose key columns are in memory at the same time."""

Rows = NDArray[np.int64]


def span_positions(reader: KeyReader, spans: SpanArray) -> PositionSet:
    """RD-1, RD-11: the positions of the rows that a span covers.

    `spans` are sorted, disjoint and newer than the data. Row groups completely inside one span, or outside of all, are
    not read. Rows are searched if the file's own marker says that they are sorted by the columns that the spans bind;
    otherwise they are compared one by one.
    """
    if len(spans) == 0:
        return PositionSet.empty()
    field_ids = bound_columns(spans)
    depth = len(field_ids)
    lower, upper = reader.bounds(field_ids, spans.key.types[:depth])
    searchable = SearchableSpans.of(spans, len(lower))
    first, last = searchable.touching(lower, upper)
    is_covered = _covering(searchable, first, last, lower, upper)
    starts = reader.file.row_group_starts
    covered = np.flatnonzero(is_covered)
    run_starts, run_ends = [starts[covered]], [starts[covered + 1]]
    is_sorted = (reader.file.sorted_by or ())[:depth] == field_ids
    for groups in batches(np.flatnonzero((first < last) & ~is_covered), starts):
        columns = reader.columns(field_ids, groups.tolist())
        near = spans.slice(int(first[groups].min()), int(last[groups].max()))
        if is_sorted:
            row_starts, row_ends = deleted_runs(columns, near)
        else:
            in_batch = PositionSet.from_mask(deleted_mask(columns, near))
            row_starts, row_ends = in_batch.starts, in_batch.ends
        file_starts, file_ends = positions_in_file(starts, groups, row_starts, row_ends)
        run_starts.append(file_starts)
        run_ends.append(file_ends)
    return PositionSet.from_runs(np.concatenate(run_starts), np.concatenate(run_ends))


def bound_columns(spans: SpanArray) -> tuple[int, ...]:
    """The field ids of the leading columns that a cut binds, which are needed to compare a row. At least one span."""
    return spans.key.field_ids[: int(max(spans.lower.depth.max(), spans.upper.depth.max()))]


def near_spans(reader: KeyReader, spans: SpanArray) -> SpanArray:
    """RD-12: the spans that may share a key with the file. The spans are sorted and disjoint, and bind every column."""
    lower, upper = reader.bounds(spans.key.field_ids, spans.key.types)
    first, last = SearchableSpans.of(spans, len(lower)).touching(lower, upper)
    start = int(first.min(initial=len(spans)))
    return spans.slice(start, max(start, int(last.max(initial=0))))


def _covering(
    searchable: SearchableSpans, first: Rows, last: Rows, group_lower: list[bytes], group_upper: list[bytes]
) -> NDArray[np.bool_]:
    """RD-10: for each row group whether one span contains all its keys."""
    is_covered = np.zeros(len(first), np.bool_)
    for group in np.flatnonzero(last - first == 1).tolist():
        is_covered[group] = searchable.holds(int(first[group]), group_lower[group], group_upper[group])
    return is_covered


def batches(groups: Rows, starts: Rows) -> Iterator[Rows]:
    """Row groups in file order, in groups of about `_ROWS_AT_ONCE` rows."""
    rows_before = np.cumsum(starts[groups + 1] - starts[groups]) - (starts[groups + 1] - starts[groups])
    batch = rows_before // _ROWS_AT_ONCE
    yield from np.split(groups, np.flatnonzero(np.diff(batch)) + 1) if len(groups) else ()


def positions_in_file(starts: Rows, groups: Rows, row_starts: Rows, row_ends: Rows) -> tuple[Rows, Rows]:
    """Runs of rows, counted over chosen row groups put end to end, as runs of positions in the file.

    `starts` is the first position of every row group of the file and the row count. A run that goes on from one chosen
    row group into the next is cut between them.

    Row groups 1 and 3 of a file with ten rows in each: rows 0 to 9 that were read are positions 10 to 19 of the file,
    rows 10 to 19 are positions 30 to 39. The run of rows [5, 12) becomes two runs.

    >>> starts, ends = positions_in_file(np.array([0, 10, 20, 30, 40]), np.array([1, 3]), np.array([5]), np.array([12]))
    >>> starts.tolist(), ends.tolist()
    ([15, 30], [20, 32])
    """
    lengths = starts[groups + 1] - starts[groups]
    ends = np.cumsum(lengths)
    first = np.searchsorted(ends, row_starts, side="right")
    pieces = np.searchsorted(ends, row_ends, side="left") - first + 1
    run = np.repeat(np.arange(len(row_starts)), pieces)
    group = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[run]
    begins = (ends - lengths)[group]
    shift = starts[groups[group]] - begins
    return np.maximum(row_starts[run], begins) + shift, np.minimum(row_ends[run], ends[group]) + shift
