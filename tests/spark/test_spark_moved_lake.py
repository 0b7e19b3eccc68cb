"""A lake that was moved or that is read-only, in Spark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tableformat as tf

pytestmark = pytest.mark.spark


def make_lake(directory: Path) -> None:
    """Position deletes, a range delete, and a table without rows."""
    with tf.open_catalog(str(directory)) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", pa.schema([("k", pa.string()), ("n", pa.int64())]), key=["k", "n"])
        table.append(pa.table({"k": ["a", "a", "b", "c"], "n": [1, 2, 3, 4]}))
        table.delete("n = 2", mode="scan")
        table.delete_prefix({"k": "b"})


def add_catalog(spark: SparkSession, name: str, directory: Path) -> None:
    spark.conf.set(f"spark.sql.catalog.{name}", "tableformat.spark.LakeCatalog")
    spark.conf.set(f"spark.sql.catalog.{name}.warehouse", str(directory))


def check_read_and_not_written(spark: SparkSession, name: str, refusal: str) -> None:
    found = spark.sql(f"SELECT k, n FROM {name}.db.t ORDER BY k").collect()
    assert [tuple(row) for row in found] == [("a", 1), ("c", 4)]
    assert spark.sql(f"SELECT count(*) FROM {name}.db.t WHERE n > 1").first()[0] == 1
    assert spark.sql(f"SELECT count(*) FROM {name}.db.t.files").first()[0] > 0
    for statement in (
        f"INSERT INTO {name}.db.t VALUES ('d', 5)",
        f"DELETE FROM {name}.db.t WHERE n = 1",
        f"CALL {name}.system.rewrite_data_files('db.t')",
    ):
        with pytest.raises(Exception, match=refusal):
            spark.sql(statement).collect()


def test_moved_lake_is_read_only(spark: SparkSession, tmp_path: Path) -> None:
    """LK-3, LK-4"""
    make_lake(tmp_path / "lake")
    shutil.move(tmp_path / "lake", tmp_path / "moved")
    add_catalog(spark, "moved", tmp_path / "moved")
    check_read_and_not_written(spark, "moved", "The lake was moved or copied")
    assert not (tmp_path / "lake").exists()


def test_read_only_mounted_lake_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """LK-5"""
    make_lake(tmp_path / "lake")
    place = tmp_path / "mounted"
    place.mkdir()
    if subprocess.run(["mount", "-o", "bind", tmp_path / "lake", place], capture_output=True, check=False).returncode:
        pytest.skip("this user cannot mount")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        add_catalog(spark, "fixed", place)
        check_read_and_not_written(spark, "fixed", "is not writable")
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
