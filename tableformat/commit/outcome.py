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
    """The snapshot of the change; without a change, the head of the branch (None when it has none)."""
    sequence_number: int | None
    """Of that snapshot; None when there is none, or when a batch was applied earlier and its snapshot has expired."""
    attempts: int
    committed: bool
    """False when there was nothing to do or the batch had been applied before."""
    already_applied: bool = False
    base: SnapshotView | None = None
    """The head that the change was committed on."""
    change: TableChange | None = None
    """The committed change, which may have been made again for that head."""
    metadata_bytes: int = 0
    """Size of the manifests that the snapshot added, rewritten and merged ones included."""

    @property
    def metadata(self) -> TableMetadata:
        return self.table.metadata

    @property
    def metadata_location(self) -> str:
        return self.table.metadata_location

    def move(self, handle: Table) -> None:
        """Move a handle of the same table to what the commit left."""
        handle.metadata = self.table.metadata
        handle.metadata_location = self.table.metadata_location
