"""Copy-on-write: the rows of a data file that a delete leaves, written to files of their own (SP-21).

A function of plain data, so that any process can run it: what it needs travels in the file and the context, what it
made comes back as StagedFiles. Nothing is committed here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyiceberg.expressions import AlwaysTrue

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.task import NarrowedTask, RowTask, scan_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.array_forms import rows_as
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_conformed
from tableformat.write.rows.conform import table_arrow_schema
from tableformat.write.staged import StagedFiles


@dataclass(frozen=True, slots=True)
class CarriedFile:
    """A data file of which rows go, and the others to another file."""

    task: RowTask
    deleted: PositionSet
    """Live rows that go."""
    is_staged: bool
    """Whether a verb of the same transaction wrote it: it gives its rows no ids before it is committed."""


@dataclass(frozen=True)
class CarryContext:
    """What all files of one table version share. Picklable."""

    read: ReadContext
    write: WriteContext

    @staticmethod
    def of(view: SnapshotView, write: WriteContext) -> CarryContext:
        """MT-49: on a v3 table rows keep their row id and the number of their last change."""
        if view.metadata.format_version >= 3:
            write = write.with_row_lineage()
        return CarryContext(ReadContext.of(view, [field.name for field in write.schema.fields]), write)


Carry: TypeAlias = Callable[[Sequence[CarriedFile], CarryContext], Generator[tuple[int, StagedFiles], None, None]]
"""Has the rows written somewhere, and gives the index of each file with what was written, as they are done. Closed
early, it removes what it has not given."""


def carry_here(files: Sequence[CarriedFile], context: CarryContext) -> Generator[tuple[int, StagedFiles], None, None]:
    """In this thread, one file after the other: Arrow decodes and encodes the columns of one in threads."""
    for index, file in enumerate(files):
        yield index, write_carried_rows(file, context)


def write_carried_rows(file: CarriedFile, context: CarryContext) -> StagedFiles:
    """Write the live rows of the file that are not deleted, in the table's default spec; no file is left on failure.

    Row ids of a staged file are those that it stores. In bounded memory: row groups come one after the other.
    """
    known = file.task.known_positions if isinstance(file.task, NarrowedTask) else None
    rest = NarrowedTask(
        scan=replace(scan_of(file.task), residual=AlwaysTrue()),
        known_positions=file.deleted if known is None else file.deleted.union(known),
    )
    read = replace(context.read, has_stored_lineage=file.is_staged)
    stored = table_arrow_schema(context.write.schema)
    batches = (batch for rows in read_tables([rest], read) for batch in rows_as(rows, stored).to_batches())
    return write_conformed(context.write, batches)
