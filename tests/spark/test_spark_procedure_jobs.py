"""CALL of the maintenance jobs: their result rows, their effects, Iceberg's arguments, and dry_run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from session_settings import settings

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.string())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Six data files of two rows each, a0 to a11; rows 0 and 1 deleted by range, row 2 by key, row 4 by position."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    for number in range(0, 12, 2):
        created.append(pa.table({"id1": ["a"] * 2, "id2": [number, number + 1], "v": ["x", "y"]}, schema=SCHEMA))
    created.delete_range(upper=("a", 2))
    created.delete("id1 = 'a' AND id2 = 2", mode="equality")
    created.delete("id2 = 4", mode="scan")
    return created


ALIVE = [3, 5, 6, 7, 8, 9, 10, 11]


def call(spark: SparkSession, text: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.sql(f"CALL lake.system.{text}").collect()]


def failure(spark: SparkSession, text: str) -> str:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"CALL lake.system.{text}")
    return str(caught.value)


def alive(spark: SparkSession, table: Table) -> list[int]:
    found = sorted(row.id2 for row in spark.sql(f"SELECT id2 FROM lake.{table.name}").collect())
    assert found == sorted(row["id2"] for row in table.refresh().scan().to_arrow().to_pylist())
    return found


def delete_kinds(table: Table) -> list[str]:
    return sorted(table.refresh().inspect.delete_files()["kind"].to_pylist())


def state(table: Table) -> str:
    """The metadata file: another one when anything was committed."""
    return table.refresh().iceberg.metadata_location


JOBS = [
    "convert_deletes",
    "drop_dead_deletes",
    "merge_range_deletes",
    "rewrite_data_files",
    "rewrite_manifests",
    "rewrite_position_delete_files",
    "expire_snapshots",
    "remove_orphan_files",
    "run_maintenance",
]


@pytest.mark.parametrize("job", [*JOBS, "table_health"])
def test_jobs_do_not_change_rows(spark: SparkSession, table: Table, job: str) -> None:
    call(spark, f"{job}('{table.name}')")
    assert alive(spark, table) == ALIVE


def test_convert_deletes(spark: SparkSession, table: Table) -> None:
    [planned] = call(spark, f"convert_deletes('{table.name}', dry_run => true)")
    [done] = call(spark, f"convert_deletes('{table.name}')")
    expected = {
        "removed_equality_delete_files_count": 1,
        "removed_range_delete_files_count": 1,
        "removed_position_delete_files_count": 0,
        "removed_deletion_vectors_count": 0,
        "removed_data_files_count": 1,
        "added_position_delete_files_count": 1,
        "added_deletion_vectors_count": 0,
        "deleted_rows_count": 3,
    }
    assert {name: planned[name] for name in expected} == expected
    assert {name: done[name] for name in expected} == expected
    assert delete_kinds(table) == ["position", "position"]
    assert done["snapshot_id"] == table.snapshot_id
    assert done["rewritten_bytes_count"] > 0
    assert alive(spark, table) == ALIVE


def test_drop_dead_deletes(spark: SparkSession, table: Table) -> None:
    table.delete_prefix({"id1": "nobody"})
    [row] = call(spark, f"drop_dead_deletes('{table.name}')")
    assert row["removed_range_delete_files_count"] == 1
    assert row["removed_bytes"] > 0
    assert row["snapshot_id"] == table.refresh().snapshot_id


def test_merge_range_deletes(spark: SparkSession, table: Table) -> None:
    table.delete_range(lower=("a", 10))
    [row] = call(spark, f"merge_range_deletes('{table.name}')")
    assert (row["removed_range_delete_files_count"], row["added_range_delete_files_count"]) == (2, 1)
    assert (row["removed_spans_count"], row["added_spans_count"]) == (2, 2)
    assert delete_kinds(table).count("range") == 1
    assert alive(spark, table) == [3, 5, 6, 7, 8, 9]


def test_rewrite_data_files(spark: SparkSession, table: Table) -> None:
    """PR-22: our columns are in the result if they are requested."""
    [planned] = spark.sql(f"CALL lake.system.rewrite_data_files('{table.name}', dry_run => true)").collect()
    answer = spark.sql(f"CALL lake.system.rewrite_data_files('{table.name}', all_columns => true)")
    assert answer.columns[:5] == planned.__fields__
    assert answer.dtypes[:5] == [
        ("rewritten_data_files_count", "int"),
        ("added_data_files_count", "int"),
        ("rewritten_bytes_count", "bigint"),
        ("failed_data_files_count", "int"),
        ("removed_delete_files_count", "int"),
    ]
    [row] = answer.collect()
    assert (row.rewritten_data_files_count, row.added_data_files_count, row.failed_data_files_count) == (6, 1, 0)
    assert planned.removed_delete_files_count == row.removed_delete_files_count == 3
    assert (row.commits_count, row.deleted_rows_count) == (2, 4)
    assert row.snapshot_id == table.refresh().snapshot_id
    assert alive(spark, table) == ALIVE
    assert delete_kinds(table) == []


def test_rewrite_where_accepts_spark_syntax(spark: SparkSession, table: Table) -> None:
    """PR-8."""
    options = "map('rewrite-all', 'true', 'target-file-size-bytes', '100000')"
    text = f"""rewrite_data_files(table => '{table.name}', where => 'id1 = "a" AND `id2` < 4', options => {options})"""
    [row] = call(spark, text)
    assert row["rewritten_data_files_count"] == 2
    assert alive(spark, table) == ALIVE
    where = "lake.system.truncate(10, id2) >= 0 AND id2 < 4"
    [row] = call(spark, f"rewrite_data_files('{table.name}', where => '{where}', options => {options})")
    assert row["rewritten_data_files_count"] == 1
    assert alive(spark, table) == ALIVE
    assert "UNRESOLVED_COLUMN" in failure(spark, f"rewrite_data_files('{table.name}', where => 'idd = 3')")
    assert "not a condition in Spark SQL" in failure(spark, f"rewrite_data_files('{table.name}', where => 'id2 = = 3')")


@pytest.fixture
def days(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """Eight files, each with the row of one day. The column types allow constants in many notations."""
    spark.sql(
        f"CREATE TABLE lake.{namespace}.days (id BIGINT, name STRING, d DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, "
        "price DECIMAL(10, 2), raw BINARY, f DOUBLE, odd BOOLEAN, s STRUCT<x: INT>) PARTITIONED BY (id, bucket(4, id))"
    )
    day = "(DATE '2026-01-01' + CAST(id AS INT))"
    spark.sql(
        f"INSERT INTO lake.{namespace}.days SELECT id, concat('n', id), {day}, CAST({day} AS TIMESTAMP), "
        f"CAST({day} AS TIMESTAMP_NTZ), id + 0.25, unhex(concat('0', id)), id + 0.5D, id % 2 = 1, "
        "named_struct('x', CAST(id AS INT)) FROM range(8)"
    )
    return lake.load_table(f"{namespace}.days")


def files_chosen(spark: SparkSession, table: Table, where: str) -> int:
    """How many a rewrite would take."""
    options = "dry_run => true, options => map('rewrite-all', 'true')"
    [row] = call(spark, f"rewrite_data_files(table => '{table.name}', where => \"{where}\", {options})")
    return int(row["rewritten_data_files_count"])


CONDITIONS = [
    *("true", "false", "id = null", "id = 3L", "id = 3S", "id = '3'", "id = CAST('3' AS BIGINT)", "ID = 3", "`id` = 3"),
    *(
        "id IN (3, NULL)",
        "id NOT IN (3, NULL)",
        "NOT (id IN (3, NULL) OR name = 'n1')",
        "id IN (1, 2, NULL) AND id > 1",
    ),
    *("lake.system.bucket(4, id) IN (0, NULL)", "NOT lake.system.bucket(4, id) IN (0, NULL)", "id IN (NULL, NULL)"),
    *("id IN (1, 2, 99)", "id BETWEEN 2 AND 4", "NOT (id = 3 OR id = 4)", "id <=> 3", "id = -3", "id = 3 -- three"),
    *("name LIKE 'n3%'", "name NOT LIKE 'n3%'", "name IS NULL", "name IS NOT NULL", "name = 'a''b'", "name > 'n3'"),
    *("d = DATE '2026-01-03'", "d >= '2026-01-03'", "d < current_date() - INTERVAL 1 DAY", "d > DATE '2026-01-01' + 2"),
    *("ts = TIMESTAMP '2026-01-03 00:00:00'", "ts = '2026-01-03'", "ts > '2026-01-03T12:00:00Z'"),
    *("ntz = TIMESTAMP_NTZ '2026-01-03 00:00:00'", "ntz = '2026-01-03'"),
    *("price = 3.25BD", "price > 3.25", "price > 3", "raw = X'03'", "f > 3.0", "f = 3.5D", "odd", "NOT odd", "s.x = 3"),
    *("days.id = 3", "lake.system.bucket(4, id) = 0", "lake.system.bucket(4, id) IN (0, 1) AND id > 3"),
    *("lake.system.days(ts) = DATE '2026-01-03'", "lake.system.truncate(2, name) = 'n3'"),
]


def test_where_argument_has_query_semantics(spark: SparkSession, days: Table) -> None:
    """PR-8: as many files as have rows that match; constants, casts, names and the time zone are the session's."""
    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        for where in CONDITIONS:
            query = f"SELECT count(DISTINCT _file) FROM lake.{days.name} AS days WHERE {where}"
            [[matching]] = spark.sql(query.replace("--", "/*") + ("*/" if "--" in where else "")).collect()
            assert files_chosen(spark, days, where) == matching, where
    assert files_chosen(spark, days, "system.BUCKET(4, id) = 0") == files_chosen(
        spark, days, "lake.system.bucket(4, id) = 0"
    )
    assert files_chosen(spark, days, f"{days.name}.id = 3") == 1
    assert files_chosen(spark, days, "lake.system.bucket(7, id) = 0") == 8, "of another width nothing is known"


def test_rewrite_data_files_options(spark: SparkSession, table: Table) -> None:
    hints = "'max-concurrent-file-group-rewrites', '3', 'use-starting-sequence-number', 'true'"
    options = f"map('min-input-files', '50', 'delete-ratio-threshold', '1', {hints})"
    [row] = call(spark, f"rewrite_data_files('{table.name}', NULL, NULL, {options}, dry_run => true)")
    assert row["rewritten_data_files_count"] == 1
    [row] = call(spark, f"rewrite_data_files('{table.name}', options => map('depth', 'fold'))")
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (3, 2)


REFUSED_ARGUMENTS = [
    ("options => map('min-input-file', '2')", "unknown option 'min-input-file'"),
    ("options => map('min-input-file', '2')", "Did you mean 'min-input-files'"),
    ("options => map('min-input-files', 'two')", "must be a whole number, not 'two'"),
    ("options => map('rewrite-all', 'yes')", "must be true or false, not 'yes'"),
    ("options => map('delete-ratio-threshold', '2')", "delete_ratio_threshold must be above 0"),
    ("options => map('output-spec-id', '1')", "files stay in their partition spec"),
    ("options => map('use-starting-sequence-number', 'false')", "must be 'true'"),
    ("strategy => 'zsort'", "strategy must be 'binpack' or 'sort'"),
    ("strategy => 'sort', sort_order => 'zorder(id1, id2)'", "always sorted by the key, 'id1, id2'"),
    ("sort_order => 'id2 DESC'", "always sorted by the key"),
    ("strategy => 'binpack', sort_order => 'id1, id2'", "requires the strategy 'sort'"),
]


def test_invalid_rewrite_arguments_are_rejected(spark: SparkSession, table: Table) -> None:
    """PR-3, PR-9."""
    before = state(table)
    for arguments, message in REFUSED_ARGUMENTS:
        assert message in failure(spark, f"rewrite_data_files(table => '{table.name}', {arguments})")
        assert state(table) == before, arguments


def test_rewrite_position_delete_files(spark: SparkSession, table: Table) -> None:
    for number in (6, 7):
        table.delete(f"id2 = {number}", mode="scan")
    table.append(pa.table({"id1": ["b"] * 3, "id2": [20, 21, 22], "v": ["x"] * 3}, schema=SCHEMA))
    for number in (20, 21):
        table.delete(f"id2 = {number}", mode="scan")
    expected = [3, 5, 8, 9, 10, 11, 22]
    assert alive(spark, table) == expected
    text = f"rewrite_position_delete_files(table => '{table.name}'"
    [planned] = call(spark, f"{text}, where => 'id1 = \"b\"', dry_run => true)")
    answer = spark.sql(f"CALL lake.system.{text}, where => 'id1 = \"b\"')")
    assert answer.dtypes == [
        ("rewritten_delete_files_count", "int"),
        ("added_delete_files_count", "int"),
        ("rewritten_bytes_count", "bigint"),
        ("added_bytes_count", "bigint"),
    ]
    [row] = [each.asDict() for each in answer.collect()]
    assert (row["rewritten_delete_files_count"], row["added_delete_files_count"]) == (2, 1)
    assert planned == {**row, "added_bytes_count": 0}
    assert 0 < row["added_bytes_count"] < row["rewritten_bytes_count"]
    [row] = call(spark, f"{text}, options => map('rewrite-all', 'true'), all_columns => true)")
    assert (row["added_delete_files_count"], row["snapshot_id"]) == (2, table.refresh().snapshot_id)
    assert alive(spark, table) == expected
    assert "Did you mean 'rewrite-all'" in failure(spark, f"{text}, options => map('rewrite_all', 'true'))")
    assert "has one position delete file" in failure(spark, f"{text}, options => map('max-file-size-bytes', '9'))")


def test_rewrite_manifests(spark: SparkSession, table: Table) -> None:
    answer = spark.sql(f"CALL lake.system.rewrite_manifests('{table.name}', false, 0)")
    assert answer.dtypes == [("rewritten_manifests_count", "int"), ("added_manifests_count", "int")]
    assert answer.collect()[0].rewritten_manifests_count >= answer.collect()[0].added_manifests_count > 0
    assert alive(spark, table) == ALIVE
    assert "'v' is not a field of partition spec 0" in failure(
        spark, f"rewrite_manifests('{table.name}', sort_by => array('v'))"
    )
    assert "no partition spec 7" in failure(spark, f"rewrite_manifests('{table.name}', spec_id => 7)")


def test_expire_snapshots(spark: SparkSession, table: Table) -> None:
    call(spark, f"rewrite_data_files('{table.name}', options => map('remove-dangling-deletes', 'true'))")
    text = f"expire_snapshots('{table.name}', TIMESTAMP '2100-01-01', 2"
    [planned] = call(spark, f"{text}, 4, true, dry_run => true, all_columns => true)")
    answer = spark.sql(f"CALL lake.system.{text})")
    assert answer.dtypes == [
        (f"deleted_{kind}_count", "bigint")
        for kind in (
            "data_files",
            "position_delete_files",
            "equality_delete_files",
            "manifest_files",
            "manifest_lists",
            "statistics_files",
        )
    ]
    [row] = [each.asDict() for each in answer.collect()]
    assert row == {name: planned[name] for name in row}
    assert row["deleted_data_files_count"] == 6
    assert planned["expired_snapshots_count"] == 9
    assert len(table.refresh().inspect.snapshots()) == 2
    assert alive(spark, table) == ALIVE


def test_remove_orphan_files(spark: SparkSession, table: Table) -> None:
    orphan = Path(unquote(urlparse(table.location).path)) / "data" / "left over.parquet"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"x")
    os.utime(orphan, (time.time() - 10 * 86_400,) * 2)
    text = f"remove_orphan_files(table => '{table.name}'"
    [planned] = call(spark, f"{text}, dry_run => true, all_columns => true)")
    assert planned["orphan_file_location"].endswith("left over.parquet")
    assert not planned["is_removed"]
    assert orphan.exists()
    [removed] = call(spark, f"{text}, max_concurrent_deletes => 2, prefix_listing => true, stream_results => true)")
    assert removed == {"orphan_file_location": planned["orphan_file_location"]}
    assert not orphan.exists()
    assert call(spark, f"{text})") == []
    assert alive(spark, table) == ALIVE


def test_remove_orphan_files_from_a_file_list_view(spark: SparkSession, table: Table) -> None:
    """MT-50: a view instead of a listing; a path that metadata names with another scheme stops the job."""
    root = unquote(urlparse(table.location).path)
    orphan, named = f"{root}/data/orphan.parquet", table.scan().plan().tasks[0].data_file.file_path
    Path(orphan).write_bytes(b"x")
    listing = f"SELECT location AS file_path, TIMESTAMP '2020-01-01' AS last_modified FROM VALUES ('file://{orphan}'), "
    spark.sql(f"{listing} ('{named}'), (NULL) AS listed(location)").createOrReplaceTempView("listed_files")
    spark.sql(f"{listing} ('old:{root}/data/x') AS listed(location)").createOrReplaceTempView("other_files")
    spark.sql("SELECT 'a' AS file_path").createOrReplaceTempView("no_files")
    text = f"remove_orphan_files('{table.name}', file_list_view =>"
    assert "has no column last_modified" in failure(spark, f"{text} 'no_files')")
    assert call(spark, f"{text} 'other_files', dry_run => true)") == [{"orphan_file_location": f"file://{orphan}"}]
    assert call(spark, f"{text} 'listed_files')") == [{"orphan_file_location": f"file://{orphan}"}]
    assert not Path(orphan).exists()
    assert alive(spark, table) == ALIVE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("older_than => TIMESTAMP '2100-01-01'", "at least 24 hours ago"),
        ("location => '/elsewhere'", "is not inside the table's location"),
        ("file_list_view => 'nowhere'", "TABLE_OR_VIEW_NOT_FOUND"),
        ("prefix_mismatch_mode => 'NONE'", "one of error, ignore, delete, not 'NONE'"),
    ],
)
def test_invalid_remove_orphan_files_arguments_are_rejected(
    spark: SparkSession, table: Table, arguments: str, message: str
) -> None:
    assert message in failure(spark, f"remove_orphan_files(table => '{table.name}', {arguments})")


def test_table_health(spark: SparkSession, table: Table) -> None:
    before = state(table)
    [row] = call(spark, f"table_health('{table.name}')")
    assert (row["branch"], row["snapshot_id"]) == ("main", table.snapshot_id)
    assert (row["data_file_count"], row["record_count"]) == (6, 12)
    assert {each["kind"]: each["file_count"] for each in row["delete_files"]} == {
        "position": 1,
        "equality": 1,
        "range": 1,
    }
    assert row["read_amplification"] > 1
    assert "small-files" in [finding["name"] for finding in row["findings"]]
    assert state(table) == before


def test_verify(spark: SparkSession, table: Table) -> None:
    """MT-111."""
    before = state(table)
    assert call(spark, f"verify('{table.name}', deep => true, keys => true)") == []
    table.append(table.scan(limit=1).to_arrow())
    [row] = call(spark, f"verify('{table.name}', keys => true)")
    assert (row["severity"], row["kind"], row["snapshot_ids"]) == ("warning", "repeated-key", [table.snapshot_id])
    assert row["what"].startswith("1 key has more than one live row, 2 rows in all: (id1=")
    assert state(table) != before


def test_run_maintenance(spark: SparkSession, table: Table) -> None:
    rows = call(spark, f"run_maintenance('{table.name}', 3600, NULL, array('compact', 'convert_deletes'))")
    assert [(row["job"], row["status"]) for row in rows] == [("convert_deletes", "done"), ("compact", "done")]
    assert rows[0]["result"]["deleted_row_count"] == 3
    assert alive(spark, table) == ALIVE
    assert "Did you mean 'compact'" in failure(spark, f"run_maintenance('{table.name}', only => array('comapct'))")


def test_publish(spark: SparkSession, lake: Catalog, table: Table) -> None:
    published = lake.create_table((*table.name.split(".")[:1], "p"), SCHEMA, key=["id1", "id2"])
    published.append(pa.table({"id1": ["a"], "id2": [1], "v": ["x"]}, schema=SCHEMA))
    before = published.snapshot_id
    published.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    ingest = lake.load_table(published.name, branch="ingest")
    ingest.replace(pa.table({"id1": ["a"], "id2": [2], "v": ["y"]}, schema=SCHEMA), prefix=["id1"])
    [planned] = call(spark, f"publish('{published.name}', dry_run => true)")
    assert planned["current_snapshot_id"] == before
    assert alive(spark, published) == [1]
    [row] = call(spark, f"publish(table => '{published.name}', branch => 'ingest', target => 'main')")
    assert (row["source"], row["target"], row["previous_snapshot_id"]) == ("ingest", "main", before)
    assert row["current_snapshot_id"] == published.refresh().snapshot_id
    assert row["removed_range_delete_files_count"] == 1
    assert alive(spark, published) == [2]
    assert "fast_forward" not in failure(spark, f"fast_forward('{published.name}', 'main', 'ingest')")


def test_jobs_on_a_branch(spark: SparkSession, table: Table) -> None:
    """PR-4."""
    table.create_branch("audit")
    head = table.refresh().snapshot_id
    [row] = call(spark, f"rewrite_data_files('{table.name}', branch => 'audit', all_columns => true)")
    assert row["rewritten_data_files_count"] == 6
    assert table.refresh().snapshot_id == head
    assert row["snapshot_id"] == table.metadata.refs["audit"].snapshot_id


def test_apply_retention(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """MT-107, MT-108: the property is checked when SQL sets it, and one result row shows the effect of each rule."""
    name = f"lake.{namespace}.events"
    spark.sql(f"CREATE TABLE {name} (region STRING, day DATE) TBLPROPERTIES ('tableformat.retain' = 'day: 30 days')")
    spark.sql(f"INSERT INTO {name} VALUES ('EU', DATE '2020-01-01'), ('US', current_date())")
    with pytest.raises(Exception, match="must be rules"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('tableformat.retain' = '30 days')")
    with pytest.raises(Exception, match="is used by the retention"):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN day TO other")
    [planned] = call(spark, f"apply_retention('{namespace}.events', dry_run => true)")
    assert (planned["rule"], planned["snapshot_id"]) == ("day: 30 days", None)
    assert planned["row_count_max"] in (1, 2), "as the rows lie in files"
    [done] = call(spark, f"apply_retention('{namespace}.events')")
    assert done["snapshot_id"] == lake.load_table((namespace, "events")).snapshot_id
    assert [row.region for row in spark.table(name).collect()] == ["US"]
