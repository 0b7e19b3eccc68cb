"""Dry run of `delete-prefix` and `delete-range`: counts the live rows that a range of keys covers."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from tableformat.deletes.spans.coverage import Coverage, classify
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.scan.context import merge_context
from tableformat.scan.planner import plan_scan
from tableformat.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePreview:
    """What a delete of spans meets at the head of a branch."""

    snapshot_id: int | None
    live_row_count: int
    """Rows that readers see now and would not see any more."""
    clean_data_file_count: int
    """Data files that their bounds clear."""
    partial_data_file_count: int
    covered_data_file_count: int
    """Data files that would not be read at all any more."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def preview_delete(table: Table, spans: SpanArray) -> DeletePreview:
    """Count what the spans cover; reads the span columns of the data files that they may meet."""
    view = table.view
    context = merge_context(view)
    newest = spans.with_sequence_number(view.sequence_number + 1)
    coverages = dict.fromkeys(Coverage, 0)

    def covered_live_rows(task: FileScanTask) -> tuple[Coverage, int]:
        coverage, touching = classify(newest, task.data_file)
        if coverage is Coverage.CLEAN:
            return coverage, 0
        covered = deleted_positions(FileScanTask(data_file=task.data_file, range_deletes=(touching,)), context)
        return coverage, len(covered.minus(deleted_positions(task, context)))

    plan = plan_scan(view, context=context)
    live_row_count = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for coverage, row_count in pool.map(covered_live_rows, plan.tasks):
            coverages[coverage] += 1
            live_row_count += row_count
    return DeletePreview(
        snapshot_id=table.snapshot_id,
        live_row_count=live_row_count,
        clean_data_file_count=coverages[Coverage.CLEAN],
        partial_data_file_count=coverages[Coverage.PARTIAL],
        covered_data_file_count=coverages[Coverage.COVERED],
    )
