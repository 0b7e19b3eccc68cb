"""Ctrl-C after the catalog has a commit, wherever it comes: files that the table may name stay, and it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import keyed_table, rows
from pyiceberg.exceptions import CommitFailedException

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.errors import CommitInterruptedError, CommitStateUnknownError
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.reports.report import CommitReport, Report
from tableformat.storage.location import local_path
from tableformat.storage.storage import delete_if_present
from tableformat.testing.replacing import replaced

Act = Callable[[tf.Table], Any]

ACTS: dict[str, Act] = {
    "append": lambda table: table.append(rows("z", [100])),
    "upsert": lambda table: table.upsert(rows("a", [4])),
    "delete_prefix": lambda table: table.delete_prefix({"id1": "a", "id2": 4}),
    "delete": lambda table: table.delete("id2 = 4", mode="scan"),
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "convert_deletes": lambda table: table.maintenance.convert_deletes(),
    "merge_range_deletes": lambda table: table.maintenance.merge_range_deletes(),
    "rewrite_manifests": lambda table: table.maintenance.rewrite_manifests(),
    "run": lambda table: table.maintenance.run(only=["compact"]),
}

STATISTICS: dict[bool, Act] = {
    False: lambda table: table.maintenance.compute_table_stats(),
    True: lambda table: compute_partition_statistics(table.iceberg, table.snapshot_id or 0),
}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[tf.Table]:
    """Six files, of which two range deletes reach some."""
    found = keyed_table(tmp_path, partition_by=("bucket(2, id2)",))
    for number in range(6):
        found.append(rows("a", [number]))
    for number in (0, 3):
        found.delete_prefix({"id1": "a", "id2": number})
    yield found
    assert found.catalog is not None
    found.catalog.close()


@pytest.mark.parametrize("act", ACTS)
def test_ctrl_c_while_a_commit_is_reported_loses_no_file(table: tf.Table, act: str) -> None:
    """CP-51: it had removed the files of the commit, or had been told as if nothing had happened."""

    def interrupt(report: Report) -> None:
        if isinstance(report, CommitReport):
            raise KeyboardInterrupt

    assert isinstance(table.catalog, tf.Catalog)
    head = table.snapshot_id
    table.catalog.report_to(interrupt)
    with pytest.raises(BaseException, match=r"the commit to db\.t \(branch main\) happened, as snapshot") as told:
        ACTS[act](table)
    assert isinstance(told.value, CommitInterruptedError)
    table.catalog.report_to(None)
    assert table.refresh().snapshot_id != head
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("has_partitions", [False, True])
def test_statistics_whose_commit_was_interrupted_stay(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], has_partitions: bool
) -> None:
    """CP-51: the file was removed although the table names it by then."""
    commit = EmbeddedCatalog.commit_table

    def interrupted(*arguments: Any) -> None:
        commit(*arguments)
        raise error

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", interrupted)
    with pytest.raises(BaseException, match=r"did not say whether the change of db\.t happened") as told:
        STATISTICS[has_partitions](table)
    assert isinstance(told.value, CommitStateUnknownError)
    assert isinstance(told.value, CommitInterruptedError) == (error is KeyboardInterrupt)
    metadata = table.refresh().metadata
    (file,) = metadata.partition_statistics if has_partitions else metadata.statistics
    assert Path(local_path(file.statistics_path) or "").exists()


def test_a_file_that_cannot_be_removed_after_the_commit_is_no_error_of_the_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-18, CP-51: a table that is upgraded meanwhile needs no position delete file, but a vector. The verb raised,
    and removed the vector that it had committed."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1, 2, 3]))
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    commit = EmbeddedCatalog.commit_table

    def after_an_upgrade(*arguments: Any) -> Any:
        monkeypatch.setattr(EmbeddedCatalog, "commit_table", commit)
        other.upgrade()
        raise CommitFailedException("overtaken")

    def refuse(*_arguments: Any) -> None:
        raise OSError("no answer")

    monkeypatch.setattr(EmbeddedCatalog, "commit_table", after_an_upgrade)
    with replaced(delete_if_present, refuse), caplog.at_level(logging.WARNING):
        table.delete("id2 = 2", mode="scan")
    assert "could not remove" in caplog.text
    assert sorted(table.refresh().scan().to_arrow()["id2"].to_pylist()) == [1, 3]
    assert table.verify(deep=True).is_clean
