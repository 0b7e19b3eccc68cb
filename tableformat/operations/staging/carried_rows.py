"""Copy-on-write: the remaining rows of a data file after a delete, written to new files (SP-21).

This is a function of plain data, so that any process can run it: its input is in the file and the context, and its
result is StagedFiles. It commits nothing.
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
    """A data file with some rows that are deleted and others that are written to another file."""

    task: RowTask
    deleted: PositionSet
    """Live rows that are deleted."""
    is_staged: bool
    """Whether an operation of the same transaction wrote the file. Its rows have no ids until it is committed."""


@dataclass(frozen=True)
class CarryContext:
    """Data shared by all files of one table version. Picklable."""

    read: ReadContext
    write: WriteContext

    @staticmethod
    def of(view: SnapshotView, write: WriteContext) -> CarryContext:
        """The context for a view. MT-49: in a v3 table, rows keep their row id and the sequence number of their last
        change."""
        if view.metadata.format_version >= 3:
            write = write.with_row_lineage()
        return CarryContext(ReadContext.of(view, [field.name for field in write.schema.fields]), write)


Carry: TypeAlias = Callable[[Sequence[CarriedFile], CarryContext], Generator[tuple[int, StagedFiles], None, None]]
"""Lets the rows be written somewhere, and yields the index of each file with its written files, in order of completion.
If it is closed early, it removes files that it has not yielded."""


def carry_here(files: Sequence[CarriedFile], context: CarryContext) -> Generator[tuple[int, StagedFiles], None, None]:
    """Write the rows in this thread, one file at a time. Arrow decodes and encodes the columns of a file in threads."""
    for index, file in enumerate(files):
        yield index, write_carried_rows(file, context)


def write_carried_rows(file: CarriedFile, context: CarryContext) -> StagedFiles:
    """Write the live rows of the file that are not deleted, in the default spec of the table. No file remains after a
    failure.

    Rows of a staged file have the row ids that it stores. Memory is bounded, because row groups are processed one at a
    time.
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
