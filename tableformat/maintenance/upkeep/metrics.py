"""`UpkeepMetrics`: the results of upkeep in this process, for each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tableformat.maintenance.upkeep.rounds import UpkeepResult


@dataclass(slots=True)
class UpkeepMetrics:
    """Counters since the start of the process. They are never reset."""

    round_count: int = 0
    """Rounds that had something to do."""
    merged_data_files_count: int = 0
    added_data_files_count: int = 0
    converted_delete_files_count: int = 0
    """Equality delete files that were converted to position deletes."""
    written_bytes: int = 0
    """Data files, range delete files and row deletes."""
    expired_snapshots_count: int = 0
    lost_race_count: int = 0
    """Merges and conversions that were given up because of concurrent commits. Their files were removed."""
    skipped_count: int = 0
    """Rounds that were skipped because another process was running upkeep."""
    failure_count: int = 0
    last_failure: str = ""
    """Type and message of the last error."""
    busy_seconds: float = 0.0

    def add(self, result: UpkeepResult) -> None:
        """Count a round."""
        self.round_count += bool(result.jobs)
        self.merged_data_files_count += result.merged_data_files_count
        self.added_data_files_count += result.added_data_files_count
        self.converted_delete_files_count += result.converted_delete_files_count
        self.written_bytes += result.written_bytes
        self.expired_snapshots_count += result.expired_snapshots_count
        self.lost_race_count += result.lost_race_count
        self.busy_seconds += result.duration_seconds

    def fail(self, error: BaseException) -> None:
        """Count a round that ended with an error."""
        self.failure_count += 1
        self.last_failure = f"{type(error).__name__}: {error}"


_metrics: Final[dict[UUID, UpkeepMetrics]] = {}


def metrics_of(table_uuid: UUID) -> UpkeepMetrics:
    """The counters of a table, the same object in every call."""
    return _metrics.setdefault(table_uuid, UpkeepMetrics())
