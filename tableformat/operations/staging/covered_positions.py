"""Finds the live rows of data files that some spans cover, file by file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, TypeVar

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask, RowTask

_Found = TypeVar("_Found")


def covered_by(newest: SpanArray, context: MergeContext) -> Callable[[RowTask], tuple[Coverage, PositionSet]]:
    """For a data file, its coverage by spans that are newer than all files, and the live rows that they cover."""

    def find(task: RowTask) -> tuple[Coverage, PositionSet]:
        coverage, touching = classify(newest, task.data_file)
        if coverage is Coverage.CLEAN:
            return coverage, PositionSet.empty()
        by_spans = FileScanTask(data_file=task.data_file, range_deletes=(touching,))
        return coverage, deleted_positions(by_spans, context).minus(deleted_positions(task, context))

    return find


def covered_by_any(
    spans: Sequence[SpanArray], sequence_number: int, context: MergeContext
) -> Callable[[RowTask], PositionSet]:
    """For a data file, the live rows that any of the spans covers. Each array is over its own columns. The sequence
    number stands for "newer than everything"."""
    newest = [sort_and_merge(each).with_sequence_number(sequence_number) for each in spans]
    finders = [covered_by(each, context) for each in newest]
    return lambda task: reduce(PositionSet.union, (finder(task)[1] for finder in finders), PositionSet.empty())


Find: TypeAlias = Callable[[Sequence[RowTask], SpanArray, MergeContext], Iterator[tuple[RowTask, PositionSet]]]
"""Finds in each data file the live rows that some spans, newer than all files, cover."""


def find_here(
    tasks: Sequence[RowTask], newest: SpanArray, context: MergeContext
) -> Iterator[tuple[RowTask, PositionSet]]:
    """Find the rows in threads of this process."""
    for task, (_, found) in in_threads(tasks, covered_by(newest, context)):
        yield task, found


@dataclass(frozen=True, slots=True)
class SpanSearch:
    """Data shared by all tasks of a search. Picklable."""

    newest: SpanArray
    context: MergeContext


def find_in_files(tasks: Sequence[RowTask], search: SpanSearch) -> list[PositionSet]:
    """The rows of each of several data files. This is a function of plain data, which any process can run."""
    return [found for _, found in find_here(tasks, search.newest, search.context)]


def in_threads(tasks: Iterable[RowTask], find: Callable[[RowTask], _Found]) -> Iterator[tuple[RowTask, _Found]]:
    """Each task with the rows found in it, in order."""
    listed = list(tasks)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from zip(listed, pool.map(find, listed), strict=True)
