"""Changes of the history of a table: snapshots keep their ids and get other files (LK-38, CP-91)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, TableUpdate

from tableformat.metadata.snapshot_index import snapshot_by_id

ERASED: Final = "tableformat.erased"
"""In the summary of a snapshot: `true`, because the snapshots before it were written again without some rows."""
ERASURE_PENDING: Final = "tableformat.erasure-pending"
"""A table property: the metadata file before an erasure, whose files are not removed completely yet (MT-118)."""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """New metadata of one table."""

    table: Table
    """The table as loaded for the attempt."""
    metadata: TableMetadata


@runtime_checkable
class ReplacesHistories(Protocol):
    """A catalog that can set a table to any metadata, by a compare-and-set of the metadata file."""

    def replace_histories(self, changes: Sequence[HistoryChange]) -> list[CommitTableResponse]:
        """Apply all changes or none. Raises CommitFailedException if nothing was applied."""


def refuse_rewritten_parents(before: TableMetadata, now: TableMetadata, updates: Sequence[TableUpdate]) -> None:
    """CP-91: raise CommitFailedException if the parent of a new snapshot has other files than when the snapshot was
    made.

    The manifest list of the new snapshot names manifests of the parent. If the history was written again in the
    meantime, these manifests are removed. The head of a branch shows that by its id, a staged snapshot has no branch.
    """
    for update in updates:
        parent_id = update.snapshot.parent_snapshot_id if isinstance(update, AddSnapshotUpdate) else None
        if parent_id is None:
            continue
        read, current = snapshot_by_id(before, parent_id), snapshot_by_id(now, parent_id)
        if read is not None and current is not None and read.manifest_list != current.manifest_list:
            raise CommitFailedException(f"the files of snapshot {parent_id} were written again by an erasure")
