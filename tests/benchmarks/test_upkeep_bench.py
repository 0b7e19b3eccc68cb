"""A table with upkeep that is written to for a long time: the development of scans, commits and bytes (decision 19).

`TABLEFORMAT_UPKEEP_COMMITS` sets the number of commits, by default 2,000; the claim of 10,000 takes some five minutes
on an idle machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from measuring import against_target, heading, show
from table_with_upkeep import Look, look_at, show_looks

import tableformat as tf
from tableformat.maintenance.upkeep.ledger import Ledger
from tableformat.storage.location import local_path

COMMITS = int(os.environ.get("TABLEFORMAT_UPKEEP_COMMITS", "2000"))
MESSAGES, ROWS_EACH, REPLACED = 50_000, 20, 100
KEY = ["id1", "id2", "num_cal"]


def messages(first: int, count: int, rows_each: int, seed: int) -> pa.Table:
    """Rows of consecutive messages."""
    ids = np.repeat(np.arange(first, first + count), rows_each)
    amounts = np.random.default_rng(seed).random(len(ids))
    return pa.table(
        {
            "id1": pa.array(np.char.add("C", np.char.zfill((ids // 100).astype(str), 8))),
            "id2": pa.array(ids % 100),
            "num_cal": pa.array(np.tile(np.arange(rows_each, dtype="int32"), count)),
            "amount": pa.array(amounts),
        }
    )


def growth(seconds: list[float]) -> float:
    """The median of the last tenth as a multiple of the median of the first tenth."""
    tenth = max(len(seconds) // 10, 1)
    return statistics.median(seconds[-tenth:]) / statistics.median(seconds[:tenth])


def _replaced(table: tf.Table, rows: pa.Table) -> tf.CommitResult:
    return table.replace(rows, prefix=["id1", "id2"])


def _upserted(table: tf.Table, rows: pa.Table) -> tf.CommitResult:
    return table.upsert(rows)


@pytest.mark.parametrize("mode", ["writer", "background"])
@pytest.mark.parametrize("change", [_replaced, _upserted])
def test_upkeep_during_a_long_write_history(
    tmp_path: Path, mode: str, change: Callable[[tf.Table, pa.Table], tf.CommitResult]
) -> None:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    rows = messages(0, MESSAGES, ROWS_EACH, 0)
    table = catalog.create_table("db.t", rows.schema, key=KEY, properties={"tableformat.upkeep": mode})
    table.append(rows)
    loaded = Ledger.of(table.metadata, table.view.snapshot).written_bytes
    random = np.random.default_rng(1)
    commits: list[float] = []
    commits_cpu: list[float] = []
    looks: list[Look] = []
    written = 0
    for number in range(COMMITS):
        batch = messages(int(random.integers(0, MESSAGES - REPLACED)), REPLACED, 15, number)
        started, started_cpu = time.perf_counter(), time.thread_time()
        result = change(table, batch)
        commits.append(time.perf_counter() - started)
        commits_cpu.append(time.thread_time() - started_cpu)
        snapshot = table.metadata.snapshot_by_id(result.snapshot_id or 0)
        assert snapshot is not None
        assert snapshot.summary is not None
        written += int(snapshot.summary.additional_properties["added-files-size"])
        if number % max(COMMITS // 40, 1) == 0:
            looks.append(look_at(catalog, "db.t", number + 1))
    assert table.maintenance.wait_for_upkeep(300)
    metrics = table.maintenance.upkeep_metrics
    assert (metrics.failure_count, metrics.last_failure) == (0, "")
    metadata_path = local_path(table.refresh().iceberg.metadata_location)
    assert metadata_path is not None
    found = table.scan().to_arrow().sort_by([(name, "ascending") for name in KEY])
    table.maintenance.compact(rewrite_all=True)
    assert table.scan().to_arrow().sort_by([(name, "ascending") for name in KEY]).equals(found)
    heading(f"{mode}, {COMMITS} commits of {REPLACED} messages, {change.__name__.strip('_')}, {metrics}")
    show_looks(looks)
    against_target("commit p50 of the last tenth against the first", growth(commits), 1.2)
    against_target("... of CPU", growth(commits_cpu), 1.2)
    show("commit p99; largest", f"{np.percentile(commits, 99) * 1000:.0f} ms; {max(commits) * 1000:.0f} ms")
    against_target(
        "bytes written for each that was loaded or committed", 1 + metrics.written_bytes / (written + loaded), 4.0
    )
    show("... that was committed", f"{1 + metrics.written_bytes / written:9.3f} x")
    show("metadata file", f"{Path(metadata_path).stat().st_size:,} bytes")
