"""LK-12: our commits and expiry keep the progress of streaming writers in snapshot summaries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat import Catalog, Table
from tableformat.commit.writer_progress import PROGRESS_KEYS

PROGRESS = {
    "flink.job-id": "job",
    "flink.operator-id": "operator",
    "flink.max-committed-checkpoint-id": "7",
    "kafka.connect.offsets.control.group": '{"0":12}',
    "kafka.connect.commit-id": "c",
    "kafka.connect.valid-through-ts": "2026-11-27T00:00Z",
    "spark.sql.streaming.queryId": "q",
    "spark.sql.streaming.epochId": "3",
    "redpanda.commit-metadata": '{"offset":5}',
    "mz-sink-id": "u1",
    "mz-frontier": "[20]",
    "mz-sink-version": "1",
    "automq.commit.id": "5e5b3c2e-7c2f-4a39-9d0c-1c5e8e0b4b52",
    "automq.watermark": "100",
}


ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return new_lake(tmp_path)


def written_by_a_stream(catalog: Catalog, version: str = "2") -> Table:
    table = catalog.create_table(
        "db.t", pa.schema([("id", pa.int64())]), key=["id"], properties={"format-version": version}
    )
    table.append(ROWS, snapshot_properties=PROGRESS)
    return table


def summary_of(table: Table) -> dict[str, str]:
    snapshot = table.refresh().metadata.snapshot_by_name(table.branch)
    assert snapshot is not None
    assert snapshot.summary is not None
    return dict(snapshot.summary.additional_properties)


def progress_of(table: Table) -> dict[str, str]:
    return {name: value for name, value in summary_of(table).items() if name in PROGRESS}


def test_every_known_streaming_writer_is_tested() -> None:
    for keys in PROGRESS_KEYS:
        assert keys.names <= PROGRESS.keys()
        assert keys.prefix is None or any(name.startswith(keys.prefix) for name in PROGRESS)


def in_transaction(table: Table) -> None:
    with table.transaction() as transaction:
        transaction.append(ROWS)
        transaction.delete_prefix({"id": 2})


def by_other_processes(table: Table) -> None:
    write = table.new_write()
    table.commit(write, [write.write(ROWS)])


COMMITS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(ROWS),
    "upsert": lambda table: table.upsert(ROWS),
    "replace": lambda table: table.replace(ROWS, prefix=["id"]),
    "overwrite": lambda table: table.overwrite(ROWS),
    "delete_prefix": lambda table: table.delete_prefix({"id": 1}),
    "delete by scan": lambda table: table.delete("id = 1", mode="scan"),
    "transaction": in_transaction,
    "new_write": by_other_processes,
    "compact": lambda table: table.maintenance.compact(rewrite_all=True),
    "rewrite_manifests": lambda table: table.maintenance.rewrite_manifests(),
}


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("name", COMMITS)
def test_commits_and_expiry_keep_writer_progress(catalog: Catalog, name: str, version: str) -> None:
    """LK-12: for operations, transactions, staged writes and jobs."""
    table = written_by_a_stream(catalog, version)
    if name == "rewrite_manifests":
        table.append(ROWS)
    COMMITS[name](table)
    table.maintenance.convert_deletes()
    assert progress_of(table) == PROGRESS
    table.maintenance.expire_snapshots(older_than="2100-01-01")
    assert table.history().num_rows == 1
    assert progress_of(table) == PROGRESS


def test_branch_inherits_writer_progress(catalog: Catalog) -> None:
    """LK-12: and what is stated on the branch stays there."""
    table = written_by_a_stream(catalog)
    table.create_branch("side")
    side = catalog.load_table("db.t", branch="side")
    side.delete_prefix({"id": 1})
    assert progress_of(side) == PROGRESS
    side.append(ROWS, snapshot_properties={"redpanda.commit-metadata": "later"})
    side.append(ROWS)
    table.append(ROWS)
    assert progress_of(side) == {**PROGRESS, "redpanda.commit-metadata": "later"}
    assert progress_of(table) == PROGRESS


def test_rollback_restores_earlier_writer_progress(catalog: Catalog) -> None:
    """LK-12: the rows of later commits are gone, so the stream has to write them again."""
    table = written_by_a_stream(catalog)
    first = table.snapshot_id
    later = {**PROGRESS, "kafka.connect.offsets.control.group": '{"0":40}'}
    table.append(ROWS, snapshot_properties=later)
    table.rollback(snapshot_id=first)
    table.append(ROWS)
    assert progress_of(table) == PROGRESS


def test_kafka_connectors_have_separate_progress(catalog: Catalog) -> None:
    """LK-12: a commit of one group does not change the offsets of another."""
    table = written_by_a_stream(catalog)
    stated = {"kafka.connect.offsets.control.other": '{"0":1}', "kafka.connect.commit-id": "d"}
    table.append(ROWS, snapshot_properties=stated)
    table.append(ROWS)
    found = {name: value for name, value in summary_of(table).items() if name.startswith("kafka.connect.")}
    assert found == {name: PROGRESS[name] for name in PROGRESS if name.startswith("kafka.")} | stated


def test_flink_conversion_marker_is_not_repeated(catalog: Catalog) -> None:
    """LK-33: Flink would take our snapshot for its own conversion, and its row index would be outdated."""
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), key=["id"])
    table.append(ROWS, snapshot_properties={"equality-convert-staging-snapshot": "7"})
    table.upsert(ROWS)
    table.maintenance.convert_deletes()
    assert "equality-convert-staging-snapshot" not in summary_of(table)
