"""Finds the range deletes that can still delete a row, from bounds alone (MT-10).

fragments    |--5--|--8--|     |--6--|        data files     [=2=====]   [==7==]

|--5--|--8--|  are needed: the file with number 2 may have rows there
                           |--6--|  is not: the only file there is newer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tableformat.deletes.rules import committed_sequence_number, range_delete_is_new_enough
from tableformat.deletes.spans.bounds import key_bounds
from tableformat.deletes.spans.cut_ranks import rank_cuts
from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.extremes import extremes
from tableformat.deletes.spans.neighbours import joined_neighbours
from tableformat.deletes.spans.skyline import NOTHING, newest_per_interval, skyline
from tableformat.deletes.spans.spans import SpanArray
from tableformat.deletes.spans.touching import SearchableSpans
from tableformat.metadata.content_file import DataFile

_NEVER = np.iinfo(np.int64).max


def needed_fragments(fragments: SpanArray, data_files: Sequence[DataFile]) -> npt.NDArray[np.bool_]:
    """RD-2, RD-10, RD-12: for each fragment of a skyline, whether its keys meet the bounds of an older data file.

    `data_files` are all live files in the scope of the spans. The oldest data file over each fragment is found like the
    newest span over an interval, with an inverted skyline.
    """
    numbers = fragments.sequence_numbers
    assert numbers is not None, "a skyline has sequence numbers"
    if len(fragments) == 0 or not data_files:
        return np.zeros(len(fragments), np.bool_)
    first, last, data_numbers = _met_fragments(fragments, data_files)
    youngest = int(data_numbers.max())
    turned = newest_per_interval(first, last, youngest - data_numbers, len(fragments))
    oldest = np.where(turned == NOTHING, _NEVER, youngest - turned)
    return range_delete_is_new_enough(numbers, oldest)


def joined_fragments(fragments: SpanArray, data_files: Sequence[DataFile]) -> SpanArray:
    """MT-19: join fragments that touch, or have no key between them, if the largest number deletes the same rows as
    their own numbers.

        fragments   |--5--|--8--|      |--6--|       joined   |-----8-----|     |--6--|
        data files  [=2==========]   [=2=] [=7==]

    A fragment may get a larger number if every data file whose bounds it meets is older than the fragment (RD-2),
    because these files lose the same rows. `data_files` are all files in the scope of the spans that are live, or
    may become live with their existing sequence number.
    """
    numbers = fragments.sequence_numbers
    assert numbers is not None, "a skyline has sequence numbers"
    if len(fragments) < 2:
        return fragments
    first, last, data_numbers = _met_fragments(fragments, data_files)
    youngest = newest_per_interval(first, last, data_numbers, len(fragments))
    meets_older_only = range_delete_is_new_enough(numbers, youngest)
    raised = replace(fragments, sequence_numbers=np.where(meets_older_only, numbers.max(), numbers))
    joined = joined_neighbours(skyline(raised))
    return joined if len(joined) < len(fragments) else fragments


def _met_fragments(
    fragments: SpanArray, data_files: Sequence[DataFile]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """RD-10: for each data file, the first fragment that its bounds meet, the end of this range, and its number."""
    bounds = [key_bounds(data, fragments.key) for data in data_files]
    searchable = SearchableSpans.of(fragments, len(bounds))
    first, last = searchable.touching([file.lower for file in bounds], [file.upper for file in bounds])
    return first, last, np.array([committed_sequence_number(data) for data in data_files], np.int64)


def spans_still_needed(
    spans: SpanArray, fragments: SpanArray, is_needed: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """RD-9: for each span, whether a needed fragment is made of it, and whether any fragment is.

    `fragments` are the skyline of spans that include these, so no fragment within a span is older than it. If all of
    them are newer, the span is covered and deletes nothing itself.
    """
    numbers, fragment_numbers = spans.sequence_numbers, fragments.sequence_numbers
    assert numbers is not None, "spans need their sequence numbers before they are compared (RD-8)"
    assert fragment_numbers is not None, "a skyline has sequence numbers"
    if len(spans) == 0:
        return np.zeros(0, np.bool_), np.zeros(0, np.bool_)
    ranks = rank_cuts(CutArray.concat([spans.lower, fragments.lower]), CutArray.concat([spans.upper, fragments.upper]))
    first = np.searchsorted(ranks.upper[len(spans) :], ranks.lower[: len(spans)], side="right")
    last = np.searchsorted(ranks.lower[len(spans) :], ranks.upper[: len(spans)], side="left")
    needed_numbers = np.where(is_needed, fragment_numbers, _NEVER)
    return (
        extremes(np.minimum, needed_numbers, first, last) == numbers,
        extremes(np.minimum, fragment_numbers, first, last) == numbers,
    )
