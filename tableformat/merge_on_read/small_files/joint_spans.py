"""Rows of several data files that are in the spans of range deletes, in one pass over all rows.

Each file has its own spans: those that are newer and overlap its bounds. The number of the file becomes the first key
column, of rows and of cuts. The spans of all files are then disjoint in one key space:

    file 0   [before('A', 3), after('A', 3))         [before(0, 'A', 3), after(0, 'A', 3))
    file 1   [before(), before('B'))          ->     [before(1), before(1, 'B'))

By RD-1 the cut before(1) is less than every key of file 1 and greater than those of file 0. If the files are sorted by
the key, their concatenation is too. A file with spans of two scopes, which may overlap, occurs twice.

If files have ranges of one skyline instead, each row is looked up in it: the row is deleted if the fragment that
contains it is newer than its file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import LongType, PrimitiveType

from tableformat.deletes.matching.range_match import deleted_mask, deleted_runs
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import range_delete_is_new_enough
from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.fragment_range import FragmentRange, RangeDeletes
from tableformat.deletes.spans.spans import SpanArray
from tableformat.keys.encoding import encode_runs
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.small_files.key_rows import KeyRows, end_to_end, starts_of
from tableformat.merge_on_read.span_positions import bound_columns, positions_in_file

_FILE_NUMBER_ID: Final = -1
"""Represents the column of file numbers among field ids, which are positive."""


@dataclass(frozen=True, slots=True)
class _Alike:
    """The common properties of files and spans that are matched in one pass."""

    field_ids: tuple[int, ...]
    types: tuple[PrimitiveType, ...]
    stored_types: tuple[pa.DataType, ...]
    is_sorted: bool


def joint_span_positions(files: Sequence[KeyRows]) -> PositionSet:
    """RD-1, RD-11: the rows that a span of their file's task covers, numbered over all concatenated files."""
    groups: dict[_Alike, list[tuple[int, SpanArray]]] = defaultdict(list)
    ranges: dict[tuple[int, tuple[pa.DataType, ...]], list[tuple[int, FragmentRange]]] = defaultdict(list)
    for number, file in enumerate(files):
        for spans in file.task.range_deletes:
            if isinstance(spans, FragmentRange):
                stored_types = file.stored_types(columns_of_deletes(spans))
                ranges[id(spans.skyline), stored_types].append((number, spans))
            elif len(spans):
                field_ids = bound_columns(spans)
                is_sorted = file.sorted_by[: len(field_ids)] == field_ids
                types = spans.key.types[: len(field_ids)]
                groups[_Alike(field_ids, types, file.stored_types(field_ids), is_sorted)].append((number, spans))
    starts = starts_of(file.row_count for file in files)
    found = []
    for alike, members in groups.items():
        numbers = np.array([number for number, _ in members])
        runs = _covered_runs(alike, [files[number] for number in numbers], [spans for _, spans in members])
        found.append(PositionSet.from_runs(*positions_in_file(starts, numbers, runs.starts, runs.ends)))
    for of_one_skyline in ranges.values():
        numbers = np.array([number for number, _ in of_one_skyline])
        runs = _newer_fragments([files[number] for number in numbers], [each for _, each in of_one_skyline])
        found.append(PositionSet.from_runs(*positions_in_file(starts, numbers, runs.starts, runs.ends)))
    return PositionSet.union_of(found)


def columns_of_deletes(deletes: RangeDeletes) -> tuple[int, ...]:
    """The field ids of the columns that are needed to compare a row."""
    if isinstance(deletes, FragmentRange):
        return deletes.skyline.fragments.key.field_ids[: deletes.skyline.depth]
    return bound_columns(deletes)


def _newer_fragments(files: Sequence[KeyRows], ranges: Sequence[FragmentRange]) -> PositionSet:
    """RD-1, RD-2: the rows, numbered over the concatenated files, in a fragment of their file's range that is newer
    than the file. All ranges belong to one skyline."""
    skyline = ranges[0].skyline
    fragments, field_ids = skyline.fragments, columns_of_deletes(ranges[0])
    starts = starts_of(file.row_count for file in files)
    keys, begins = encode_runs(end_to_end(files, field_ids), fragments.key.types[: len(field_ids)], starts)
    fragment = skyline.begins.search(keys, right=True) - 1
    ends = fragments.upper.encoded.take(pa.array(np.maximum(fragment, 0)))
    is_inside = np.asarray(pc.less(keys, ends))
    range_of = np.searchsorted(starts, begins, side="right") - 1
    first, last, newer_than = (
        np.array([getattr(each, name) for each in ranges])[range_of] for name in ("begin", "end", "newer_than")
    )
    is_newer = range_delete_is_new_enough(skyline.numbers[fragment], newer_than)
    is_covered = is_inside & (first <= fragment) & (fragment < last) & is_newer
    stops = np.append(begins[1:], starts[-1])
    return PositionSet.from_runs(begins[is_covered], stops[is_covered])


def _covered_runs(alike: _Alike, files: Sequence[KeyRows], spans: Sequence[SpanArray]) -> PositionSet:
    """The covered rows, numbered over the concatenated files."""
    row_counts = [file.row_count for file in files]
    file_numbers = np.repeat(np.arange(len(files)), row_counts)
    columns = [pa.array(file_numbers), *end_to_end(files, alike.field_ids)]
    joint = _side_by_side(spans, len(alike.field_ids))
    if alike.is_sorted:
        return PositionSet.from_runs(*deleted_runs(columns, joint))
    return PositionSet.from_mask(deleted_mask(columns, joint))


def _side_by_side(spans: Sequence[SpanArray], depth: int) -> SpanArray:
    """The spans of file 0, of file 1, and so on, in the key that begins with the number of the file.

    >>> from pyiceberg.types import LongType
    >>> from tableformat.deletes.spans.spans import spans_of_prefixes
    >>> from tableformat.keys.key_columns import KeyColumns
    >>> key = KeyColumns((1,), ("n",), (LongType(),))
    >>> of_two_files = [spans_of_prefixes(key, pa.table({"n": numbers})) for numbers in ([3, 5], [3])]
    >>> joint = _side_by_side(of_two_files, 1)
    >>> joint.lower.columns[0].to_pylist(), joint.lower.columns[1].to_pylist(), joint.lower.depth.tolist()
    ([0, 0, 1], [3, 5, 3], [2, 2, 2])
    """
    file_numbers = pa.array(np.repeat(np.arange(len(spans)), [len(each) for each in spans]))
    of_rows = spans[0].key
    key = KeyColumns(
        (_FILE_NUMBER_ID, *of_rows.field_ids[:depth]),
        ("file", *of_rows.names[:depth]),
        (LongType(), *of_rows.types[:depth]),
    )

    def numbered(cuts: Sequence[CutArray]) -> CutArray:
        columns = [pa.concat_arrays([each.columns[position] for each in cuts]) for position in range(depth)]
        depths = np.concatenate([each.depth for each in cuts]) + np.int8(1)
        return CutArray(key, (file_numbers, *columns), depths, np.concatenate([each.after for each in cuts]))

    return SpanArray(key, numbered([each.lower for each in spans]), numbered([each.upper for each in spans]), None)
