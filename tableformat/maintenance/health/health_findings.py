"""Health findings: thresholds and recommended jobs (MT-20)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.publish_target import publish_target_of
from tableformat.maintenance.compaction.compaction_plan import DELETE_RATIO_THRESHOLD_DEFAULT, MIN_INPUT_FILES_DEFAULT
from tableformat.maintenance.expiry.snapshot_retention import RetentionRequest, plan_expiry
from tableformat.maintenance.health.added_file_findings import added_file_findings
from tableformat.maintenance.health.health import Finding, TableHealth
from tableformat.maintenance.health.health_statistics import measure
from tableformat.maintenance.health.range_findings import range_findings
from tableformat.maintenance.health.retention_findings import retention_findings
from tableformat.markup.figures import counted
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import (
    MANIFEST_MIN_COUNT_TO_MERGE,
    MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT,
    MANIFEST_TARGET_SIZE_BYTES,
    MANIFEST_TARGET_SIZE_BYTES_DEFAULT,
    positive_int,
)

_DEPTH_MAX: Final = 1.5
"""The average number of files that a lookup opens, from which overlap is a finding. The same as for compaction."""
_RANGE_FILES_MAX: Final = 10
"""The number of range delete files that every planner opens, from which merging them is recommended."""
_METADATA_BYTES_MAX: Final = 1_000_000
"""Size from which a metadata file makes commits slow."""


def table_health(view: SnapshotView, metadata_location: str, *, table: str, branch: str) -> TableHealth:
    """The health of a snapshot, with recommendations. Reads no rows of data files and changes nothing."""
    health, data_files = measure(view, metadata_location, table=table, branch=branch)
    findings = [*_findings(health, view, branch), *added_file_findings(view, data_files)]
    return replace(health, findings=tuple(findings))


def health_of(iceberg: IcebergTable, branch: str) -> TableHealth:
    """The health of the head of a branch."""
    view = head_view(iceberg.metadata, iceberg.io, branch)
    return table_health(view, iceberg.metadata_location, table=".".join(iceberg.name()), branch=branch)


def _findings(health: TableHealth, view: SnapshotView, branch: str) -> Iterator[Finding]:
    yield from _about_deletes(health, view, branch)
    yield from _about_files(health)
    yield from range_findings(view)
    yield from retention_findings(view)
    yield from _about_metadata(health, view)


def _about_deletes(health: TableHealth, view: SnapshotView, branch: str) -> Iterator[Finding]:
    counts = {each.kind: each.file_count for each in health.delete_files}
    equality, ranges = counts.get(DeleteKind.EQUALITY.value, 0), counts.get(DeleteKind.RANGE.value, 0)
    target = publish_target_of(view.metadata, branch)
    if equality or ranges:
        yield Finding(
            name="keyed-deletes",
            what=(
                f"{_keyed_delete_files(equality, ranges)}: each read compares keys of "
                f"{counted(health.partial_file_count, 'data file')}{_dead_weight(health.covered_file_count)}, and "
                "other engines reject or misread the branch"
            ),
            command="table.maintenance.convert_deletes()"
            if target is None
            else f"table.maintenance.publish(source={branch!r}, target={target!r})",
        )
    if ranges >= _RANGE_FILES_MAX:
        yield Finding(
            name="range-delete-files",
            what=(
                f"{ranges:,} range delete files are read to plan a scan; if conversion has to wait, merging them "
                "needs no data files"
            ),
            command="table.maintenance.merge_range_deletes()",
        )
    if health.dead_delete_file_count:
        yield Finding(
            name="dead-deletes",
            what=f"{counted(health.dead_delete_file_count, 'delete file')} without matching rows",
            command="table.maintenance.drop_dead_deletes()",
        )


def _keyed_delete_files(equality: int, ranges: int) -> str:
    counts = ((equality, "equality delete file"), (ranges, "range delete file"))
    return " and ".join(counted(count, noun) for count, noun in counts if count)


def _dead_weight(covered: int) -> str:
    if not covered:
        return ""
    return f", {covered:,} more {'is' if covered == 1 else 'are'} dead weight"


def _about_files(health: TableHealth) -> Iterator[Finding]:
    if health.small_file_count >= MIN_INPUT_FILES_DEFAULT:
        yield Finding(
            name="small-files",
            what=f"{health.small_file_count:,} of {health.data_file_count:,} data files are small",
            command="table.maintenance.compact()",
        )
    if health.deleted_row_ratio >= DELETE_RATIO_THRESHOLD_DEFAULT:
        yield Finding(
            name="deleted-rows",
            what=f"{health.deleted_row_ratio:.0%} of the rows in data files are deleted",
            command='table.maintenance.compact(depth="fold")',
        )
    depth = health.lookup_depth
    if depth is not None and depth.average >= _DEPTH_MAX:
        yield Finding(
            name="overlap",
            what=f"key ranges overlap: a lookup opens {depth.average:.1f} files on average, {depth.largest:,} at most",
            command="table.maintenance.compact()",
        )


def _about_metadata(health: TableHealth, view: SnapshotView) -> Iterator[Finding]:
    properties = view.metadata.properties
    merge_from = positive_int(properties, MANIFEST_MIN_COUNT_TO_MERGE, MANIFEST_MIN_COUNT_TO_MERGE_DEFAULT)
    target = positive_int(properties, MANIFEST_TARGET_SIZE_BYTES, MANIFEST_TARGET_SIZE_BYTES_DEFAULT)
    if health.manifest_count >= merge_from and health.manifest_bytes < health.manifest_count * target / 2:
        yield Finding(
            name="manifests",
            what=f"{health.manifest_count:,} manifests of {health.manifest_bytes // health.manifest_count:,} bytes on "
            "average are read to plan a scan",
            command="table.maintenance.rewrite_manifests()",
        )
    expirable = len(plan_expiry(view.metadata, RetentionRequest(now_ms=time.time_ns() // 1_000_000)).snapshot_ids)
    if expirable:
        yield Finding(
            name="snapshots",
            what=f"{expirable:,} of {health.snapshot_count:,} snapshots are older than the retention of the table",
            command="table.maintenance.expire_snapshots()",
        )
    elif health.metadata_bytes > _METADATA_BYTES_MAX:
        yield Finding(
            name="snapshots",
            what=f"each commit writes a metadata file of {health.metadata_bytes:,} bytes with "
            f"{health.snapshot_count:,} snapshots",
            command=f'table.maintenance.expire_snapshots(older_than="{_a_day_ago()}", retain_last=10)',
        )


def _a_day_ago() -> str:
    """ISO 8601 in UTC, to the second."""
    return (datetime.now(UTC) - timedelta(days=1)).isoformat(timespec="seconds")
