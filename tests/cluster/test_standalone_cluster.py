"""Statements and procedures on a standalone cluster of two workers: where they run, and that rows are right."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from standalone import Cluster, standalone_cluster

import tableformat as tf

pytest.importorskip("pyspark")
from pyspark.sql import SparkSession

from spark_ext import configure

ROWS = 9_000_000
"""More than 128 MB in two files, from which size procedures run on executors."""
KILLS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def spark(cluster: Cluster, warehouse: Path) -> Iterator[SparkSession]:
    builder = (
        SparkSession.builder.master(cluster.url)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "1g")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path))
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "4")
    )
    session = configure(builder, warehouse=str(warehouse)).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def catalog(warehouse: Path) -> Iterator[tf.Catalog]:
    with tf.open_catalog(str(warehouse)) as catalog:
        catalog.create_namespace("db")
        yield catalog


@pytest.fixture
def table(catalog: tf.Catalog, request: pytest.FixtureRequest) -> tf.Table:
    name = f"db.{request.node.name.partition('[')[0]}"
    draw = np.random.default_rng(7)
    table = catalog.create_table(name, pa.schema([("k", pa.int64()), ("x", pa.float64())]), key=["k"])
    for first in (0, ROWS):
        table.append(pa.table({"k": np.arange(first, first + ROWS), "x": draw.random(ROWS)}))
    table.delete_range(lower=[10], upper=[2_000_000])
    table.delete_rows(pa.table({"k": [3, 5_000_000, ROWS + 1]}))
    return table


LIVE = 2 * ROWS - (2_000_000 - 10) - 3


def task_count(spark: SparkSession) -> int:
    """The number of Spark jobs of the library's own tasks; each has one task."""
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup("tableformat-tasks"))


def keys_of(rows: Any) -> tuple[int, int, int]:
    """Count, sum and maximum of the keys."""
    found = rows.selectExpr("count(*) n", "sum(k) s", "max(k) m").collect()[0]
    return found.n, found.s, found.m


EXPECTED = (
    LIVE,
    (2 * ROWS) * (2 * ROWS - 1) // 2 - sum(range(10, 2_000_000)) - 3 - 5_000_000 - (ROWS + 1),
    2 * ROWS - 1,
)


def test_procedures_run_on_executors(spark: SparkSession, table: tf.Table) -> None:
    """PR-29: by default, because the master is not local. Rows are right before and after each of them."""
    name = f"lake.{table.name}"
    assert keys_of(spark.table(name)) == EXPECTED
    assert task_count(spark) == 0
    for call in (
        f"convert_deletes('{table.name}')",
        f"compute_table_stats('{table.name}')",
        f"rewrite_data_files(table => '{table.name}', options => map('rewrite-all', 'true'))",
    ):
        before = task_count(spark)
        spark.sql(f"CALL lake.system.{call}").collect()
        assert task_count(spark) > before
        assert keys_of(spark.table(name)) == EXPECTED
    assert table.refresh().inspect.delete_files().num_rows == 0


def test_jobs_survive_killed_executors(spark: SparkSession, cluster: Cluster, table: tf.Table) -> None:
    """MT-61: Spark runs the tasks of a killed executor again. Files of theirs are orphans, which a job removes."""
    name, killed = f"lake.{table.name}", []

    def kill() -> None:
        for _ in range(KILLS):
            time.sleep(1)
            running = cluster.executors()
            if running:
                os.kill(running[0], signal.SIGKILL)
                killed.append(running[0])

    for call in (f"convert_deletes('{table.name}')", f"rewrite_data_files(table => '{table.name}')"):
        killer = threading.Thread(target=kill)
        killer.start()
        spark.sql(f"CALL lake.system.{call}").collect()
        killer.join()
        assert keys_of(spark.table(name)) == EXPECTED
    assert killed
    jobs = table.refresh().maintenance
    jobs.remove_orphan_files(older_than=timedelta(0), allow_recent=True)
    assert not jobs.remove_orphan_files(older_than=timedelta(0), allow_recent=True, dry_run=True).orphan_file_locations
    assert keys_of(spark.table(name)) == EXPECTED
    assert table.verify(deep=False).findings == ()
