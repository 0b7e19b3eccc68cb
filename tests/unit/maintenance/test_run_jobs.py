"""All maintenance jobs in one call: their order, their budgets, and the remaining jobs if one fails."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from maintenance_tables import keyed_table, rows
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import CommitConflictError, CommitStateUnknownError, InvalidArgumentError
from tableformat.maintenance import run_jobs as module
from tableformat.maintenance.run_jobs import JOBS, JobStatus
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples


def worn_table(tmp_path: Path, **options: Any) -> tf.Table:
    """Ten small files over one another, with deletes of every kind."""
    table = keyed_table(tmp_path, **options)
    for turn in range(6):
        table.append(rows("a", range(turn, 100, 6)))
    table.upsert(rows("a", [7], "new"))
    table.delete_prefix({"id1": "a", "id2": 8})
    table.delete_prefix({"id1": "z"})
    table.delete(where="id2 = 9", mode="scan")
    return table


def statuses(result: Any) -> dict[str, str]:
    return {report.job: report.status.value for report in result.jobs}


def test_run_executes_all_jobs_in_order(tmp_path: Path) -> None:
    """MT-60: afterwards the table is a few files without deletes, with the rows that it had."""
    table = worn_table(tmp_path, properties={"history.expire.max-snapshot-age-ms": "1"})
    before = live_tuples(table)
    snapshot_ids = {snapshot.snapshot_id for snapshot in table.metadata.snapshots}
    result = table.maintenance.run()
    assert [report.job for report in result.jobs] == list(JOBS)
    not_for_this_table = ("publish", "advance_window", "apply_retention")
    assert statuses(result) == {job: "skipped" if job in not_for_this_table else "done" for job in JOBS}
    assert result.is_complete
    assert live_tuples(table) == before
    assert live_delete_files(table) == []
    assert len(live_data_files(table)) < 7
    assert snapshot_ids.isdisjoint(snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    assert result.rewritten_bytes > 0
    assert "convert_deletes" in str(result)


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    """MT-60"""
    table = worn_table(tmp_path)
    table.maintenance.run()
    head = table.snapshot_id
    table.maintenance.run()
    assert table.snapshot_id == head


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    """MT-60"""
    table = worn_table(tmp_path)
    head = table.snapshot_id
    result = table.maintenance.run(dry_run=True)
    assert table.refresh().snapshot_id == head
    assert result.report_of("convert_deletes").result.removed_range_delete_files_count == 2
    assert all(report.result is None or report.result.dry_run for report in result.jobs)


def test_exhausted_time_budget_stops_jobs(tmp_path: Path) -> None:
    """MT-60: before the first job, nothing begins; in the middle of a conversion, it stops without harm."""
    table = worn_table(tmp_path)
    before, head = live_tuples(table), table.snapshot_id
    result = table.maintenance.run(time_budget_seconds=0)
    assert set(statuses(result).values()) == {"skipped"}
    assert "time budget" in result.jobs[0].reason
    clock = iter([0.0, 0.0, *[100.0] * 1000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "perf_counter", lambda: next(clock))
        result = table.maintenance.run(time_budget_seconds=50)
    assert table.refresh().snapshot_id == head
    assert live_tuples(table) == before
    assert not result.is_complete or set(statuses(result).values()) == {"skipped"}


def test_job_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-60"""
    table = worn_table(tmp_path)

    def fail(*_arguments: Any, **_options: Any) -> None:
        raise CommitConflictError("somebody was faster")

    monkeypatch.setattr(module, "convert_deletes", fail)
    result = table.maintenance.run()
    assert statuses(result)["convert_deletes"] == "failed"
    assert result.report_of("convert_deletes").reason == "somebody was faster"
    assert statuses(result)["merge_range_deletes"] == "done"
    assert not result.is_complete


def test_unknown_outcome_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-60, CP-13: nothing is removed while it is not known what the table is."""
    table = worn_table(tmp_path)

    def lose(*_arguments: Any, **_options: Any) -> None:
        raise CommitStateUnknownError("no answer")

    monkeypatch.setattr(module, "compact", lose)
    result = table.maintenance.run()
    assert statuses(result)["compact"] == "failed"
    for job in JOBS[JOBS.index("compact") + 1 :]:
        assert result.report_of(job).status is JobStatus.SKIPPED
        assert "unknown whether compact was committed" in result.report_of(job).reason


def test_run_on_branch_with_publish_target(tmp_path: Path) -> None:
    """MT-60, MT-30: files are rewritten on the branch and published; on the target nothing is."""
    table = worn_table(tmp_path)
    table.create_branch("ingest")
    table.maintenance.convert_deletes()
    table.set_properties(**{"tableformat.publish-target.ingest": "main"})
    result = table.maintenance.run()
    assert {job for job, status in statuses(result).items() if status == "skipped"} == {*JOBS[:6], "publish"}
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    assert not ingest.maintenance.run(only=["convert_deletes"]).is_complete, "the target was rewritten before"


def test_branch_is_published_at_the_end(tmp_path: Path) -> None:
    """MT-60, MT-33"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    table.create_branch("ingest")
    table.set_properties(**{"tableformat.publish-target.ingest": "main"})
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    ingest.upsert(rows("a", [1], "new"))
    table.append(rows("m", [1]))
    result = ingest.maintenance.run()
    assert statuses(result)["publish"] == "done"
    assert (
        live_tuples(table.refresh())
        == live_tuples(ingest)
        == [
            ("a", 0, "x"),
            ("a", 1, "new"),
            ("a", 2, "x"),
            ("m", 1, "x"),
        ]
    )


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    """MT-60"""
    table = keyed_table(tmp_path)
    with pytest.raises(InvalidArgumentError, match="Did you mean 'compact'"):
        table.maintenance.run(only=["compactt"])
    with pytest.raises(InvalidArgumentError, match=r"only must be a list of jobs: only=\['compact'\]"):
        table.maintenance.run(only="compact")
    with pytest.raises(InvalidArgumentError, match="not be negative"):
        table.maintenance.run(byte_budget=-1)
    assert [report.job for report in table.maintenance.run(only=["compact", "convert_deletes"]).jobs] == [
        "convert_deletes",
        "compact",
    ]
    with pytest.raises(InvalidArgumentError, match="no job 'publish' in this run"):
        table.maintenance.run(only=["compact"]).report_of("publish")


def test_only_time_windows_are_advanced(tmp_path: Path) -> None:
    """MT-60, RP-11: one over numbers, and ranges without a window, are left out of a run."""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    windows: dict[str, dict[str, Any]] = {"numbers": {"step": 10, "retain": 20}, "none": {}}
    for name, window in windows.items():
        ranges = tf.RangePartitions(on=["n"], bounds=[(0, 50)], **window)
        table = catalog.create_table(f"db.{name}", schema, range_partitions=ranges)
        head = table.snapshot_id
        report = table.maintenance.run(only=["advance_window"]).report_of("advance_window")
        assert (report.status, report.result) == (JobStatus.SKIPPED, None)
        assert ("represent time" in report.reason) == (name == "numbers")
        assert table.refresh().snapshot_id == head


def test_window_over_days_is_advanced(tmp_path: Path) -> None:
    """MT-60, RP-11"""
    catalog = new_lake(tmp_path / "lake")
    schema = pa.schema([pa.field("day", pa.date32(), nullable=False)])
    begin = dt.date(2020, 1, 1)
    days = tf.RangePartitions(on=["day"], bounds=[(begin, begin + dt.timedelta(days=9))], step="1 day", retain="2 days")
    table = catalog.create_table("db.t", schema, range_partitions=days)
    table.append(pa.table({"day": pa.array([begin], pa.date32())}))
    report = table.maintenance.run(only=["advance_window"]).report_of("advance_window")
    assert (report.status, report.reason) == (JobStatus.DONE, "")
    assert table.refresh().scan().count() == 0


def test_run_uses_concurrently_set_properties(tmp_path: Path) -> None:
    """MT-60, MT-30: a handle that is older than the publish target leaves the files of the target alone."""
    table = worn_table(tmp_path)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    other.create_branch("ingest")
    other.set_properties(**{"tableformat.publish-target.ingest": "main"})
    assert statuses(table.maintenance.run(only=["convert_deletes"])) == {"convert_deletes": "skipped"}
