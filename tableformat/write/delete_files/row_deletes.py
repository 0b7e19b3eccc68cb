"""Writes row deletes in the form that the table's format version requires.

    version 2    a position delete file for each data file; existing ones stay, or are merged into the new one
    version 3    the deletion vector of each data file: its old vector, all its position deletes, and the new positions

Source: Iceberg table specification, "Position Delete Files" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.deletion_vectors import write_deletion_vectors
from tableformat.write.delete_files.position_deletes import write_position_deletes


@dataclass(frozen=True, slots=True)
class RowsToDelete:
    """Rows of one data file to delete by position."""

    task: FileScanTask
    """The data file with the row deletes that apply to it. Its equality and range deletes do not matter here."""
    positions: PositionSet

    @property
    def data_file(self) -> DataFile:
        return self.task.data_file


@dataclass(frozen=True, slots=True)
class RowDeleteFiles:
    """The files that one commit adds, and the entries that it must remove at the same time."""

    added: tuple[DeleteFile, ...] = ()
    """New files that no snapshot names yet. Deletion vectors may share a location; they differ by `content_offset`."""
    replaced: tuple[DeleteFile, ...] = ()
    """Entries whose rows the new files delete too: the old vector, and position delete files of only that data file."""


def write_row_deletes(
    context: WriteContext, deletes: Iterable[RowsToDelete], merge: MergeContext, *, fold: bool = False
) -> RowDeleteFiles:
    """Write the deletes: position delete files, or deletion vectors if `context.format_version` is 3.

    DA-7: a vector contains the positions of its predecessor and of all position deletes of its data file, and replaces
    them, so that a data file has only one vector. `fold` does the same for position delete files of version 2, whose
    number grows otherwise. Position delete files that name several data files stay, because others may need them.

    A data file whose positions are all deleted already gets no new file. After a failure all files are removed.
    """
    has_vectors = context.format_version >= 3
    deleted: dict[DataFile, PositionSet] = {}
    replaced: list[DeleteFile] = []
    for rows in deletes:
        if not (has_vectors or fold):
            deleted[rows.data_file] = rows.positions
            continue
        before = deleted_positions(_row_deletes_alone(rows.task), merge)
        if rows.positions.minus(before):
            deleted[rows.data_file] = before.union(rows.positions)
            replaced.extend(own_row_deletes(rows.task))
    written = write_deletion_vectors(context, deleted) if has_vectors else write_position_deletes(context, deleted)
    return RowDeleteFiles(tuple(written), tuple(replaced))


def own_row_deletes(task: FileScanTask) -> tuple[DeleteFile, ...]:
    """The vector, and the position delete files that name only rows of this data file."""
    vector = () if task.deletion_vector is None else (task.deletion_vector,)
    path = task.data_file.file_path
    return (*vector, *(delete for delete in task.position_deletes if named_data_file(delete) == path))


def _row_deletes_alone(task: FileScanTask) -> FileScanTask:
    return FileScanTask(
        data_file=task.data_file, position_deletes=task.position_deletes, deletion_vector=task.deletion_vector
    )
