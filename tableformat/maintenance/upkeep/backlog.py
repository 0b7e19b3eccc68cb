"""`Backlog`: the backlog of upkeep of a table, by which tables are ordered (MT-88)."""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.table import Table as IcebergTable

from tableformat.maintenance.upkeep.ledger import Ledger
from tableformat.maintenance.upkeep.policy import UpkeepPolicy
from tableformat.metadata.snapshot_choice import head_view


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The files that writers left in a table since its last upkeep, from the summaries of a few snapshots."""

    new_file_count: int
    """Data files and delete files that a scan has to open in addition."""
    new_bytes: int
    """Bytes in these files: the most that merging them rewrites."""
    is_due: bool

    @staticmethod
    def of(iceberg: IcebergTable, branch: str, policy: UpkeepPolicy) -> Backlog:
        """The backlog of a branch, as of the handle's metadata."""
        ledger = Ledger.of(iceberg.metadata, head_view(iceberg.metadata, iceberg.io, branch).snapshot)
        return Backlog(
            new_file_count=ledger.new_data_file_count + ledger.new_delete_file_count,
            new_bytes=ledger.new_bytes,
            is_due=max(ledger.new_data_file_count, ledger.new_delete_file_count) >= policy.files_per_level,
        )

    @property
    def per_byte(self) -> float:
        """Files that a scan saves for each rewritten byte. The table with the highest value comes first."""
        return self.new_file_count / max(self.new_bytes, 1)
