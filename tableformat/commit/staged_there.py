"""Refuses to commit files that stayed behind when the lake was replaced under a writer (LK-28)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.change import TableChange
from tableformat.commit.committed_once import files_gone
from tableformat.errors import StorageError


@runtime_checkable
class _MayBeReplaced(Protocol):
    """A catalog in a file, for which another one may be put while it is open."""

    @property
    def replacements(self) -> int:
        """How often that was seen."""


def check_staged_there(change: TableChange, table: IcebergTable, subject: str) -> None:
    """LK-28: raise StorageError where the catalog was replaced since it was opened, and files of the change are not
    there: they went with the former lake."""
    if not isinstance(table.catalog, _MayBeReplaced) or not table.catalog.replacements:
        return
    staged = {file.file_path for file in (*change.added_data_files, *change.added_delete_files)}
    gone = files_gone(table.io, staged)
    if gone:
        raise StorageError(
            f"{len(gone)} of the files that were written for {subject} are gone, among them {gone[0]}: the lake was "
            "replaced by another one meanwhile. Nothing was changed. Run the operation again.",
            nothing_changed=True,
        )
