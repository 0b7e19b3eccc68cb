"""Upkeep after commits of Spark: between the micro-batches of a streaming query, and after statements."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_ext.configure import catalog_options
from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32(), nullable=False), ("v", pa.int64())]
)
LEVEL = 4


def kept_table(lake: Catalog, name: tuple[str, str], mode: str) -> Table:
    properties = {"tableformat.upkeep": mode, "tableformat.upkeep.files-per-level": str(LEVEL)}
    table = lake.create_table(name, SCHEMA, key=["id", "n"], properties=properties)
    table.append(message_rows(range(1_000), 3, value=-1))
    return table


def message_rows(ids: range, rows_each: int, *, value: int) -> pa.Table:
    pairs = [(message, number) for message in ids for number in range(rows_each)]
    return pa.table(
        {"id": [id_ for id_, _ in pairs], "n": [number for _, number in pairs], "v": [value] * len(pairs)},
        schema=SCHEMA,
    )


def replace_by_stream(spark: SparkSession, table: str, directory: Path, batches: range) -> None:
    """Run a micro-batch for each number: the messages that begin there are written with one row less."""
    source = directory / "source"
    source.mkdir(exist_ok=True)
    for number in batches:
        path = source / f"{number:04}.parquet"
        pq.write_table(message_rows(range(10 * number, 10 * number + 15), 2, value=number), path)
        # Spark takes files in the order of their seconds.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    query = (
        spark.readStream.schema("id BIGINT, n INT, v BIGINT")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .writeStream.option("replace-prefix", "id")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(table)
    )
    query.awaitTermination()


def replaced(count: int) -> dict[int, tuple[int, int]]:
    """Value and number of rows of each message after so many batches."""
    found = dict.fromkeys(range(1_000), (-1, 3))
    for number in range(count):
        found |= dict.fromkeys(range(10 * number, 10 * number + 15), (number, 2))
    return found


def of_messages(table: Table) -> dict[int, tuple[int, int]]:
    rows = table.scan().to_arrow().group_by("id").aggregate([("v", "min"), ("v", "max"), ("v", "count")])
    assert rows["v_min"].equals(rows["v_max"])
    return {row["id"]: (row["v_min"], row["v_count"]) for row in rows.to_pylist()}


def wait_for(what: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait for the upkeep thread, which is in another process."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.parametrize("mode", ["writer", "background"])
def test_upkeep_runs_between_micro_batches(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path, mode: str
) -> None:
    """MT-83: in addition to the base there is less than a level and a half; a query that continues finds its epochs."""
    table = kept_table(lake, (namespace, mode), mode)
    for batches in (range(2 * LEVEL), range(2 * LEVEL, 3 * LEVEL)):
        replace_by_stream(spark, f"lake.{namespace}.{mode}", tmp_path, batches)
    wait_for(lambda: table.refresh().inspect.data_files().num_rows < 2 * LEVEL)
    assert of_messages(table.refresh()) == replaced(3 * LEVEL)
    summaries = [each.summary.additional_properties for each in table.metadata.snapshots if each.summary]
    assert any("tableformat.upkeep.planned-until" in each for each in summaries)


def test_upkeep_runs_after_statements(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """MT-83"""
    table = kept_table(lake, (namespace, "t"), "writer")
    for number in range(LEVEL):
        spark.sql(f"INSERT INTO lake.{namespace}.t VALUES ({2_000 + number}, 0, 1)")
    assert table.refresh().inspect.data_files().num_rows < LEVEL
    assert table.scan().count() == 3_000 + LEVEL


def test_large_merges_of_upkeep_run_on_executors(
    spark: SparkSession, lake: Catalog, warehouse: Path, namespace: str
) -> None:
    """MT-100: through another catalog over the same tables, with an option that makes every merge large."""
    for option, value in catalog_options("far", warehouse, **{"upkeep-executor-bytes": "1"}).items():
        spark.conf.set(option, value)
    table = kept_table(lake, (namespace, "t"), "writer")
    for number in range(LEVEL):
        spark.sql(f"INSERT INTO far.{namespace}.t VALUES ({2_000 + number}, 0, 1)")
    assert table.refresh().inspect.data_files().num_rows < LEVEL
    assert table.scan().count() == 3_000 + LEVEL
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("tableformat-tasks")


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.long), 3])
def test_copy_on_write_writes_files_on_executors(
    spark: SparkSession, lake: Catalog, warehouse: Path, namespace: str, version: int
) -> None:
    """SP-86: rows that a statement leaves in their files go to others by tasks, one for each file."""
    for option, value in catalog_options("copying", warehouse, **{"copy-on-write-executor-bytes": "1"}).items():
        spark.conf.set(option, value)
    modes = ", ".join(f"'write.{statement}.mode' = 'copy-on-write'" for statement in ("delete", "update", "merge"))
    name = f"copying.{namespace}.t{version}"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v INT) TBLPROPERTIES ('format-version' = '{version}', {modes})")
    for first in (0, 10, 20):
        spark.sql(f"INSERT INTO {name} SELECT id, 0 FROM range({first}, {first + 10})")
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = len(jobs("tableformat-tasks"))
    spark.sql(f"UPDATE {name} SET v = 1 WHERE id % 10 = 3")
    assert len(jobs("tableformat-tasks")) - before == 3
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 4 AND v < 5")
    spark.sql(f"""
        MERGE INTO {name} t USING (SELECT 5 id UNION ALL SELECT 40) s ON t.id = s.id
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 9)
    """)
    table = lake.load_table((namespace, f"t{version}"))
    assert table.inspect.delete_files().num_rows == 0
    expected = {id: int(id % 10 == 3) for id in range(30) if id % 10 != 4 and id != 5} | {40: 9}
    assert dict(zip(*table.scan().to_arrow().to_pydict().values(), strict=True)) == expected
    assert spark.table(name).count() == len(expected)


def test_procedures_look_for_rows_on_executors(
    spark: SparkSession, lake: Catalog, warehouse: Path, namespace: str
) -> None:
    """SP-115: the result has the count, nothing else differs, and a blind call needs no task."""
    for option, value in catalog_options("searching", warehouse, **{"scan-executor-bytes": "1"}).items():
        spark.conf.set(option, value)
    name = f"{namespace}.searched"
    table = lake.create_table(
        (namespace, "searched"), pa.schema([("id", pa.int64()), ("n", pa.int64())]), key=["id", "n"]
    )
    for first in (0, 10, 20):
        table.append(pa.table({"id": [number // 5 for number in range(first, first + 10)], "n": list(range(10))}))
    table.delete_prefix({"id": 1})
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = len(jobs("tableformat-tasks"))

    def deleted(call: str) -> int | None:
        [row] = spark.sql(f"CALL searching.system.{call}").collect()
        count: int | None = row.deleted_rows_count
        return count

    assert deleted(f"delete_prefix('{name}', map('id', 1), mode => 'scan')") == 0
    assert deleted(f"delete_prefix('{name}', map('id', 3), mode => 'scan', dry_run => true)") == 5
    assert deleted(f"delete_prefix('{name}', map('id', 3), mode => 'scan')") == 5
    assert deleted(f"delete_range('{name}', lower => struct(4, 2), mode => 'scan')") == 8
    done = len(jobs("tableformat-tasks")) - before
    assert done == 4, "one small group of files each"
    assert deleted(f"delete_prefix('{name}', map('id', 0))") is None
    assert len(jobs("tableformat-tasks")) - before == done
    left = sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: (row["id"], row["n"]))
    assert [(row["id"], row["n"]) for row in left] == [*((2, n) for n in range(5)), (4, 0), (4, 1)]
