"""Whether range deletes leave whole data files clean, covered or partial, from manifest entries alone (RD-10).

fragments      |--5--|--3--|      |----7----|
file, seq 4      [..]                              covered: one unbroken run of newer fragments holds all its keys
file, seq 4                 [...]                  clean: no newer fragment touches it
file, seq 4                       [.....]          partial: its rows are compared with the fragments that touch it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.deletes.rules import committed_sequence_number, range_delete_is_new_enough
from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.fragment_range import FragmentRange, RangeDeletes, Skyline
from tableformat.deletes.spans.key_bound_columns import KeyBoundColumns, key_bound_columns
from tableformat.deletes.spans.spans import SpanArray
from tableformat.deletes.spans.touching import touching_many
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.columns.data_columns import DataColumns
from tableformat.metadata.content_file import DataFile

Indices: TypeAlias = npt.NDArray[np.int64]

_FRAGMENTS_AT_ONCE: Final = 1 << 20
"""Maximum number of fragments that are compared with the numbers of files at once, to bound the memory."""
_SPANS_OF_FILES_MAX: Final = 200_000
"""Maximum number of spans of all files of a plan together with which each file gets its own spans."""
_FEW_SPANS_OF_FILES: Final = 20_000
"""Up to this total, each file always gets its own spans."""
_SPANS_OF_A_FILE: Final = 256
"""Maximum average number for each file, between these two totals. With more spans, looking up rows is faster."""


class Coverage(Enum):
    """RD-10: the effect of range deletes on a data file, which decides whether it must be opened for them."""

    CLEAN = "clean"
    """No row can be deleted."""
    COVERED = "covered"
    """Every row is deleted; the file need not be opened."""
    PARTIAL = "partial"
    """The rows must be compared with the spans."""


def classify(fragments: SpanArray, data: DataFile) -> tuple[Coverage, SpanArray]:
    """The coverage of one file; see `classify_many`."""
    return classify_many(fragments, [data])[0]


def classify_many(fragments: SpanArray, data_files: Sequence[DataFile]) -> list[tuple[Coverage, SpanArray]]:
    """RD-2, RD-10: for each file, its coverage and the spans that its rows must be compared with; see
    `classify_bounds`. Clean files have no spans."""
    results = [(Coverage.CLEAN, fragments.slice(0, 0))] * len(data_files)
    if len(fragments) and data_files:
        numbers = np.fromiter((committed_sequence_number(data) for data in data_files), np.int64, len(data_files))
        bounds = _bounds_of(data_files, fragments.key)
        for position, found in classify_bounds(fragments, bounds, numbers).items():
            results[position] = found
    return results


def touched_files(spans: SpanArray, files: DataColumns) -> npt.NDArray[np.bool_]:
    """RD-10: for each file of any age, whether one of the sorted, disjoint spans may contain one of its keys, judged by
    its bounds. Raises CorruptFileError if the bytes of a bound are not a value of the column."""
    bounds = key_bound_columns(files, spans.key)
    first, last = touching_many(spans, bounds.lower, bounds.upper)
    return first < last


def _bounds_of(data_files: Sequence[DataFile], key: KeyColumns) -> KeyBoundColumns:
    bounds = [key_bounds(data, key) for data in data_files]
    lower = pa.array([file.lower for file in bounds], pa.large_binary())
    return KeyBoundColumns(lower, pa.array([file.upper for file in bounds], pa.large_binary()))


def classify_bounds(
    fragments: SpanArray, bounds: KeyBoundColumns, numbers: Indices
) -> dict[int, tuple[Coverage, SpanArray]]:
    """RD-2, RD-10: each file that is not clean, with the spans that its rows must be compared with, by index,
    ascending.

    `fragments` are a skyline: sorted, disjoint, numbered. `numbers` are the data sequence numbers of the files. The
    spans of a file are newer than it and touch its bounds (RD-12). Adjacent fragments are joined and get their smallest
    number. Files that need the same spans share them.
    """
    verdicts, wanted, index = _classified(fragments, bounds, numbers)
    shared = _spans_of(fragments, index, set(wanted.values()))
    return {position: (verdict, shared[wanted[position]]) for position, verdict in verdicts.items()}


def classify_for_plan(
    fragments: SpanArray, bounds: KeyBoundColumns, numbers: Indices
) -> dict[int, tuple[Coverage, RangeDeletes]]:
    """Like `classify_bounds`, but if the spans of all files together are many, each file gets a range of the fragments
    instead of its own spans."""
    verdicts, wanted, index = _classified(fragments, bounds, numbers)
    found: Mapping[_Wanted, RangeDeletes]
    of_their_own = min(_SPANS_OF_FILES_MAX, max(_FEW_SPANS_OF_FILES, _SPANS_OF_A_FILE * len(wanted)))
    if sum(end - begin for begin, end, _ in wanted.values()) > of_their_own:
        everything = int(index.numbers.min()) - 1
        found = {
            each: FragmentRange(index, each[0], each[1], everything if each[2] is None else each[2])
            for each in set(wanted.values())
        }
    else:
        found = _spans_of(fragments, index, set(wanted.values()))
    return {position: (verdict, found[wanted[position]]) for position, verdict in verdicts.items()}


def _classified(
    fragments: SpanArray, bounds: KeyBoundColumns, numbers: Indices
) -> tuple[dict[int, Coverage], dict[int, _Wanted], Skyline]:
    """Each file that is not clean, by index, ascending: its verdict, and the spans that it needs."""
    index = Skyline(fragments)
    if len(fragments) == 0 or len(numbers) == 0:
        return {}, {}, index
    first, last = touching_many(fragments, bounds.lower, bounds.upper)
    newest = index.extreme(np.maximum, first, last)
    oldest = index.extreme(np.minimum, first, last)
    is_clean = (first >= last) | ~range_delete_is_new_enough(newest, numbers)
    all_newer = range_delete_is_new_enough(oldest, numbers)
    # Whether the range contains older fragments or adjacent ones that must be joined. Such spans are built, others are
    # a slice.
    needs_joining = ~is_clean & (~all_newer | (index.gaps_inside(first, last) < last - first - 1))
    reached = np.flatnonzero(~is_clean)
    is_covered = _is_covered(fragments, index, bounds, first, last, reached) & all_newer[reached]
    wanted: list[_Wanted] = [
        (begin, end, number if joining else None)
        for begin, end, number, joining in zip(
            first[reached].tolist(),
            last[reached].tolist(),
            numbers[reached].tolist(),
            needs_joining[reached].tolist(),
            strict=True,
        )
    ]
    verdicts = [Coverage.COVERED if covers_all else Coverage.PARTIAL for covers_all in is_covered.tolist()]
    positions = reached.tolist()
    return dict(zip(positions, verdicts, strict=True)), dict(zip(positions, wanted, strict=True)), index


def _is_covered(
    fragments: SpanArray,
    index: Skyline,
    bounds: KeyBoundColumns,
    first: Indices,
    last: Indices,
    reached: Indices,
) -> npt.NDArray[np.bool_]:
    """For each reached file, whether the fragments that touch it cover all its keys without a gap."""
    chosen, begin, end = pa.array(reached), first[reached], last[reached] - 1
    holds_lower = pc.less_equal(fragments.lower.encoded.take(pa.array(begin)), bounds.lower.take(chosen))
    holds_upper = pc.less_equal(bounds.upper.take(chosen), fragments.upper.encoded.take(pa.array(end)))
    holds_all: npt.NDArray[np.bool_] = np.asarray(holds_lower) & np.asarray(holds_upper)
    holds_all &= index.gap_count[begin] == index.gap_count[end]
    return holds_all


_Wanted: TypeAlias = tuple[int, int, int | None]
"""A range of fragments, and the number that its spans must exceed. None selects all fragments, which then do not touch.
"""


def _spans_of(fragments: SpanArray, index: Skyline, wanted: Iterable[_Wanted]) -> dict[_Wanted, SpanArray]:
    """RD-2: the spans of each range, with touching ones joined."""
    found: dict[_Wanted, SpanArray] = {}
    joining: list[tuple[int, int, int]] = []
    for each in wanted:
        begin, end, number = each
        if number is None:
            found[each] = fragments.slice(begin, end)
        else:
            joining.append((begin, end, number))
    if joining:
        begins, ends, numbers = np.array(joining, np.int64).T
        together = (np.cumsum(ends - begins) - (ends - begins)) // _FRAGMENTS_AT_ONCE
        for part in np.split(np.arange(len(joining)), np.flatnonzero(np.diff(together)) + 1):
            spans = index.joined_spans(begins[part], ends[part], numbers[part])
            found.update((joining[number], each) for number, each in zip(part.tolist(), spans, strict=True))
    return found
