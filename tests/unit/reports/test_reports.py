"""Reports of scans and commits: their content and receivers, and that a failing receiver does no harm."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.reports.report import CommitReport, Report, ScanReport


@pytest.fixture
def table(tmp_path: Path) -> Iterator[tf.Table]:
    """Three files; a range delete covers one of them."""
    with new_lake(tmp_path) as catalog:
        schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
        table = catalog.create_table("db.t", schema, key=["id"])
        for number in (1, 2, 3):
            table.append([{"id": number, "note": "x"}])
        table.delete_prefix({"id": 2})
        yield table


def reports_of(table: tf.Table) -> list[Report]:
    reports: list[Report] = []
    assert isinstance(table.catalog, tf.Catalog)
    table.catalog.report_to(reports.append)
    return reports


def numbers(report: Report) -> dict[str, Any]:
    """The counters that are not zero."""
    metrics = json.loads(json.dumps(report.to_dict()))["metrics"]
    return {name: metric["value"] for name, metric in metrics.items() if metric.get("value")}


def test_scan_report_follows_the_rest_specification(table: tf.Table) -> None:
    table.delete_rows([{"id": 3}])
    reports = reports_of(table)
    scan = table.scan("id >= 2 AND note = 'x'", ["note"])
    assert reports == []
    assert scan.count() == 0
    scan.to_arrow()
    (report,) = reports
    assert isinstance(report, ScanReport)
    told = report.to_dict()
    assert told.pop("metrics")["total-planning-duration"].keys() == {"time-unit", "count", "total-duration"}
    assert told == {
        "report-type": "scan-report",
        "table-name": "db.t",
        "snapshot-id": table.snapshot_id,
        "filter": {
            "type": "and",
            "left": {"type": "gt-eq", "term": "id", "value": 2},
            "right": {"type": "eq", "term": "note", "value": "x"},
        },
        "schema-id": 0,
        "projected-field-ids": [2],
        "projected-field-names": ["note"],
    }
    found = numbers(report)
    assert found.pop("total-file-size-in-bytes") == scan.plan().data_bytes
    assert found.pop("total-delete-file-size-in-bytes") > 0
    assert found == {
        "result-data-files": 1,
        "result-delete-files": 1,
        "total-data-manifests": 3,
        "scanned-data-manifests": 2,
        "skipped-data-manifests": 1,
        "total-delete-manifests": 2,
        "scanned-delete-manifests": 2,
        "skipped-data-files": 1,
        "indexed-delete-files": 2,
        "equality-delete-files": 1,
    }


def test_commit_reports_of_operations_and_jobs(table: tf.Table) -> None:
    reports = reports_of(table)
    result = table.append([{"id": 4, "note": None}])
    table.delete_rows([{"id": 9}])
    compacted = table.maintenance.compact(rewrite_all=True)
    table.create_tag("no snapshot")
    append, delete, replace, drop = reports
    assert isinstance(append, CommitReport)
    told = append.to_dict()
    assert told.pop("metrics")["attempts"] == {"unit": "count", "value": 1}
    assert told == {
        "report-type": "commit-report",
        "table-name": "db.t",
        "snapshot-id": result.snapshot_id,
        "sequence-number": result.sequence_number,
        "operation": "append",
    }
    added = numbers(append)
    assert (added["added-data-files"], added["added-records"], added["total-records"]) == (1, 1, 4)
    assert added["added-files-size-bytes"] > 0
    assert numbers(delete)["added-equality-delete-files"] == 1
    removed = numbers(replace)
    assert replace.to_dict()["operation"] == "replace"
    assert removed["removed-data-files"] == compacted.rewritten_data_files_count == 4
    dropped = compacted.removed_equality_delete_files_count + compacted.removed_range_delete_files_count
    assert numbers(drop)["removed-equality-delete-files"] == dropped == 2


def test_failing_reporter_does_not_fail_the_operation(table: tf.Table, caplog: pytest.LogCaptureFixture) -> None:
    def fail(report: Report) -> None:
        raise ConnectionError(f"no collector for {report.table_name}")

    assert isinstance(table.catalog, tf.Catalog)
    table.catalog.report_to(fail)
    with caplog.at_level(logging.WARNING):
        assert table.append([{"id": 5, "note": "y"}]).added_row_count == 1
        assert table.scan("id = 5").count() == 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "no collector for db.t" in caplog.text
    table.catalog.report_to(None)
    table.scan("id = 5").count()
    assert len(caplog.records) == 2


def test_pickled_scan_has_no_reporter(table: tf.Table) -> None:
    reports = reports_of(table)
    copy = pickle.loads(pickle.dumps(table.scan("id = 1")))
    assert copy.count() == 1
    assert reports == []


@pytest.mark.parametrize("version", ["2", "3"])
def test_report_counts_skipped_files_and_bytes(tmp_path: Path, version: str) -> None:
    """Files that partition, bounds and filters rule out; a vector counts with the bytes of its own blob."""
    with new_lake(tmp_path) as catalog:
        schema = pa.schema([("p", pa.string()), ("id", pa.int64())])
        properties = {"format-version": version, "write.parquet.bloom-filter-enabled.column.id": "true"}
        table = catalog.create_table("db.t", schema, partition_by=("p",), properties=properties)
        reports = reports_of(table)
        assert table.scan().count() == 0
        assert reports == [], "a table without a snapshot has nothing to tell"
        for a, b in (([1, 5], [1, 7]), ([2, 8], [3, 4]), ([2, 4], [9, 10])):
            table.append(pa.table({"p": ["a", "a", "b", "b"], "id": [*a, *b]}))
        table.delete("id = 1", mode="scan")
        table.delete("p = 'b' AND id = 9", mode="scan")
        asked = table.scan("p = 'a' AND id = 5")
        assert asked.to_arrow().num_rows == 1, "which reads the filters that the next plan asks (decision 29)"
        reports.clear()
        plan = table.scan("p = 'a' AND id = 5").plan()
        (report,) = reports
        found, pruning = numbers(report), plan.pruning
        by = pruning.skipped_by_partition_count, pruning.skipped_by_bounds_count, pruning.skipped_by_bloom_filter_count
        assert by == (3, 1, 1)
        assert found["skipped-data-files"] == 5
        assert "equality-delete-files" not in found
        assert found["total-delete-file-size-in-bytes"] == sum(
            each.content_size_bytes or each.file_size_bytes for each in plan.delete_files
        )
