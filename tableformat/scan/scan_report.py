"""Reports the plan of a scan to the reporter of its catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from tableformat.metadata.content_file import DeleteKind
from tableformat.reports.report import ScanReport
from tableformat.reports.reporting import is_reported, send
from tableformat.scan.plan import ScanPlan


@dataclass(frozen=True, slots=True)
class ReportedTable:
    """The table whose scans are reported."""

    name: str
    """Its dotted identifier."""
    catalog: Catalog
    """The PyIceberg catalog, which identifies the reporter."""

    def report(self, plan: ScanPlan, selected: Schema, schema: Schema, planning_seconds: float) -> None:
        """Report a plan. Nothing is reported for a table without a snapshot."""
        if plan.snapshot_id is None or not is_reported(self.catalog):
            return
        report = ScanReport(
            table_name=self.name,
            snapshot_id=plan.snapshot_id,
            filter=_json(plan.where),
            schema_id=schema.schema_id,
            projected_field_ids=tuple(field.field_id for field in selected.fields),
            projected_field_names=tuple(field.name for field in selected.fields),
            planning_seconds=planning_seconds,
            counts=scan_counts(plan),
        )
        send(self.catalog, report)


def _json(where: BooleanExpression) -> Any:
    return True if isinstance(where, AlwaysTrue) else where.model_dump(mode="json", by_alias=True)


def scan_counts(plan: ScanPlan) -> dict[str, int]:
    """Iceberg's metrics. `dvs` are included in the delete files, `range-delete-files` are specific to this format. Data
    files that are covered by range deletes count as skipped."""
    pruning, kinds = plan.pruning, plan.delete_file_counts
    deletes = plan.delete_files
    skipped = pruning.skipped_by_partition_count + pruning.skipped_by_bounds_count + len(plan.covered)
    skipped += pruning.skipped_by_bloom_filter_count
    return {
        "result-data-files": len(plan.tasks),
        "result-delete-files": len(deletes),
        "total-data-manifests": pruning.data_manifest_count,
        "total-delete-manifests": pruning.delete_manifest_count,
        "scanned-data-manifests": pruning.data_manifest_count - pruning.skipped_data_manifest_count,
        "scanned-delete-manifests": pruning.delete_manifest_count - pruning.skipped_delete_manifest_count,
        "skipped-data-manifests": pruning.skipped_data_manifest_count,
        "skipped-delete-manifests": pruning.skipped_delete_manifest_count,
        "skipped-data-files": skipped,
        "skipped-delete-files": pruning.skipped_delete_file_count,
        "indexed-delete-files": pruning.delete_file_count - pruning.skipped_delete_file_count,
        "equality-delete-files": kinds.get(DeleteKind.EQUALITY, 0),
        "positional-delete-files": kinds.get(DeleteKind.POSITION, 0),
        "dvs": kinds.get(DeleteKind.DELETION_VECTOR, 0),
        "range-delete-files": kinds.get(DeleteKind.RANGE, 0),
        "total-file-size-in-bytes": plan.data_bytes,
        "total-delete-file-size-in-bytes": sum(each.content_size_bytes or each.file_size_bytes for each in deletes),
    }
