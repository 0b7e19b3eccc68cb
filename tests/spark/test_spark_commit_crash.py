"""kill -9 of the Python process in the middle of a commit: the statement is carried out once all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import crossed
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.float64())])

HOOK = """
import os, runpy, signal, sys
from pathlib import Path
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

orders = Path(__file__).parent
commit_table = EmbeddedCatalog.commit_table

def die(moment):
    order = orders / moment
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def dying(self, *arguments):
    die("before")
    response = commit_table(self, *arguments)
    die("after")
    return response

EmbeddedCatalog.commit_table = dying
sys.argv = sys.argv[1:]
runpy.run_module("spark_ext.sidecar", run_name="__main__")
"""


@pytest.fixture(scope="module")
def orders(spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file "before" or "after" here makes the process of the catalog `mortal` die at its next commit."""
    directory = tmp_path_factory.mktemp("mortal")
    (directory / "hook.py").write_text(HOOK)
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{directory / "hook.py"}" "$@"\n')
    python.chmod(0o755)
    spark.conf.set("spark.sql.catalog.mortal", "tableformat.spark.LakeCatalog")
    spark.conf.set("spark.sql.catalog.mortal.warehouse", str(warehouse))
    spark.conf.set("spark.sql.catalog.mortal.python", str(python))
    return directory


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    table = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    table.append(pa.table({"id": [1, 2, 3], "v": [1.0, 2.0, 3.0]}, schema=SCHEMA))
    return table


STATEMENTS = {
    "INSERT INTO {} VALUES (4, 4)": {1: 1, 2: 2, 3: 3, 4: 4},
    "INSERT OVERWRITE {} VALUES (4, 4)": {4: 4},
    "DELETE FROM {} WHERE id = 2": {1: 1, 3: 3},
    "DELETE FROM {} WHERE v > 1.5": {1: 1},
    "UPDATE {} SET v = v + 1 WHERE id > 1": {1: 1, 2: 3, 3: 4},
}


@pytest.mark.parametrize(("moment", "statement"), crossed(["before", "after"], list(STATEMENTS)))
def test_a_statement_survives_the_process(
    spark: SparkSession, table: Table, orders: Path, moment: str, statement: str
) -> None:
    """CP-14: the call is made again in a new process and finds its batch applied, or applies it."""
    expected = STATEMENTS[statement]
    (orders / moment).touch()
    spark.sql(statement.format(f"mortal.{table.name}"))
    assert not (orders / moment).exists(), "nobody died"
    rows = table.refresh().scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows) == sorted(expected.items())
    assert len(table.inspect.snapshots()) == 2


def test_tables_do_not_remember_every_commit(spark: SparkSession, table: Table, orders: Path) -> None:
    """The record of the last batch is one for each statement that runs at the same time, not one for each commit."""
    for number in range(10, 15):
        spark.sql(f"INSERT INTO mortal.{table.name} VALUES ({number}, 0)")
    records = [name for name in table.refresh().properties if name.startswith("tableformat.txn.")]
    assert len(records) == 1
