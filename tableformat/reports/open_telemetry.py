"""Reports as spans and metrics of OpenTelemetry.

Source: OpenTelemetry specification, semantic conventions (names in dots and underscores, seconds, `By`); the
metrics are those of Iceberg's `ScanMetricsResult` and `CommitMetricsResult`.
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
    """For `Catalog.report_to`: a span and metrics of each scan that was planned and each snapshot that was committed.

    The spans `tableformat.scan` (its planning) and `tableformat.commit` are children of the span that the caller is
    in. Durations are histograms in seconds, counts are counters, and what a table has after a commit (`total-...`)
    gauges: `tableformat.scan.duration`, `tableformat.scan.result_data_files`, `tableformat.commit.added_records`,
    `tableformat.commit.total_data_files`. All have the attribute `tableformat.table`, those of commits
    `tableformat.operation`. Conditions of scans are left out: they hold values of rows.

    Without providers the global ones are used; without those, OpenTelemetry drops everything. Raises
    UnsupportedFeatureError where `opentelemetry-api` is not installed (`tableformat[opentelemetry]`).

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
                f"opentelemetry-api is not installed ({error}). Install it: pip install 'tableformat[opentelemetry]'. "
                "Catalog.report_to(callable) needs nothing else."
            ) from error
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=tracer_provider)
        self._meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._instruments: dict[str, Any] = {}

    def __call__(self, report: Report) -> None:
        """Record the report, with the present as the end of what it tells of."""
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
        """Each is made once, when it is first used."""
        if name not in self._instruments:
            self._instruments[name] = create(name, unit=unit)
        return self._instruments[name]
