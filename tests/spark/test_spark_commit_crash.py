"""kill -9 of the Python process in the middle of a commit: the statement is still executed exactly once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import crossed, every
from pyspark.sql import SparkSession

import tableformat as tf
from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.float64())])

HOOK = """
import os, runpy, signal, sys
from pathlib import Path
import tableformat
from spark_ext.service.writes import diverted_rows
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog

orders = Path(__file__).parent
commit_table = EmbeddedCatalog.commit_table

def is_due(moment):
    order = orders / moment
    if not order.exists():
        return False
    left = int(order.read_text() or 1) - 1
    order.write_text(str(left)) if left else order.unlink()
    return not left

def die(moment):
    if is_due(moment):
        os.kill(os.getpid(), signal.SIGKILL)

def dying(self, table, *arguments):
    die("before")
    if is_due("drop"):
        other = tableformat.open_catalog(self.properties["warehouse"]).load_table(table.name())
        other.range_partitions.drop(10, 20)
    response = commit_table(self, table, *arguments)
    die("after")
    return response

def failing(*arguments):
    if is_due("publish"):
        raise tableformat.TableFormatError("away.")
    return publish_append(*arguments)

EmbeddedCatalog.commit_table = dying
publish_append, diverted_rows.publish_append = diverted_rows.publish_append, failing
sys.argv = sys.argv[1:]
runpy.run_module("spark_ext.sidecar", run_name="__main__")
"""


@pytest.fixture(scope="module")
def orders(spark: SparkSession, warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file "before" or "after" here makes the process of the catalog `mortal` die at its next commit, or at the
    commit with the number in the file. A file "drop" makes it drop a range of the target table just before the commit,
    and with "publish" the refused rows are not published."""
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
def test_statement_completes_after_python_process_is_killed(
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


def test_batch_records_do_not_grow_with_every_commit(spark: SparkSession, table: Table, orders: Path) -> None:
    """The record of the last batch is one for each statement that runs at the same time, not one for each commit."""
    for number in range(10, 15):
        spark.sql(f"INSERT INTO mortal.{table.name} VALUES ({number}, 0)")
    records = [name for name in table.refresh().properties if name.startswith("tableformat.txn.")]
    assert len(records) == 1


COVERED = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def two_tables(lake: Catalog, namespace: str) -> tuple[Table, Table]:
    """A table with range partitions, and a table for its rejected rows."""
    ranges = tf.RangePartitions(on=["id"], bounds=[(0, 20)], splits=[10])
    table = lake.create_table((namespace, "t"), COVERED, key=["id"], range_partitions=ranges)
    return table, lake.create_table((namespace, "refused"), COVERED)


def ids(tables: tuple[Table, Table]) -> list[list[int]]:
    return [sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) for table in tables]


@pytest.mark.parametrize(("moment", "commits"), crossed(["before", "after"], [1, 2, 3]))
@pytest.mark.parametrize("covered", every(2, [[1], []]), ids=["some refused", "all refused"])
def test_rows_are_diverted_once_if_process_is_killed(
    spark: SparkSession, two_tables: tuple[Table, Table], orders: Path, moment: str, commits: int, covered: list[int]
) -> None:
    """RP-22: staged in the other table, committed, published: the process may die at each of the three."""
    table, refused = two_tables
    rows = spark.createDataFrame([(each,) for each in [*covered, 30, 31]], "id long")
    if covered or commits < 3:
        (orders / moment).write_text(str(commits))
    options = {"on-refused": "divert", "refused-rows-table": refused.name}
    rows.writeTo(f"mortal.{table.name}").options(**options).append()
    assert not (orders / moment).exists(), "nobody died"
    assert ids(two_tables) == [covered, [30, 31]]


def stream(spark: SparkSession, tables: tuple[Table, Table], directory: Path) -> None:
    """Run what there is of a stream."""
    table, refused = tables
    query = (
        spark.readStream.schema("id long")
        .json(str(directory / "in"))
        .writeStream.option("checkpointLocation", str(directory / "checkpoint"))
        .options(**{"on-refused": "divert", "refused-rows-table": refused.name})
        .trigger(availableNow=True)
        .toTable(f"mortal.{table.name}")
    )
    query.awaitTermination()


def test_rows_diverted_before_a_conflict_are_discarded(
    spark: SparkSession, two_tables: tuple[Table, Table], orders: Path, tmp_path: Path
) -> None:
    """RP-22: a range is dropped while an epoch is committed. The repeated epoch rejects more rows, and stores each of
    them once."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1}\n{"id": 15}\n{"id": 30}\n')
    (orders / "drop").write_text("2")
    with pytest.raises(Exception, match="range partition"):
        stream(spark, two_tables, tmp_path)
    assert not (orders / "drop").exists()
    assert ids(two_tables) == [[], []]
    stream(spark, two_tables, tmp_path)
    assert ids(two_tables) == [[1], [15, 30]]
    two_tables[0].range_partitions.add(10, 40)
    for record in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        record.unlink()
    stream(spark, two_tables, tmp_path)
    assert ids(two_tables) == [[1], [15, 30]], "the epoch that was repeated is the one that was committed"


def test_fully_rejected_epoch_is_repeated_unchanged(
    spark: SparkSession, two_tables: tuple[Table, Table], orders: Path, tmp_path: Path
) -> None:
    """RP-22: although the rows are covered when it is repeated."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 30}\n{"id": 31}\n')
    stream(spark, two_tables, tmp_path)
    two_tables[0].range_partitions.add(20, 40)
    for record in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        record.unlink()
    stream(spark, two_tables, tmp_path)
    assert ids(two_tables) == [[], [30, 31]]


def test_error_names_the_unpublished_diverted_snapshot(
    spark: SparkSession, two_tables: tuple[Table, Table], orders: Path
) -> None:
    """RP-28: the error names the snapshot, and a procedure publishes it."""
    table, refused = two_tables
    (orders / "publish").touch()
    options = {"on-refused": "divert", "refused-rows-table": refused.name}
    rows = spark.createDataFrame([(1,), (30,)], "id long")
    with pytest.raises(Exception, match="were not: away") as error:
        rows.writeTo(f"mortal.{table.name}").options(**options).append()
    assert ids(two_tables) == [[1], []]
    found = re.search(r"cherrypick_snapshot\([^)]*\)", str(error.value))
    assert found is not None
    spark.sql(f"CALL lake.system.{found[0]}")
    assert ids(two_tables) == [[1], [30]]
