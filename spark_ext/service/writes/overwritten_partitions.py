"""INSERT OVERWRITE with dynamic partitions: the partitions that new rows fall into lose their old rows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from pyiceberg.partitioning import PartitionSpec

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import is_unpartitioned, partition_identity, partition_of
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import RowTask
from tableformat.metadata.content_file import DataFile
from tableformat.operations.drafts.draft import Draft
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import prepare_task, read_stored
from tableformat.write.data_files.partitions import PartitionValues, SpecRouter

Partition: TypeAlias = tuple[int, PartitionValues]
"""As `partition_of` identifies one: NaN equals NaN, and -0.0 is not 0.0 (DA-3)."""


def stage_overwritten_partitions(draft: Draft, spec: PartitionSpec, partitions: Collection[Partition]) -> None:
    """Stage the delete of all rows of the partitions; those of an unpartitioned table are all of its rows.

    Files of the spec go as a whole. In files of other specs, from before the spec was changed, rows are looked for.
    """
    everything = is_unpartitioned(spec)
    if not partitions and not everything:
        return
    context = ReadContext.of(draft.view)
    for task in draft.plan(None, may_match=loses_rows_to(spec, partitions)):
        data = task.data_file
        if everything or (partition_of(data) in partitions):
            rows = PositionSet.from_runs(np.array([0]), np.array([data.record_count]))
        elif data.spec_id == spec.spec_id:
            continue
        else:
            rows = _rows_in(task, spec, partitions, context)
        alive = rows.minus(deleted_positions(task, context.merge))
        if alive:
            draft.delete_positions(task, alive)


def loses_rows_to(spec: PartitionSpec, partitions: Collection[Partition]) -> Callable[[DataFile], bool]:
    """Whether a data file may lose rows to new ones in these partitions of the spec."""
    everything = is_unpartitioned(spec)
    return lambda data: everything or data.spec_id != spec.spec_id or partition_of(data) in partitions


def _rows_in(
    task: RowTask, spec: PartitionSpec, partitions: Collection[Partition], context: ReadContext
) -> PositionSet:
    """Positions of the rows that the spec would put into one of the partitions."""
    sources = {field.source_id for field in spec.fields}
    columns = context.schema.select(*(context.schema.find_column_name(field_id) or "" for field_id in sources))
    router = SpecRouter(spec, columns)
    found = []
    for run in prepare_task(task, replace(context, selected=columns)):
        rows = read_stored(run).combine_chunks()
        for batch in rows.to_batches():
            route = router.route(batch)
            hit = np.array([partition_identity(spec.spec_id, each) in partitions for each in route.partitions])
            codes = np.zeros(batch.num_rows, np.int64) if route.codes is None else route.codes
            found.append(PositionSet.from_mask(hit[codes]).shifted(run.start_row))
    return PositionSet.union_of(found)
