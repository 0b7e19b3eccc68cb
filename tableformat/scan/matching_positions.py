"""Row positions of a data file that match a filter, for deletes by filter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.filters.bound_filter import TRUE, bind_filter
from tableformat.filters.row_filter import matching_rows
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import RowTask
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import RowGroupRun, prepare_task, read_stored


def matching_positions(task: RowTask, context: ReadContext) -> PositionSet:
    """The positions of the live rows of the task's file that pass its residual filter.

    Reads the columns of the filter in the row groups that statistics do not exclude; reads nothing if every row passes.
    """
    deleted = deleted_positions(task, context.merge)
    if bind_filter(task.residual, context.schema) is TRUE:
        everything = PositionSet.from_runs(np.array([0]), np.array([task.data_file.record_count]))
        return everything.minus(deleted)
    only_filter_columns = replace(context, selected=context.schema.select())
    matching = PositionSet.union_of(_matching_in(run) for run in prepare_task(task, only_filter_columns))
    return matching.minus(deleted)


def _matching_in(run: RowGroupRun) -> PositionSet:
    rows = read_stored(run)
    mask = matching_rows(run.task.bound, rows)
    assert not isinstance(mask, bool), "a filter with a constant result reads nothing"
    flat = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    return PositionSet.from_mask(np.asarray(flat.fill_null(False))).shifted(run.start_row)
