"""`CommitOutcome`: the result of a commit for one table."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from tableformat.commit.change import TableChange
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of a commit for one table."""

    table: Table
    """The table after the commit. The handle that was passed in does not move."""
    snapshot_id: int | None
    """The snapshot of the change; without a change, the head of the branch (None if it has no snapshot)."""
    sequence_number: int | None
    """The sequence number of that snapshot. None without a snapshot, or if a batch was applied earlier and its snapshot
    has expired."""
    attempts: int
    committed: bool
    """False if there was nothing to do or the batch had been applied before."""
    already_applied: bool = False
    base: SnapshotView | None = None
    """The head on which the change was committed."""
    change: TableChange | None = None
    """The committed change. It may have been made again for that head."""
    metadata_bytes: int = 0
    """Size in bytes of the manifests that the snapshot added, including rewritten and merged ones."""

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @property
    def metadata_location(self) -> str:
        return self.table.metadata_location

    def move(self, handle: Table) -> None:
        """Move a handle of the same table to the state after the commit."""
        handle.metadata = self.table.metadata
        handle.metadata_location = self.table.metadata_location
