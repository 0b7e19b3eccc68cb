"""Converts reports to spans and metrics of OpenTelemetry.

Source: OpenTelemetry specification, semantic conventions (names with dots and underscores, seconds, `By`). The metrics
have the names of Iceberg's `ScanMetricsResult` and `CommitMetricsResult`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tableformat.errors import UnsupportedFeatureError
from tableformat.reports.report import Report, ScanReport

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE: Final = "tableformat"
_NANOS: Final = 1_000_000_000


class OpenTelemetryReporter:
    """A reporter for `Catalog.report_to`: a span and metrics of each planned scan and each committed snapshot.

    The spans `tableformat.scan` (its planning) and `tableformat.commit` are children of the caller's current span.
    Durations are histograms in seconds, counts are counters, and totals of the table after a commit are gauges:
    `tableformat.scan.duration`, `tableformat.scan.result_data_files`, `tableformat.commit.added_records`,
    `tableformat.commit.total_data_files`. All have the attribute `tableformat.table`, and commits also
    `tableformat.operation`. Filters of scans are left out, because they contain values of rows.

    The global providers are the default; without them, OpenTelemetry drops everything. Raises UnsupportedFeatureError
    if `opentelemetry-api` is not installed (`tableformat[opentelemetry]`).

    >>> reporter = tf.OpenTelemetryReporter()
    >>> catalog.report_to(reporter)
    >>> table.scan(where="id1 = 'A'").count()
    2
    """

    def __init__(
        self, *, meter_provider: MeterProvider | None = None, tracer_provider: TracerProvider | None = None
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as error:
            raise UnsupportedFeatureError(
                f"opentelemetry-api is not installed ({error}). Install it with pip install "
                "'tableformat[opentelemetry]', or use Catalog.report_to(callable), which needs no other package."
            ) from error
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._instruments: dict[str, Any] = {}

    def __call__(self, report: Report) -> None:
        """Record the report. The current time is the end of the reported scan or commit."""
        if isinstance(report, ScanReport):
            kind, seconds, attributes = "scan", report.planning_seconds, {}
        else:
            kind, seconds, attributes = "commit", report.duration_seconds, {"tableformat.operation": report.operation}
        name = f"{_SCOPE}.{kind}"
        attributes = {"tableformat.table": report.table_name} | attributes
        metrics = {
            f"{name}.{metric.replace('-', '_')}": (told["value"], told["unit"])
            for metric, told in report.to_dict()["metrics"].items()
            if "value" in told
        }
        end = time.time_ns()
        self._tracer.start_span(
            name,
            start_time=end - round(seconds * _NANOS),
            attributes=attributes
            | {"tableformat.snapshot_id": report.snapshot_id}
            | {metric: value for metric, (value, _) in metrics.items()},
        ).end(end)
        self._instrument(self._meter.create_histogram, f"{name}.duration", "s").record(seconds, attributes)
        for metric, (value, unit) in metrics.items():
            unit_name = "By" if unit == "bytes" else "1"
            if metric.startswith(f"{_SCOPE}.commit.total_"):
                self._instrument(self._meter.create_gauge, metric, unit_name).set(value, attributes)
            else:
                self._instrument(self._meter.create_counter, metric, unit_name).add(value, attributes)

    def _instrument(self, create: Callable[..., Any], name: str, unit: str) -> Any:
        """Instruments, each created on first use."""
        if name not in self._instruments:
            self._instruments[name] = create(name, unit=unit)
        return self._instruments[name]
