"""Procedures for a whole branch: its health, all maintenance jobs in one call, and publishing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyiceberg.table.refs import MAIN_BRANCH

from spark_ext.service.executors import executor_of
from spark_ext.service.procedures.procedure import Parameter, Rows, array_of, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN, result_fields
from tableformat.maintenance.run_jobs import JobReport
from tableformat.table import Table

_DELETE_FILES: Final = pa.list_(
    pa.struct(
        [
            *not_null(pa.string(), "kind"),
            *not_null(pa.int64(), "file_count", "total_bytes", "deleted_count"),
            ("oldest_age_seconds", pa.float64()),
        ]
    )
)
_HEALTH: Final = pa.schema(
    [
        *not_null(pa.string(), "table", "branch"),
        ("snapshot_id", pa.int64()),
        *not_null(pa.float64(), "read_amplification"),
        *not_null(pa.int64(), "data_file_count", "data_bytes", "record_count", "small_file_count"),
        *not_null(pa.float64(), "deleted_row_ratio", "clean_file_share"),
        *not_null(
            pa.int64(), "clean_file_count", "position_deleted_file_count", "partial_file_count", "covered_file_count"
        ),
        pa.field("lookup_depth", pa.struct([("average", pa.float64()), ("largest", pa.int64())])),
        pa.field("delete_files", _DELETE_FILES, nullable=False),
        *not_null(
            pa.int64(),
            "dead_delete_file_count",
            "manifest_count",
            "manifest_bytes",
            "snapshot_count",
            "metadata_bytes",
        ),
        pa.field(
            "findings",
            pa.list_(pa.struct(not_null(pa.string(), "name", "what", "command"))),
            nullable=False,
        ),
    ]
)


@procedure(columns=_HEALTH, changes_table=False)
def table_health(table: Table) -> Rows:
    """Causes of slow reads of the branch, in numbers, and the fix for each finding. No rows are read."""
    health = table.maintenance.health().to_dict()
    return [{name: health[name] for name in _HEALTH.names}]


_FINDINGS: Final = pa.schema(
    [
        *not_null(pa.string(), "severity", "kind", "file", "what", "next_step"),
        ("command", pa.string()),
        pa.field("snapshot_ids", pa.list_(pa.int64()), nullable=False),
    ]
)


@procedure(
    Parameter("deep", "boolean", "Read every file too: rows, bounds, order, checksums; false by default."),
    Parameter("keys", "boolean", "Also look for keys that more than one row of the snapshot has; false by default."),
    Parameter("snapshot_id", "long", "Only this snapshot, not all that are retained."),
    columns=_FINDINGS,
    changes_table=False,
)
def verify(table: Table, *, deep: bool = False, keys: bool = False, snapshot_id: int | None = None) -> Rows:
    """Check that every file exists and matches the metadata. The result has a row for each finding, errors first. A
    table without findings has no row."""
    found = table.maintenance.verify(deep=deep, keys=keys, snapshot_id=snapshot_id)
    for each in found.findings:
        row = {name: getattr(each, name) for name in _FINDINGS.names}
        yield {**row, "severity": each.severity.value, "kind": each.kind.value, "snapshot_ids": list(each.snapshot_ids)}


@procedure(
    Parameter("time_budget_seconds", "double", "No job starts after this time; conversion and compaction stop then."),
    Parameter("byte_budget", "long", "Maximum number of bytes that compaction reads."),
    Parameter("only", array_of("string"), "The jobs to run, in their own order; all by default."),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.string(), "job", "status", "reason"),
            *not_null(pa.float64(), "duration_seconds"),
            ("result", pa.map_(pa.string(), pa.int64())),
        ]
    ),
)
def run_maintenance(
    table: Table,
    *,
    time_budget_seconds: float | None = None,
    byte_budget: int | None = None,
    only: Sequence[str] | None = None,
    dry_run: bool = False,
) -> Iterator[dict[str, Any]]:
    """Run all maintenance jobs in a safe order, within the budgets. The result has a row with numbers for each job. If
    a job fails, its row has the error and the next job runs."""
    result = table.maintenance.run(
        time_budget_seconds=time_budget_seconds,
        byte_budget=byte_budget,
        only=only,
        executor=executor_of(table),
        dry_run=dry_run,
    )
    for report in result.jobs:
        yield {
            "job": report.job,
            "status": report.status.value,
            "reason": report.reason,
            "duration_seconds": report.duration_seconds,
            "result": _numbers(report),
        }


@procedure(
    Parameter("branch", "string", "The branch to convert; ingest by default."),
    Parameter("target", "string", "The branch to move forward; main by default."),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.string(), "source", "target"),
            ("previous_snapshot_id", pa.int64()),
            ("current_snapshot_id", pa.int64()),
            *not_null(pa.int64(), "carried_data_files_count", "carried_records_count"),
            *not_null(pa.int64(), "removed_equality_delete_files_count", "removed_range_delete_files_count"),
            *not_null(pa.int64(), "converted_rows_count"),
        ]
    ),
    on_branch=False,
)
def publish(table: Table, *, branch: str = "ingest", target: str = MAIN_BRANCH, dry_run: bool = False) -> Rows:
    """Convert the deletes of a branch and move another branch forward to it, for engines that cannot read range
    deletes."""
    result = table.maintenance.publish(branch, target, executor=executor_of(table), dry_run=dry_run)
    return [{**result_fields(result), "current_snapshot_id": result.snapshot_id}]


def _numbers(report: JobReport) -> list[tuple[str, int]] | None:
    """The counts in a job's result, as the entries of a map."""
    if report.result is None:
        return None
    named = result_fields(report.result)
    return [(name, value) for name, value in named.items() if isinstance(value, int) and not isinstance(value, bool)]
