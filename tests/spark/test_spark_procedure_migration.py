"""CALL of procedures that import files and tables, and that stage copies in another location."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table, open_catalog

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def call(spark: SparkSession, text: str) -> dict[str, Any]:
    """The one row of `CALL lake.system.<text>`."""
    [row] = spark.sql(f"CALL lake.system.{text}").collect()
    found: dict[str, Any] = row.asDict()
    return found


def rows(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.fixture
def old(spark: SparkSession, namespace: str, tmp_path: Path) -> str:
    """A partitioned Spark table, with one partition in another location, and one whose value is null."""
    name = f"spark_catalog.default.old_{namespace}"
    spark.sql(f"CREATE TABLE {name} (id INT COMMENT 'who', v STRING, day DATE) USING parquet PARTITIONED BY (day)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', DATE '2026-01-31'), (2, 'b', NULL), (3, 'c', DATE '2026-02-01')")
    elsewhere = tmp_path / "else where=x"
    pq.write_table(pa.table({"id": pa.array([4], pa.int32()), "v": ["d"]}), tmp_path / "part.parquet")
    elsewhere.mkdir()
    shutil.move(tmp_path / "part.parquet", elsewhere)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (day = DATE '2026-03-01') LOCATION 'file://{elsewhere}'")
    yield name
    spark.sql(f"DROP TABLE {name}")


def test_session_catalog_table_is_imported_by_snapshot(spark: SparkSession, old: str, namespace: str) -> None:
    """SP-35."""
    before = rows(spark, old)
    assert call(
        spark, f"snapshot('{old}', '{namespace}.t', properties => map('write.delete.mode', 'copy-on-write'))"
    ) == {"imported_files_count": 4}
    name = f"lake.{namespace}.t"
    assert rows(spark, name) == before
    assert [field.name for field in spark.table(name).schema] == ["id", "v", "day"]
    assert spark.sql(f"SELECT id FROM {name} WHERE day = DATE '2026-03-01'").collect()[0].id == 4
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"INSERT INTO {name} VALUES (9, 'z', DATE '2026-01-31')")
    assert [row[0] for row in rows(spark, name)] == [2, 3, 4, 9]
    assert rows(spark, old) == before
    with pytest.raises(AnalysisException, match="already"):
        call(spark, f"snapshot('{old}', '{namespace}.t')")


def test_add_files_from_empty_source_adds_nothing(
    spark: SparkSession, old: str, namespace: str, tmp_path: Path
) -> None:
    """PR-24: this used to be an error, and so a daily job failed on a day without new files."""
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id INT, v STRING, day DATE) PARTITIONED BY (day)")
    spark.sql(f"ALTER TABLE {old} ADD PARTITION (day = '2020-02-02')")
    source = old.removeprefix("spark_catalog.")
    (tmp_path / "empty").mkdir()
    for arguments in (f"'`parquet`.`{tmp_path}/empty`'", f"'{source}', map('day', '2020-02-02')"):
        added = call(spark, f"add_files('{namespace}.t', {arguments})")
        assert added == {"added_files_count": 0, "changed_partition_count": 0}
    assert spark.table(f"lake.{namespace}.t.snapshots").count() == 0


def test_add_files_from_table_and_directory(
    spark: SparkSession, lake: Catalog, old: str, namespace: str, tmp_path: Path
) -> None:
    """SP-35."""
    source = old.removeprefix("spark_catalog.")
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id INT, v STRING, day DATE) PARTITIONED BY (day)")
    added = call(spark, f"add_files('{namespace}.t', '{source}', map('day', '2026-01-31'))")
    assert added == {"added_files_count": 1, "changed_partition_count": 1}
    with pytest.raises(AnalysisException, match="already"):
        call(spark, f"add_files('{namespace}.t', '{source}')")
    twice = call(spark, f"add_files('{namespace}.t', '{source}', check_duplicate_files => false)")
    assert twice == {"added_files_count": 4, "changed_partition_count": 4}
    assert [row[0] for row in rows(spark, f"lake.{namespace}.t")] == [1, 1, 2, 3, 4]
    directory = tmp_path / "files"
    spark.sql("SELECT 7 AS id, 'x' AS v, DATE '2026-05-05' AS day").write.partitionBy("day").parquet(str(directory))
    added = call(spark, f"add_files(table => '{namespace}.t', source_table => '`parquet`.`{directory}`')")
    assert added == {"added_files_count": 1, "changed_partition_count": 1}
    assert spark.sql(f"SELECT id FROM lake.{namespace}.t WHERE day = DATE '2026-05-05'").collect()[0].id == 7
    for arguments, message in (
        (f"'{source}', map('id', '1')", "is not partitioned by id"),
        (f"'{source}', map('day', '1999-01-01')", "no partition of the source"),
        (f"'`orc`.`{directory}`'", "Parquet"),
        (f"'lake.{namespace}.t'", "in the catalog lake"),
        ("'nowhere.t'", "nowhere"),
        (f"'{source}', parallelism => 0", "above 0"),
    ):
        with pytest.raises(AnalysisException, match=message):
            call(spark, f"add_files('{namespace}.t', {arguments})")
    bare = lake.create_table((namespace, "bare"), SCHEMA)
    with pytest.raises(AnalysisException, match="partitioned by no identity column"):
        call(spark, f"add_files('{bare.name}', '`parquet`.`{directory}`')")


def test_unsupported_import_error_names_the_alternative(spark: SparkSession, old: str, namespace: str) -> None:
    """SP-35."""
    with pytest.raises(AnalysisException, match="CALL snapshot"):
        call(spark, f"migrate('{old}')")
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id INT)")
    for source, message in (
        (f"lake.{namespace}.t", "register_table"),
        ("`parquet`.`/nowhere`", "add_files"),
    ):
        with pytest.raises(AnalysisException, match=message):
            call(spark, f"snapshot('{source}', '{namespace}.u')")
    assert [row.tableName for row in spark.sql(f"SHOW TABLES IN lake.{namespace}").collect()] == ["t"]


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Rows deleted by position and by a range, over three snapshots."""
    made = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    made.append(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}, schema=SCHEMA))
    made.delete("v = 'b'", mode="scan")
    made.delete_prefix({"id": 3})
    return made


def test_register_dropped_table(spark: SparkSession, lake: Catalog, table: Table) -> None:
    location, head, name = table.iceberg.metadata_location, table.snapshot_id, table.name
    lake.drop_table(name)
    answer = call(spark, f"register_table('{name}', '{location}')")
    assert answer == {"current_snapshot_id": head, "total_records_count": 3, "total_data_files_count": 1}
    assert rows(spark, f"lake.{name}") == [(1, "a")]
    with pytest.raises(AnalysisException, match="already"):
        call(spark, f"register_table('{name}', '{location}')")


def test_rewrite_table_path_stages_a_copy_that_can_be_registered(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """SP-36."""
    target = f"file://{tmp_path}/there"
    staged = call(spark, f"rewrite_table_path('{table.name}', '{table.location}', '{target}')")
    assert staged["rewritten_delete_file_paths_count"] == 1
    assert staged["rewritten_manifest_file_paths_count"] == 3
    assert not (tmp_path / "there").exists()
    carry(staged["file_list_location"])
    shutil.move(table.location.removeprefix("file://"), tmp_path / "away")
    with open_catalog(str(tmp_path / "other")) as catalog:
        catalog.create_namespace("db")
        copy = catalog.register_table("db.t", f"{target}/metadata/{staged['latest_version']}")
        assert copy.scan().to_arrow().to_pylist() == [{"id": 1, "v": "a"}]
        assert copy.verify(deep=True).errors == ()
    shutil.move(tmp_path / "away", table.location.removeprefix("file://"))


def test_rewrite_table_path_since_a_version_lists_only_new_files(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """SP-36."""
    target, start = f"file://{tmp_path}/there", table.iceberg.metadata_location.rpartition("/")[2]
    arguments = f"'{table.name}', '{table.location}', '{target}'"
    carry(call(spark, f"rewrite_table_path({arguments})")["file_list_location"])
    table.append(pa.table({"id": [9], "v": ["z"]}, schema=SCHEMA))
    since = call(
        spark, f"rewrite_table_path({arguments}, start_version => '{start}', staging_location => '{tmp_path}/staged')"
    )
    assert (since["rewritten_manifest_file_paths_count"], since["rewritten_delete_file_paths_count"]) == (1, 0)
    assert len(carry(since["file_list_location"])) == 4
    with open_catalog(str(tmp_path / "other")) as catalog:
        catalog.create_namespace("db")
        copy = catalog.register_table("db.t", f"{target}/metadata/{since['latest_version']}")
        assert copy.verify(deep=True).errors == ()
        assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 9]
    without = call(spark, f"rewrite_table_path({arguments}, create_file_list => false)")
    assert without["file_list_location"] == "N/A"
    for wrong, message in (
        (f"'{table.name}', '/elsewhere', '{target}'", "not a directory or prefix"),
        (f"'{table.name}', '{table.location}', '{table.location}'", "same location"),
        (f"{arguments}, end_version => '7.metadata.json'", "not a metadata file in the log"),
    ):
        with pytest.raises(AnalysisException, match=message):
            call(spark, f"rewrite_table_path({wrong})")


def carry(file_list: str) -> list[tuple[str, str]]:
    """Copy the files of a list to their destinations."""
    with Path(file_list.removeprefix("file://")).open() as lines:
        pairs = [
            (source.removeprefix("file://"), target.removeprefix("file://")) for source, target in csv.reader(lines)
        ]
    for source, target in pairs:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return pairs


def test_partition_statistics_are_registered_in_metadata(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-33."""
    made = lake.create_table((namespace, "p"), SCHEMA, partition_by=["v"], properties={"format-version": "3"})
    assert spark.sql(f"CALL lake.system.compute_partition_stats('{made.name}')").collect() == []
    made.append(pa.table({"id": [1, 2, 3], "v": ["b", "b", None]}, schema=SCHEMA))
    made.delete("id = 2", mode="scan")
    path = call(spark, f"compute_partition_stats('{made.name}')")["partition_statistics_file"]
    [named] = made.refresh().metadata.partition_statistics
    assert (named.statistics_path, named.snapshot_id) == (path, made.snapshot_id)
    found = pq.read_table(path.removeprefix("file://"))
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in found.schema]
    assert ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    columns = [
        "partition",
        "data_record_count",
        "position_delete_record_count",
        "position_delete_file_count",
        "dv_count",
    ]
    assert [tuple(row.values()) for row in found.select(columns).to_pylist()] == [
        ({"v": None}, 1, 0, 0, 0),
        ({"v": "b"}, 2, 1, 0, 1),
    ]
    assert call(spark, f"compute_partition_stats('{made.name}')")["partition_statistics_file"] == path
    bare = lake.create_table((namespace, "bare"), SCHEMA)
    bare.append(pa.table({"id": [1], "v": ["a"]}, schema=SCHEMA))
    with pytest.raises(AnalysisException, match="no partition fields"):
        call(spark, f"compute_partition_stats('{bare.name}')")
