"""Finds the deleted rows of several data files by position: the task of a conversion, which runs in any process.

A pure function of plain data. Nothing is committed here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyiceberg.io import FileIO

from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import merge_context
from tableformat.storage.storage import delete_if_present
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.row_deletes import RowsToDelete, own_row_deletes, write_row_deletes


@dataclass(frozen=True, slots=True)
class ConversionTask:
    """Adjacent data files whose row deletes may share a file."""

    tasks: tuple[FileScanTask, ...]
    """The data files with their row deletes and the keyed deletes to search for."""
    is_dry_run: bool
    """Count the rows and write nothing."""


@dataclass(frozen=True)
class ConversionContext:
    """The data that all tasks of one table version share. Picklable: caches start empty in another process."""

    merge: MergeContext
    write: WriteContext

    @staticmethod
    def of(view: SnapshotView) -> ConversionContext:
        return ConversionContext(merge_context(view), WriteContext.of(view.metadata, view.io))


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """The result for one data file."""

    task: FileScanTask
    """The data file with its row deletes. Keyed deletes are left out."""
    deleted_row_count: int
    deleted_before_count: int
    """Rows that position deletes or a vector already named."""
    added: tuple[DeleteFile, ...] = ()
    """The new row deletes of the file, which are not in a snapshot yet."""

    @property
    def is_emptied(self) -> bool:
        """No live row is left: the data file is removed, and nothing is written for it."""
        return self.deleted_row_count == self.task.data_file.record_count

    @property
    def is_reduced(self) -> bool:
        return not self.is_emptied and self.deleted_before_count < self.deleted_row_count

    @property
    def replaced(self) -> tuple[DeleteFile, ...]:
        """The row deletes of only this data file. They are replaced: the new row deletes include their rows, or the
        data file is removed."""
        return own_row_deletes(self.task) if self.is_emptied or self.is_reduced else ()


def convert_files(task: ConversionTask, context: ConversionContext) -> tuple[ConvertedFile, ...]:
    """Find the deleted rows of each file. Writes row deletes for files with deleted rows that were not named before.

    Reads only delete columns; small files are read together (decision 16). All files are removed if the conversion
    fails.
    """
    found = list(zip(task.tasks, deleted_positions_of(task.tasks, context.merge), strict=True))
    counted = [_counted(each, len(deleted), context.merge) for each, deleted in found]
    if task.is_dry_run:
        return tuple(counted)
    rows = [
        RowsToDelete(each, deleted) for file, (each, deleted) in zip(counted, found, strict=True) if file.is_reduced
    ]
    written = write_row_deletes(context.write, rows, context.merge, fold=True)
    by_path = {named_data_file(delete): delete for delete in written.added}
    assert len(by_path) == len(rows), "each data file gets one entry"
    return tuple(
        replace(file, added=(by_path[file.task.data_file.file_path],)) if file.is_reduced else file for file in counted
    )


def covered_file(task: FileScanTask, context: MergeContext) -> ConvertedFile:
    """A file that is fully covered by range deletes, which is known without reading its rows. Only earlier row deletes
    are counted."""
    return _counted(task, task.data_file.record_count, context)


def _counted(task: FileScanTask, deleted_row_count: int, context: MergeContext) -> ConvertedFile:
    by_position = replace(task, equality_deletes=(), range_deletes=(), range_delete_files=())
    return ConvertedFile(by_position, deleted_row_count, len(deleted_positions(by_position, context)))


def discard(io: FileIO, files: Iterable[ConvertedFile], *, keep: frozenset[str] = frozenset()) -> None:
    """Remove the row deletes that were written. Vectors may share a file; files in `keep` stay."""
    for location in sorted({delete.file_path for file in files for delete in file.added} - keep):
        delete_if_present(io, location)
