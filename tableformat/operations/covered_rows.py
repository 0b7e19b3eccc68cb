"""Deletes that read: find the rows, delete them by position, count them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyiceberg.expressions import BooleanExpression

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import FileScanTask, RowTask
from tableformat.operations.draft import Draft
from tableformat.scan.matching_positions import matching_positions
from tableformat.scan.reader import ReadContext


def delete_matching(draft: Draft, where: BooleanExpression) -> None:
    """Stage position deletes of the live rows that match the filter."""
    context = ReadContext.of(draft.view)
    _delete_found(draft, draft.plan(where), lambda task: matching_positions(task, context))


def delete_covered(draft: Draft, spans: SpanArray) -> None:
    """Stage position deletes of the live rows that the spans cover: what a range delete does, found row by row."""
    context = ReadContext.of(draft.view).merge
    newest = spans.with_sequence_number(draft.next_sequence_number)

    def covered(task: RowTask) -> PositionSet:
        coverage, touching = classify(newest, task.data_file)
        if coverage is Coverage.CLEAN:
            return PositionSet.empty()
        by_spans = FileScanTask(data_file=task.data_file, range_deletes=(touching,))
        return deleted_positions(by_spans, context).minus(deleted_positions(task, context))

    _delete_found(draft, draft.plan(), covered)


def _delete_found(draft: Draft, tasks: tuple[RowTask, ...], find: Callable[[RowTask], PositionSet]) -> None:
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for task, found in zip(tasks, pool.map(find, tasks), strict=True):
            if found:
                draft.delete_positions(task, found)
