"""`SnapshotView`: one pinned snapshot of one table, from which scans, plans and jobs read."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1
from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotView:
    """Immutable. Reads always return the same rows."""

    metadata: TableMetadata
    io: FileIO
    snapshot: Snapshot | None
    """None for a table or branch without snapshots, which has no rows."""
    schema: Schema
    """The schema of returned rows: the table's current schema at the head of a branch, otherwise the schema of the
    snapshot."""

    def __repr__(self) -> str:
        at = "no snapshot" if self.snapshot is None else f"snapshot {self.snapshot.snapshot_id}"
        return f"SnapshotView({at} of {self.metadata.location})"

    @property
    def sequence_number(self) -> int:
        """The snapshot's sequence number; 0 without a snapshot and for v1 snapshots."""
        if self.snapshot is None:
            return 0
        return self.snapshot.sequence_number or 0

    def spec(self, spec_id: int) -> PartitionSpec:
        return self.metadata.specs()[spec_id]


def last_sequence_number(metadata: TableMetadata) -> int:
    """The last sequence number of the table, over all branches; 0 for v1 tables, which cannot be written."""
    return 0 if isinstance(metadata, TableMetadataV1) else int(metadata.last_sequence_number)
