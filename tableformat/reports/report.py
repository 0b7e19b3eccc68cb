"""`ScanReport` and `CommitReport`.

Source: Iceberg REST catalog specification, `ReportMetricsRequest`. Metrics have the names of Iceberg's
`ScanMetricsResult` and `CommitMetricsResult`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

_BYTES: Final = "bytes"
_SUMMARY_METRICS: Final = {
    "added-data-files": "added-data-files",
    "deleted-data-files": "removed-data-files",
    "total-data-files": "total-data-files",
    "added-delete-files": "added-delete-files",
    "added-equality-delete-files": "added-equality-delete-files",
    "added-position-delete-files": "added-positional-delete-files",
    "added-dvs": "added-dvs",
    "removed-position-delete-files": "removed-positional-delete-files",
    "removed-dvs": "removed-dvs",
    "removed-equality-delete-files": "removed-equality-delete-files",
    "removed-delete-files": "removed-delete-files",
    "total-delete-files": "total-delete-files",
    "added-records": "added-records",
    "deleted-records": "removed-records",
    "total-records": "total-records",
    "added-files-size": "added-files-size-bytes",
    "removed-files-size": "removed-files-size-bytes",
    "total-files-size": "total-files-size-bytes",
    "added-position-deletes": "added-positional-deletes",
    "removed-position-deletes": "removed-positional-deletes",
    "total-position-deletes": "total-positional-deletes",
    "added-equality-deletes": "added-equality-deletes",
    "removed-equality-deletes": "removed-equality-deletes",
    "total-equality-deletes": "total-equality-deletes",
    "added-range-deletes": "added-range-deletes",
    "removed-range-deletes": "removed-range-deletes",
}
"""Names in a snapshot summary -> names in a commit report; the last two are our own (FM-18)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """A planned scan."""

    table_name: str
    snapshot_id: int
    filter: Any
    """Iceberg's JSON of the filter, with its values; True means every row."""
    schema_id: int
    projected_field_ids: tuple[int, ...]
    projected_field_names: tuple[str, ...]
    planning_seconds: float
    counts: Mapping[str, int]
    """Metrics by name: bytes if the name says so, otherwise numbers of files or manifests."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a `ReportMetricsRequest`."""
        return {
            "report-type": "scan-report",
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "filter": self.filter,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.projected_field_ids),
            "projected-field-names": list(self.projected_field_names),
            "metrics": {"total-planning-duration": _timer(self.planning_seconds)} | _counters(self.counts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """A committed snapshot of an operation or a job."""

    table_name: str
    snapshot_id: int
    sequence_number: int
    operation: str
    """`append`, `overwrite`, `delete` or `replace`."""
    duration_seconds: float
    """All attempts: manifests and the catalog's answer. Data and delete files were written before."""
    attempts: int
    summary: Mapping[str, str] = field(repr=False)
    """The summary of the snapshot."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of a `ReportMetricsRequest`."""
        counted = {
            metric: int(text)
            for name, metric in _SUMMARY_METRICS.items()
            if (text := self.summary.get(name, "")).isdecimal()
        }
        return {
            "report-type": "commit-report",
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "operation": self.operation,
            "metrics": {"total-duration": _timer(self.duration_seconds)}
            | _counters({"attempts": self.attempts} | counted),
        }


Report: TypeAlias = ScanReport | CommitReport


def parse_report(table_name: str, document: Mapping[str, Any]) -> Report:
    """The report of another engine, from the JSON of a `ReportMetricsRequest`. Metrics that are not counts, such as the
    durations of single steps, are left out.

    Raises KeyError and ValueError for a document that is not a report.
    """
    metrics = document["metrics"]
    counts = {name: int(metric["value"]) for name, metric in metrics.items() if "value" in metric}
    match document["report-type"]:
        case "scan-report":
            return ScanReport(
                table_name=table_name,
                snapshot_id=int(document["snapshot-id"]),
                filter=document["filter"],
                schema_id=int(document["schema-id"]),
                projected_field_ids=tuple(document["projected-field-ids"]),
                projected_field_names=tuple(document["projected-field-names"]),
                planning_seconds=_seconds(metrics.get("total-planning-duration")),
                counts=counts,
            )
        case "commit-report":
            return CommitReport(
                table_name=table_name,
                snapshot_id=int(document["snapshot-id"]),
                sequence_number=int(document["sequence-number"]),
                operation=str(document["operation"]),
                duration_seconds=_seconds(metrics.get("total-duration")),
                attempts=counts.get("attempts", 1),
                summary={name: str(counts[metric]) for name, metric in _SUMMARY_METRICS.items() if metric in counts},
            )
        case kind:
            raise ValueError(f"report-type {kind!r:.80} is unknown")


def _seconds(timer: Mapping[str, Any] | None) -> float:
    """The duration of a timer, whose unit is nanoseconds in Iceberg's reports."""
    return float(timer["total-duration"]) / 1e9 if timer is not None else 0.0


def _timer(seconds: float) -> dict[str, Any]:
    return {"time-unit": "nanoseconds", "count": 1, "total-duration": round(seconds * 1e9)}


def _counters(counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: {"unit": _BYTES if name.endswith(_BYTES) else "count", "value": count} for name, count in counts.items()
    }
