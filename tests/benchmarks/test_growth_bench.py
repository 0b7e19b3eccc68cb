"""The same successive replacements in a table with upkeep and in DuckLake: the time of a read after N of them.

`TABLEFORMAT_GROWTH_COMMITS` has the numbers of commits at which to measure, by default "100,500"; DuckLake takes half
an hour for 2,000.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from ducklake import ducklake_python, running_ducklake
from measuring import heading, show
from test_upkeep_bench import KEY, MESSAGES, REPLACED, messages

import tableformat as tf

STOPS = [int(stop) for stop in os.environ.get("TABLEFORMAT_GROWTH_COMMITS", "100,500").split(",")]
_ROUNDS = 5

Figure = tuple[float, float]
"""Seconds, CPU seconds."""


def timed(call: Callable[[], int], rows: int) -> Figure:
    started, cpu_started = time.perf_counter(), time.process_time()
    assert call() == rows
    return time.perf_counter() - started, time.process_time() - cpu_started


def median(figures: list[Figure]) -> Figure:
    return statistics.median(wall for wall, _ in figures), statistics.median(cpu for _, cpu in figures)


def test_reads_after_many_replacements(tmp_path: Path) -> None:
    python = ducklake_python()
    if python is None:
        pytest.skip("duckdb-extension-ducklake 1.5.5 is not installed")
    loaded = messages(0, MESSAGES, 20, 0)
    base = tmp_path / "base.parquet"
    pq.write_table(loaded, base)
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", loaded.schema, key=KEY, properties={"tableformat.upkeep": "writer"})
    table.append(loaded)
    random = np.random.default_rng(1)

    def read() -> int:
        with tf.open_catalog(str(tmp_path / "lake")) as fresh:
            return fresh.load_table("db.t").scan().to_arrow().num_rows

    def aggregate() -> int:
        with tf.open_catalog(str(tmp_path / "lake")) as fresh, duckdb.connect() as connection:
            connection.execute("SET threads = 2")
            tf.duckdb.attach(connection, fresh, name="lake")
            row = connection.execute("SELECT count(*), sum(amount) FROM lake.db.t").fetchone()
            assert row is not None
            return int(row[0])

    with running_ducklake(python, tmp_path / "ducklake", [str(base)]) as lake:
        ours: list[Figure] = []
        theirs: list[Figure] = []
        for number in range(STOPS[-1]):
            batch = messages(int(random.integers(0, MESSAGES - REPLACED)), REPLACED, 15, number)
            incoming = tmp_path / f"incoming-{number}.parquet"
            pq.write_table(batch, incoming)
            started, cpu_started = time.perf_counter(), time.process_time()
            table.replace(batch, prefix=["id1", "id2"])
            ours.append((time.perf_counter() - started, time.process_time() - cpu_started))
            answer = lake.call(verb="replace", rows=str(incoming))
            theirs.append((answer["wall"], answer["cpu"]))
            incoming.unlink()
            if number + 1 in STOPS:
                rows = lake.call(verb="count")["count"]
                heading(f"{number + 1:,} replacements of {REPLACED} messages: seconds, CPU seconds")
                show("commit, upkeep in it, median of the last 50", median(ours[-50:]))
                show("DuckLake", median(theirs[-50:]))
                for name, call, verb in (("scan", read, "read"), ("DuckDB aggregate", aggregate, "aggregate")):
                    figures: dict[str, list[Figure]] = {"ours": [], "theirs": []}
                    for _ in range(_ROUNDS):
                        figures["ours"].append(timed(call, rows))
                        answer = lake.call(verb=verb)
                        assert answer["count"] == rows
                        figures["theirs"].append((answer["wall"], answer["cpu"]))
                    show(f"{name}, a catalog opened for it", median(figures["ours"]))
                    show("DuckLake, attached before", median(figures["theirs"]))
