"""Operations that read: find rows by a filter or by spans, delete them by position, count them, or return them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.coverage import Coverage
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import RowTask, only_rows
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.staging.covered_positions import covered_by, in_threads
from tableformat.operations.staging.draft import Draft
from tableformat.scan.context import ReadContext, merge_context
from tableformat.scan.matching_positions import matching_positions
from tableformat.scan.planner import plan_scan
from tableformat.scan.reader import read_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePreview:
    """The effect of a delete of spans at the head of a branch."""

    snapshot_id: int | None
    live_row_count: int
    """Number of rows that readers see now and would no longer see."""
    clean_data_files_count: int
    """Number of data files that have no such rows, according to their bounds."""
    partial_data_files_count: int
    covered_data_files_count: int
    """Number of data files that would no longer be read at all."""


def delete_matching(draft: Draft, where: BooleanExpression) -> None:
    """Stage position deletes of the live rows that match the filter."""
    context = ReadContext.of(draft.view)
    for task, found in in_threads(draft.plan(where), lambda task: matching_positions(task, context)):
        _delete(draft, task, found)


def delete_covered(draft: Draft, spans: SpanArray) -> None:
    """Stage position deletes of the live rows that the spans cover: the effect of a range delete, found row by row."""
    draft.recorded.add_spans([spans])
    newest = spans.with_sequence_number(draft.next_sequence_number)
    for task, found in draft.find(draft.plan(covered=spans), newest, ReadContext.of(draft.view).merge):
        _delete(draft, task, found)


def take_matching(draft: Draft, where: BooleanExpression) -> Iterator[pa.Table]:
    """The live rows that match. They are staged as deleted, because the draft writes them again (CP-6)."""
    context = ReadContext.of(draft.view)
    found = in_threads(draft.plan(where), lambda task: matching_positions(task, context))
    return read_tables(_taken(draft, found), context)


def take_covered(
    draft: Draft, spans: SpanArray, where: BooleanExpression | None, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Some columns of the live rows that the spans cover. They are staged as deleted, because the draft writes them
    again (CP-6). `where` is a filter that is true for all of them; it selects the files."""
    newest = spans.with_sequence_number(draft.next_sequence_number)
    found = _found_by(newest, draft.plan(where), ReadContext.of(draft.view).merge)
    # Rows are selected by position, and the filter may use columns that are not requested.
    return read_tables(_taken(draft, found), ReadContext.of(draft.view, columns))


def preview_delete(view: SnapshotView, spans: SpanArray) -> DeletePreview:
    """Count the live rows that the spans cover. Reads the span columns of the data files that the spans may reach."""
    context = merge_context(view)
    newest = spans.with_sequence_number(view.sequence_number + 1)
    file_counts = dict.fromkeys(Coverage, 0)
    live_row_count = 0
    for _, (coverage, found) in in_threads(plan_scan(view, context=context).tasks, covered_by(newest, context)):
        file_counts[coverage] += 1
        live_row_count += len(found)
    return DeletePreview(
        snapshot_id=view.snapshot.snapshot_id if view.snapshot is not None else None,
        live_row_count=live_row_count,
        clean_data_files_count=file_counts[Coverage.CLEAN],
        partial_data_files_count=file_counts[Coverage.PARTIAL],
        covered_data_files_count=file_counts[Coverage.COVERED],
    )


def _found_by(
    newest: SpanArray, tasks: Sequence[RowTask], context: MergeContext
) -> Iterator[tuple[RowTask, PositionSet]]:
    for task, (_, found) in in_threads(tasks, covered_by(newest, context)):
        yield task, found


def _taken(draft: Draft, found_in: Iterable[tuple[RowTask, PositionSet]]) -> list[RowTask]:
    taken: list[RowTask] = []
    for task, found in found_in:
        if found:
            taken.append(only_rows(task, found))
            draft.delete_positions(task, found, written_anew=True)
    return taken


def _delete(draft: Draft, task: RowTask, found: PositionSet) -> None:
    if found:
        draft.delete_positions(task, found)
