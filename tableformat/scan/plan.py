"""`ScanPlan`: the files that a scan reads and the deletes that apply to them, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from tableformat.markup import figures, html
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind

_HELD_TASKS_MAX: Final = 1_000
_HELD_SPANS_MAX: Final = 100_000
"""A dataset plans again for each scan if a plan has more files. Its plan would use megabytes as long as the dataset
exists."""


@dataclass(frozen=True, slots=True)
class PruningCounts:
    """The number of files and manifests that each stage examined and skipped."""

    data_manifest_count: int = 0
    skipped_data_manifest_count: int = 0
    """Data manifests whose partition and key summaries exclude matching rows."""
    delete_manifest_count: int = 0
    skipped_delete_manifest_count: int = 0
    """Delete manifests that are older than all data."""
    data_file_count: int = 0
    """Live data files in the manifests that were read."""
    skipped_by_partition_count: int = 0
    skipped_by_bounds_count: int = 0
    skipped_by_bloom_filter_count: int = 0
    """Files whose Bloom filters were read before and exclude the values of the filter (FM-27)."""
    delete_file_count: int = 0
    """Live delete files in the manifests that were read."""
    skipped_delete_file_count: int = 0
    """Equality and range delete files that delete no row which passes the filter, or that are older than all data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The files of one scan, as plain data."""

    snapshot_id: int | None
    where: BooleanExpression
    tasks: tuple[FileScanTask, ...] = ()
    covered: tuple[DataFile, ...] = ()
    """Data files whose rows are all covered by range deletes (RD-10). They are not read."""
    pruning: PruningCounts = PruningCounts()

    def __repr__(self) -> str:
        """One line: the tasks contain the statistics and deletes of every file."""
        tasks = f"{figures.counted(len(self.tasks), 'task')} of {figures.counted(self.record_count, 'row')}"
        covered = figures.counted(len(self.covered), "covered data file")
        return f"ScanPlan(snapshot_id={self.snapshot_id}, where={self.where}, {tasks}, {covered})"

    def _repr_html_(self) -> str:
        deletes = ", ".join(f"{count:,} {kind.value}" for kind, count in self.delete_file_counts.items())
        return html.fragment(
            "scan plan",
            html.facts(
                [
                    ("snapshot", self.snapshot_id or "none"),
                    ("data files to read", f"{len(self.tasks):,}, {figures.size(self.data_bytes)}"),
                    ("rows in them, before deletes", figures.count(self.record_count)),
                    ("covered, not read", figures.counted(len(self.covered), "data file")),
                    ("delete files to open", deletes or "none"),
                ]
            ),
            html.quiet("explain() of the scan shows why each file is read."),
        )

    @property
    def record_count(self) -> int:
        """The number of rows in the files to read, before deletes and filter."""
        return sum(task.data_file.record_count for task in self.tasks)

    @property
    def data_bytes(self) -> int:
        """The size of the data files to read, in bytes."""
        return sum(task.data_file.file_size_bytes for task in self.tasks)

    @property
    def delete_files(self) -> tuple[DeleteFile, ...]:
        """The delete files that at least one task has to open, each once."""
        by_identity = {
            (delete.file_path, delete.content_offset): delete for task in self.tasks for delete in task.delete_files
        }
        return tuple(by_identity.values())

    @property
    def delete_file_counts(self) -> dict[DeleteKind, int]:
        """The number of delete files by kind. Range deletes that were loaded during planning are not counted."""
        counts: dict[DeleteKind, int] = {}
        for delete in self.delete_files:
            counts[delete.kind] = counts.get(delete.kind, 0) + 1
        return counts


@dataclass(slots=True)
class HeldPlan:
    """The plan that scans of one snapshot share if they differ only in their columns: a dataset makes such a scan for
    each query. Plans with a filter are not shared, because Bloom filters that are read later exclude more files
    (FM-27)."""

    plan: ScanPlan | None = None

    def hold(self, plan: ScanPlan) -> None:
        """Keep the plan if it is small and reads all rows."""
        spans = sum(len(each) for task in plan.tasks[:_HELD_TASKS_MAX] for each in task.range_deletes)
        is_small = len(plan.tasks) <= _HELD_TASKS_MAX and spans <= _HELD_SPANS_MAX
        if is_small and isinstance(plan.where, AlwaysTrue):
            self.plan = plan
