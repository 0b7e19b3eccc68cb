"""kill -9 of the driver in the middle of a stream from table to table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from stream_runs import Source

from tableformat import Catalog

SIDECAR = """
import os, runpy, signal, sys
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

commit_table = EmbeddedCatalog.commit_table
commits = []

def dying(self, *arguments):
    response = commit_table(self, *arguments)
    commits.append(response)
    if len(commits) == 2:
        os.kill(os.getppid(), signal.SIGKILL)
    return response

EmbeddedCatalog.commit_table = dying
sys.argv = sys.argv[1:]
runpy.run_module("spark_ext.sidecar", run_name="__main__")
"""
"""The catalog's process: at the second commit it kills the JVM before that hears of it."""

DRIVER = """
import sys
from pyspark.sql import SparkSession
from spark_ext import configure

warehouse, python, source, sink, checkpoint = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
)
builder = configure(builder, catalog="lake", warehouse=warehouse).config("spark.sql.catalog.lake.python", python)
spark = builder.getOrCreate()
query = (
    spark.readStream.option("streaming-max-files-per-micro-batch", 1).table(source)
    .writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True).toTable(sink)
)
query.awaitTermination()
"""


@pytest.mark.long
def test_killed_stream_driver_delivers_each_row_once(
    spark: SparkSession, lake: Catalog, namespace: str, warehouse: Path, tmp_path: Path
) -> None:
    """CP-14: the epoch that the dead driver committed, and did not write down, is not committed again."""
    source, sink = f"lake.{namespace}.source", f"lake.{namespace}.sink"
    for name in ("source", "sink"):
        spark.sql(f"CREATE TABLE lake.{namespace}.{name} (id BIGINT)")
    table = lake.load_table((namespace, "source"))
    with table.transaction() as transaction:
        for number in (1, 2, 3):
            transaction.append(pa.table({"id": [number]}))
    checkpoint = tmp_path / "checkpoint"
    (tmp_path / "sidecar.py").write_text(SIDECAR)
    (tmp_path / "driver.py").write_text(DRIVER)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "sidecar.py"}" "$@"\n')
    python.chmod(0o755)
    driver = [sys.executable, tmp_path / "driver.py", warehouse, python, source, sink, checkpoint]
    died = subprocess.run([str(part) for part in driver], capture_output=True, text=True, timeout=300, check=False)
    assert died.returncode != 0
    arrived = lake.load_table((namespace, "sink"))
    assert sorted(arrived.scan().to_arrow()["id"].to_pylist()) == [1, 2], died.stderr
    assert sorted(path.name for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()) == ["0"]

    again = Source(spark, source, checkpoint, streaming_max_files_per_micro_batch=1)
    query = (
        again.rows().writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).toTable(sink)
    )
    query.awaitTermination()
    assert sorted(arrived.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert len(arrived.history()) == 3
