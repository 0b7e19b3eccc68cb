"""The metadata that commits and expiry keep for a Flink job that writes to the table."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat import Catalog, Table
from tableformat.errors import ForeignWriterWarning
from tableformat.maintenance.expiry.flink_history import warn_where_flink_stops

PROGRESS = {"flink.job-id": "j", "flink.operator-id": "o", "flink.max-committed-checkpoint-id": "7"}
BY_FLINK = {**PROGRESS, "engine-name": "flink"}


def of_checkpoint_before(summary: dict[str, str]) -> dict[str, str]:
    """The summary of Flink's commit before the given one."""
    return {name: "6" if name.endswith("checkpoint-id") else value for name, value in summary.items()}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return new_lake(tmp_path)


def written_by_flink(catalog: Catalog, version: str = "3") -> Table:
    """A table whose last snapshot deletes rows of older snapshots, as the commit of one checkpoint does."""
    table = catalog.create_table(
        "db.t", pa.schema([("id", pa.int64())]), key=["id"], properties={"format-version": version}
    )
    table.append(pa.table({"id": [1, 2]}), snapshot_properties=of_checkpoint_before(BY_FLINK))
    table.delete("id = 1", mode="scan", snapshot_properties=BY_FLINK)
    return table


def progress_of(table: Table) -> dict[str, str]:
    snapshot = table.refresh().iceberg.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return {name: value for name, value in snapshot.summary.additional_properties.items() if name.startswith("flink.")}


def test_flink_progress_survives_jobs_and_expiry(catalog: Catalog) -> None:
    """LK-12: a job of Flink that is restored asks the snapshots that are left."""
    table = written_by_flink(catalog, "2")
    table.maintenance.compact(rewrite_all=True)
    table.append(pa.table({"id": [3]}))
    table.maintenance.expire_snapshots(older_than="2100-01-01")
    assert table.history().num_rows == 1
    assert progress_of(table) == PROGRESS


def test_progress_of_flink_jobs_is_kept_separately(catalog: Catalog) -> None:
    """LK-12: a commit that states some of it states all that holds after it."""
    table = written_by_flink(catalog)
    others = {"flink.job-id": "other", "flink.operator-id": "o"}
    table.append(pa.table({"id": [3]}), snapshot_properties=others)
    assert progress_of(table) == others
    table.append(pa.table({"id": [4]}))
    assert progress_of(table) == others


def test_expiry_that_stops_flink_warns_once(catalog: Catalog) -> None:
    """LK-13: Flink's sink needs the first snapshot that is removed."""
    table = written_by_flink(catalog)
    with pytest.warns(ForeignWriterWarning, match=r"db\.t \(branch main\).*version 2"):
        table.maintenance.expire_snapshots(older_than="2100-01-01", dry_run=True)
    with pytest.warns(ForeignWriterWarning):
        table.maintenance.expire_snapshots(older_than="2100-01-01")
    table.delete("id = 2", mode="scan", snapshot_properties=BY_FLINK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.maintenance.expire_snapshots(older_than="2100-01-01")


def test_expiry_that_does_not_stop_flink_does_not_warn(catalog: Catalog) -> None:
    """LK-13: on version 2 its sink does not look back, and other writers never do."""
    table = written_by_flink(catalog, "2")
    table.maintenance.expire_snapshots(older_than="2100-01-01")
    other = catalog.create_table(
        "db.o", pa.schema([("id", pa.int64())]), key=["id"], properties={"format-version": "3"}
    )
    other.append(pa.table({"id": [1, 2]}))
    other.delete("id = 1", mode="scan")
    assert other.maintenance.expire_snapshots(older_than="2100-01-01").expired_snapshots_count == 1


def made_by(catalog: Catalog, version: str, summary: dict[str, str]) -> Table:
    """With rows that are deleted by position."""
    table = catalog.create_table(
        "db.t", pa.schema([("id", pa.int64())]), key=["id"], properties={"format-version": version}
    )
    table.append(pa.table({"id": [1, 2, 3]}), snapshot_properties=of_checkpoint_before(summary))
    table.delete("id = 1", mode="scan", snapshot_properties=summary)
    return table


@pytest.mark.parametrize(
    ("version", "summary", "expired", "is_told"),
    [
        ("3", BY_FLINK, "first", True),
        ("3", PROGRESS, "first", True),
        ("2", BY_FLINK, "first", False),
        ("3", {**PROGRESS, "engine-name": "spark"}, "first", False),
        ("3", {}, "first", False),
        ("3", BY_FLINK, "another", False),
        ("3", BY_FLINK, "none", False),
    ],
)
def test_warning_requires_v3_flink_vectors_on_the_branch(
    catalog: Catalog, version: str, summary: dict[str, str], expired: str, is_told: bool
) -> None:
    """LK-13: of version 3, by Flink with vectors, and from the history of its branch."""
    table = made_by(catalog, version, summary)
    ids = {"first": {table.history()["snapshot_id"][0].as_py()}, "another": {-1}, "none": set()}[expired]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_where_flink_stops("db.t", table.refresh().metadata, ids)
    assert [each.category for each in told] == [ForeignWriterWarning] * is_told


def test_warning_considers_every_branch(catalog: Catalog) -> None:
    """LK-13: also one that is listed after a tag."""
    table = made_by(catalog, "3", {})
    table.create_tag("a")
    table.create_branch("b")
    beside = catalog.load_table("db.t", branch="b")
    beside.delete("id = 2", mode="scan", snapshot_properties=BY_FLINK)
    with pytest.warns(ForeignWriterWarning, match="branch b"):
        warn_where_flink_stops("db.t", table.refresh().metadata, {table.history()["snapshot_id"][0].as_py()})
