"""Copy-on-write: the rows of a data file that a delete leaves, written to files of their own (SP-21)."""

from __future__ import annotations

from dataclasses import replace

from pyiceberg.expressions import AlwaysTrue

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.task import NarrowedTask, RowTask, scan_of
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_conformed
from tableformat.write.rows.conform import table_arrow_schema
from tableformat.write.staged import StagedFiles


def write_carried_rows(
    view: SnapshotView, context: WriteContext, task: RowTask, deleted: PositionSet, *, is_staged: bool
) -> StagedFiles:
    """Write the live rows of the task's file whose positions are not in `deleted`, in the table's default spec.

    On a v3 table they keep their row id and the number of their last change (MT-49); where the file is staged, those
    that it stores, since it gives none before it is committed. In bounded memory: row groups come one after the other.
    """
    known = task.known_positions if isinstance(task, NarrowedTask) else None
    rest = NarrowedTask(
        scan=replace(scan_of(task), residual=AlwaysTrue()),
        known_positions=deleted if known is None else deleted.union(known),
    )
    columns = [field.name for field in context.schema.fields]
    if view.metadata.format_version >= 3:
        columns += ROW_LINEAGE_NAMES
        context = context.with_row_lineage()
    read = replace(ReadContext.of(view, columns), has_stored_lineage=is_staged)
    stored = table_arrow_schema(context.schema)
    batches = (batch for rows in read_tables([rest], read) for batch in rows.cast(stored).to_batches())
    return write_conformed(context, batches)
