"""Reports as spans and metrics of OpenTelemetry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tableformat as tf


class Telemetry:
    """The spans and metrics of a reporter, kept in memory."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.spans = InMemorySpanExporter()
        self._meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.reporter = tf.OpenTelemetryReporter(meter_provider=self._meters, tracer_provider=self.tracers)

    def metrics(self) -> dict[str, Any]:
        """By name: the unit, and the points as (attributes, value or count)."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: (
                metric.unit,
                [
                    (dict(point.attributes or {}), getattr(point, "value", getattr(point, "count", None)))
                    for point in metric.data.data_points
                ],
            )
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def catalog(tmp_path: Path) -> tf.Catalog:
    catalog = new_lake(tmp_path)
    catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]), key=["id"])
    return catalog


def test_commits_and_scans_are_spans_and_metrics(catalog: tf.Catalog) -> None:
    telemetry = Telemetry()
    catalog.report_to(telemetry.reporter)
    table = catalog.load_table("db.t")
    with telemetry.tracers.get_tracer("caller").start_as_current_span("job"):
        table.append([{"id": 1, "name": "secret"}, {"id": 2, "name": "b"}])
        table.append([{"id": 3, "name": "c"}])
    assert table.scan(where="name = 'secret'").count() == 1

    spans = telemetry.spans.get_finished_spans()
    assert [span.name for span in spans] == ["tableformat.commit", "tableformat.commit", "job", "tableformat.scan"]
    job = spans[2]
    assert [span.parent and span.parent.span_id for span in spans] == [
        job.context.span_id,
        job.context.span_id,
        None,
        None,
    ]
    assert all(span.end_time > span.start_time for span in spans)
    assert spans[0].attributes["tableformat.operation"] == "append"
    assert spans[1].attributes["tableformat.commit.total_records"] == 3
    assert spans[3].attributes["tableformat.snapshot_id"] == table.snapshot_id
    assert not any("secret" in span.to_json() for span in spans)

    metrics = telemetry.metrics()
    of_commits = {"tableformat.table": "db.t", "tableformat.operation": "append"}
    assert metrics["tableformat.commit.added_records"] == ("1", [(of_commits, 3)])
    assert metrics["tableformat.commit.total_records"] == ("1", [(of_commits, 3)])
    assert metrics["tableformat.commit.duration"] == ("s", [(of_commits, 2)])
    unit, [(attributes, size)] = metrics["tableformat.commit.added_files_size_bytes"]
    assert (unit, attributes) == ("By", of_commits)
    assert size == sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    assert metrics["tableformat.scan.result_data_files"] == ("1", [({"tableformat.table": "db.t"}, 1)])


def test_missing_package_error_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import tableformat as tf\n"
        "try:\n    tf.OpenTelemetryReporter()\n"
        "except tf.errors.UnsupportedFeatureError as error:\n    print(error)"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "pip install 'tableformat[opentelemetry]'" in printed
