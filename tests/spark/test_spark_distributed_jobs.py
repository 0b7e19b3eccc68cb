"""Jobs whose tasks run on Spark executors give the same table as jobs that run locally."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.errors import CorruptFileError, TaskFailedError
from tableformat.maintenance.compaction import compact as compaction
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)
VERSIONS = pytest.mark.parametrize("version", [pytest.param("2", marks=pytest.mark.long), "3"])


def rows(id1: str, ids: range, value: float) -> pa.Table:
    ids_array = list(ids)
    return pa.table({"id1": [id1] * len(ids_array), "id2": ids_array, "v": [value] * len(ids_array)}, schema=SCHEMA)


def worn_table(lake: Catalog, name: tuple[str, str], version: str) -> Table:
    """Two partitions of files over one another, with deletes of every kind."""
    table = lake.create_table(
        name, SCHEMA, key=["id1", "id2"], partition_by=["id1"], properties={"format-version": version}
    )
    for start in range(5):
        for id1 in "ab":
            table.append(rows(id1, range(start, 60, 5), float(start)))
    table.delete("id2 = 9", mode="scan")
    table.upsert(rows("a", range(3, 6), 9.0))
    table.delete_prefix({"id1": "b", "id2": 8})
    table.delete_range(lower=("a", 20), upper=("a", 31))
    table.delete("id2 = 44", mode="equality")
    return table


def contents(table: Table) -> list[tuple[Any, ...]]:
    found = table.refresh().scan().to_arrow().sort_by([("id1", "ascending"), ("id2", "ascending")])
    return list(zip(*(found[name].to_pylist() for name in SCHEMA.names), strict=True))


def live(table: Table) -> list[DataFile | DeleteFile]:
    view = table.refresh().view
    return [
        entry.file
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]


@VERSIONS
def test_distributed_compaction_equals_local_compaction(
    spark: SparkSession, lake: Catalog, namespace: str, version: str
) -> None:
    """MT-61"""
    here = worn_table(lake, (namespace, f"here{version}"), version)
    there = worn_table(lake, (namespace, f"there{version}"), version)
    before = contents(there)
    assert contents(here) == before
    expected = here.maintenance.compact(min_input_files=2)
    seen: list[tuple[int, int, str]] = []
    result = there.maintenance.compact(
        min_input_files=2, executor=spark, progress=lambda *step: seen.append((step[0], step[1], step[2]))
    )
    assert (result.group_count, result.added_data_files_count, result.deleted_row_count) == (
        expected.group_count,
        expected.added_data_files_count,
        expected.deleted_row_count,
    )
    assert contents(there) == contents(here) == before
    counts = [
        sorted(file.record_count for file in live(table) if isinstance(file, DataFile)) for table in (here, there)
    ]
    assert counts[0] == counts[1]
    assert seen[-1][0] == seen[-1][1]


def test_unreadable_group_commits_nothing(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """MT-61: an error of this library keeps its class and message."""
    table = worn_table(lake, (namespace, "broken"), "2")
    victim = next(file for file in live(table) if isinstance(file, DataFile))
    path = Path(victim.file_path.removeprefix("file://"))
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\0" * (len(content) - 108) + content[-8:])
    head = table.snapshot_id
    with pytest.raises(CorruptFileError, match=path.name):
        table.maintenance.compact(rewrite_all=True, executor=spark, partial_progress=False)
    assert table.refresh().snapshot_id == head


def test_failed_spark_task_commits_nothing(
    spark: SparkSession, lake: Catalog, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-61: if a task fails for any reason, the table stays unchanged."""
    table = worn_table(lake, (namespace, "failing"), "3")
    before, head = contents(table), table.snapshot_id
    monkeypatch.setattr(compaction, "rewrite_group", operator.truediv)
    with pytest.raises(TaskFailedError):
        table.maintenance.compact(rewrite_all=True, executor=spark)
    assert table.refresh().snapshot_id == head
    assert contents(table) == before


@VERSIONS
def test_distributed_conversion_equals_local_conversion(
    spark: SparkSession, lake: Catalog, namespace: str, version: str
) -> None:
    """MT-13, MT-61: slice by slice, the rows and the counts are the same."""
    here = worn_table(lake, (namespace, f"converted_here{version}"), version)
    there = worn_table(lake, (namespace, f"converted_there{version}"), version)
    for table in (here, there):
        table.set_properties(**{"write.target-file-size-bytes": "1"})
    before = contents(there)
    expected = here.maintenance.convert_deletes(max_commits=3)
    result = there.maintenance.convert_deletes(max_commits=3, executor=spark)
    assert result.commit_count == expected.commit_count > 1
    assert (result.deleted_row_count, result.resolved_data_files_count, result.removed_data_files_count) == (
        expected.deleted_row_count,
        expected.resolved_data_files_count,
        expected.removed_data_files_count,
    )
    assert contents(there) == contents(here) == before
    assert {file.kind for file in live(there) if isinstance(file, DeleteFile)} == {
        DeleteKind.DELETION_VECTOR if version == "3" else DeleteKind.POSITION
    }


def test_cancelled_job_stops_spark_tasks_and_changes_nothing(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """MT-62: an exception in the callback cancels the Spark jobs, and the table stays unchanged."""
    table = worn_table(lake, (namespace, "cancelled"), "3")
    before, head = contents(table), table.snapshot_id

    def stop(done: int, total: int, what: str) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.maintenance.compact(rewrite_all=True, executor=spark, partial_progress=False, progress=stop)
    assert table.refresh().snapshot_id == head
    assert contents(table) == before


_CONNECT_SCRIPT = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
import tableformat as tf

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(type(spark).__module__)
catalog = tf.open_catalog(sys.argv[1])
catalog.create_namespace("db")
schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
table = catalog.create_table("db.t", schema, key=["id"], properties={"write.target-file-size-bytes": "1"})
for start in range(3):
    table.append(pa.table({"id": list(range(start, 30, 3))}, schema=schema))
table.delete_range(lower=(4,), upper=(9,))
table.delete_rows(pa.table({"id": [20]}))
converted = table.maintenance.convert_deletes(executor=spark)
print(converted.deleted_row_count, converted.commit_count)
compacted = table.maintenance.compact(executor=spark, rewrite_all=True, target_file_size_bytes=1_000_000)
print(compacted.rewritten_data_files_count, compacted.added_data_files_count)
print(table.scan().to_arrow()["id"].to_pylist())
spark.stop()
"""


@pytest.mark.long
def test_jobs_on_spark_connect(java: None, tmp_path: Path) -> None:
    """MT-61: a session without its own Spark context."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    script = tmp_path / "script.py"
    script.write_text(_CONNECT_SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "lake")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "pyspark.sql.connect.session",
        "6 3",
        "3 1",
        str([number for number in range(30) if not 4 <= number < 9 and number != 20]),
    ]


def test_run_and_publish_use_the_spark_executor(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """MT-33, MT-60, MT-61"""
    table = worn_table(lake, (namespace, "all_jobs"), "2")
    before = contents(table)
    result = table.maintenance.run(only=["convert_deletes", "compact"], executor=spark)
    assert result.is_complete
    assert result.report_of("convert_deletes").result.deleted_row_count > 0
    assert contents(table) == before
    assert spark.table(f"lake.{namespace}.all_jobs").count() == len(before)

    table.create_branch("ingest")
    ingest = lake.load_table((namespace, "all_jobs"), branch="ingest")
    ingest.delete_prefix({"id1": "a"})
    published = table.refresh().maintenance.publish("ingest", executor=spark)
    assert published.converted_rows_count == sum(row[0] == "a" for row in before)
    assert contents(table) == [row for row in before if row[0] != "a"]
