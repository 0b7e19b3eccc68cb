"""Alternating small files and scattered deletes, without upkeep: the time of a scan and of the change feed after N
commits.

Each commit replaces 100 messages from all over the table, as in a stream without an order. The target is pyarrow
reading the same data files, one after another (issue 9, section 1: at most 1.5 times; decision 41).
`TABLEFORMAT_SCATTERED_COMMITS` has the numbers of commits at which to measure, by default "100,500".
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measuring import Contender, heading, race, show

import tableformat as tf
from tableformat.storage.location import local_path

STOPS = [int(stop) for stop in os.environ.get("TABLEFORMAT_SCATTERED_COMMITS", "100,500").split(",")]
MESSAGES, ROWS_EACH, REPLACED = 66_000, 15, 100


def messages(ids: Any, seed: int) -> pa.Table:
    repeated = np.repeat(ids, ROWS_EACH)
    numbers = np.tile(np.arange(ROWS_EACH), len(ids))
    return pa.table({"id": repeated, "part": numbers, "amount": np.random.default_rng(seed).random(len(repeated))})


def replaced_table(lake: Path, commits: int, *, by_key: bool = False) -> tf.Table:
    catalog = tf.open_catalog(str(lake))
    catalog.create_namespace("db")
    loaded = messages(np.arange(MESSAGES), 0)
    properties = {"tableformat.upkeep": "off"}
    table = catalog.create_table("db.t", loaded.schema, key=["id", "part"], properties=properties)
    table.append(loaded)
    random = np.random.default_rng(1)
    for number in range(commits):
        replaced = np.sort(random.choice(MESSAGES, REPLACED, replace=False))
        rows = messages(replaced, number)
        if by_key:
            table.upsert(rows)
        else:
            table.replace(rows, prefix=["id"])
    return table


@pytest.mark.parametrize("commits", STOPS)
def test_scans_after_scattered_replacements(benchmark: Any, tmp_path: Path, commits: int) -> None:
    table = replaced_table(tmp_path / "lake", commits)
    paths = [local_path(path) for path in table.inspect.data_files().column("file_path").to_pylist()]

    def ours(_: None) -> None:
        with tf.open_catalog(str(tmp_path / "lake")) as fresh:
            assert fresh.load_table("db.t").scan().to_arrow().num_rows == MESSAGES * ROWS_EACH

    def raw(_: None) -> None:
        for path in paths:
            pq.ParquetFile(path).read()

    timings = race(benchmark, {"scan": Contender(ours), "pyarrow": Contender(raw)}, rounds=5)
    heading(f"{commits:,} commits of {REPLACED} scattered messages, {len(paths):,} files")
    for name, timing in timings.items():
        show(name, timing)
    show("CPU, scan / pyarrow", f"{timings['scan'].cpu / timings['pyarrow'].cpu:.2f}")
    show("largest memory of the process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


@pytest.mark.parametrize("commits", STOPS)
def test_operations_after_scattered_upserts(benchmark: Any, tmp_path: Path, commits: int) -> None:
    """Nearly all later equality deletes apply to every file (decision 44)."""
    table = replaced_table(tmp_path / "lake", commits, by_key=True)
    paths = [local_path(path) for path in table.inspect.data_files().column("file_path").to_pylist()]

    def raw(_: None) -> None:
        for path in paths:
            pq.ParquetFile(path).read()

    def of_fresh(verb: Callable[[tf.Table], object]) -> Contender:
        def run(_: None) -> None:
            with tf.open_catalog(str(tmp_path / "lake")) as fresh:
                assert verb(fresh.load_table("db.t"))

        return Contender(run)

    contenders = {
        "pyarrow": Contender(raw),
        "plan": of_fresh(lambda fresh: fresh.scan().plan()),
        "scan": of_fresh(lambda fresh: fresh.scan().to_arrow().num_rows == MESSAGES * ROWS_EACH),
        "ten times get": of_fresh(lambda fresh: [fresh.get((key * 317, 3)) for key in range(10)]),
        "conversion, dry": of_fresh(lambda fresh: fresh.maintenance.convert_deletes(dry_run=True)),
        "update, dry": of_fresh(lambda fresh: fresh.update(where="id = 400", set={"amount": "1.0"}, dry_run=True)),
        "plan of a compaction": of_fresh(lambda fresh: fresh.maintenance.compact(dry_run=True)),
    }
    timings = race(benchmark, contenders, rounds=3)
    heading(f"{commits:,} commits of {REPLACED} scattered messages by upsert, {len(paths):,} files")
    for name, timing in timings.items():
        show(name, timing)
        show(f"CPU, {name} / pyarrow", f"{timing.cpu / timings['pyarrow'].cpu:.2f}")
    show("largest memory of the process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


@pytest.mark.parametrize("commits", STOPS)
def test_change_feed_after_scattered_replacements(benchmark: Any, tmp_path: Path, commits: int) -> None:
    """The feed of the last tenth and of the last half of the commits, compared with a scan (decision 42)."""
    table = replaced_table(tmp_path / "lake", commits)
    line = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]

    def scan(_: None) -> None:
        with tf.open_catalog(str(tmp_path / "lake")) as fresh:
            assert fresh.load_table("db.t").scan().to_arrow().num_rows == MESSAGES * ROWS_EACH

    def feed(last: int) -> Contender:
        def read(_: None) -> None:
            with tf.open_catalog(str(tmp_path / "lake")) as fresh:
                events = fresh.load_table("db.t").changes(from_snapshot_id=line[-last - 1]).to_arrow()
                assert events.num_rows == 2 * last * REPLACED * ROWS_EACH

        return Contender(read)

    few, many = commits // 10, commits // 2
    contenders = {"scan": Contender(scan), f"feed of {few}": feed(few), f"feed of {many}": feed(many)}
    timings = race(benchmark, contenders, rounds=3)
    heading(f"{commits:,} commits of {REPLACED} scattered messages: the change feed")
    for name, timing in timings.items():
        show(name, timing)
        show(f"CPU, {name} / scan", f"{timing.cpu / timings['scan'].cpu:.2f}")
    show("largest memory of the process, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
