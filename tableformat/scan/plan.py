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
"""A plan with more of them is made anew for each scan, as it would be megabytes for as long as a dataset is there."""


@dataclass(frozen=True, slots=True)
class PruningCounts:
    """How many files and manifests each stage looked at and ruled out."""

    data_manifest_count: int = 0
    skipped_data_manifest_count: int = 0
    """Data manifests whose summaries of partitions and keys leave no room for a matching row."""
    delete_manifest_count: int = 0
    skipped_delete_manifest_count: int = 0
    """Delete manifests that are older than all data."""
    data_file_count: int = 0
    """Live data files in the manifests that were read."""
    skipped_by_partition_count: int = 0
    skipped_by_bounds_count: int = 0
    skipped_by_bloom_filter_count: int = 0
    """Files whose Bloom filters were read before and do not hold the values of the filter (FM-27)."""
    delete_file_count: int = 0
    """Live delete files in the manifests that were read."""
    skipped_delete_file_count: int = 0
    """Equality and range delete files none of whose deleted rows can pass the filter, or that are older than all
    data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """The files of one scan. Plain data."""

    snapshot_id: int | None
    where: BooleanExpression
    tasks: tuple[FileScanTask, ...] = ()
    covered: tuple[DataFile, ...] = ()
    """Data files of which range deletes cover every row (RD-10): they are not read."""
    pruning: PruningCounts = PruningCounts()

    def __repr__(self) -> str:
        """In a line: tasks hold statistics and deletes of every file."""
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
            html.quiet("explain() of the scan says why each file is read."),
        )

    @property
    def record_count(self) -> int:
        """Rows in the files to read, before deletes and filter."""
        return sum(task.data_file.record_count for task in self.tasks)

    @property
    def data_bytes(self) -> int:
        """Size of the data files to read, in bytes."""
        return sum(task.data_file.file_size_bytes for task in self.tasks)

    @property
    def delete_files(self) -> tuple[DeleteFile, ...]:
        """The delete files that some task has to open, each once."""
        by_identity = {
            (delete.file_path, delete.content_offset): delete for task in self.tasks for delete in task.delete_files
        }
        return tuple(by_identity.values())

    @property
    def delete_file_counts(self) -> dict[DeleteKind, int]:
        """The same by kind; range deletes that were loaded to plan do not count here."""
        counts: dict[DeleteKind, int] = {}
        for delete in self.delete_files:
            counts[delete.kind] = counts.get(delete.kind, 0) + 1
        return counts


@dataclass(slots=True)
class HeldPlan:
    """What scans of one snapshot that differ in their columns alone have in common: a dataset is such a scan for each
    query. Plans with a filter are not held, as what the process reads meanwhile rules out more files (FM-27)."""

    plan: ScanPlan | None = None

    def hold(self, plan: ScanPlan) -> None:
        """Keep the plan, where it is small and reads all rows."""
        spans = sum(len(each) for task in plan.tasks[:_HELD_TASKS_MAX] for each in task.range_deletes)
        is_small = len(plan.tasks) <= _HELD_TASKS_MAX and spans <= _HELD_SPANS_MAX
        if is_small and isinstance(plan.where, AlwaysTrue):
            self.plan = plan
