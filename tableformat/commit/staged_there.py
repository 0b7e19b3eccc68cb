"""Refuses to commit files that were written to a lake that has since been replaced (LK-28)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.change import TableChange
from tableformat.commit.committed_once import files_gone
from tableformat.errors import StorageError


@runtime_checkable
class _MayBeReplaced(Protocol):
    """A catalog in a file that may be replaced by another one while it is open."""

    @property
    def replacements(self) -> int:
        """The number of replacements that were noticed."""


def check_staged_there(change: TableChange, table: IcebergTable, subject: str) -> None:
    """LK-28: raise StorageError if the catalog was replaced since it was opened and files of the change do not exist:
    they were removed with the former lake."""
    if not isinstance(table.catalog, _MayBeReplaced) or not table.catalog.replacements:
        return
    staged = {file.file_path for file in (*change.added_data_files, *change.added_delete_files)}
    gone = files_gone(table.io, staged)
    if gone:
        raise StorageError(
            f"{len(gone)} of the files written for {subject} do not exist any more, including {gone[0]}: the lake "
            "was replaced by another one. Nothing was changed. Run the operation again.",
            nothing_changed=True,
        )
