"""Spark on each kind of catalog: the same rows as on a lake, statement by statement (LK-11)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from matrix import SPARK, Matrix, statement_name
from postgres_server import postgres_uri
from servers import BUCKET, glue_options, hive_metastore, moto, rest_server

import tableformat as tf
from spark_ext import attach
from tableformat.testing.table_rows import live_tuples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.estate

STEPS: Final = (
    "CREATE TABLE {c}.db.t (id1 STRING NOT NULL, id2 BIGINT NOT NULL, v STRING) PARTITIONED BY (bucket(2, id1)) "
    "TBLPROPERTIES ('tableformat.key' = 'id1,id2', 'format-version' = '{version}')",
    "INSERT INTO {c}.db.t SELECT concat('k', id % 4), id, 'x' FROM range(24)",
    "ALTER TABLE {c}.db.t CREATE TAG first",
    "DELETE FROM {c}.db.t WHERE id1 = 'k3' AND id2 < 8",
    "DELETE FROM {c}.db.t WHERE v = 'y' OR id2 = 9",
    "UPDATE {c}.db.t SET v = 'u' WHERE id2 BETWEEN 10 AND 13",
    "MERGE INTO {c}.db.t t USING (SELECT 'k0' AS id1, 0L AS id2, 'm' AS v UNION ALL SELECT 'new', 1L, 'm') s "
    "ON t.id1 = s.id1 AND t.id2 = s.id2 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "CALL {c}.system.delete_prefix(table => 'db.t', prefix => named_struct('id1', 'k2'))",
    "INSERT OVERWRITE {c}.db.t VALUES ('k1', 5, 'o'), ('k1', 6, 'o'), ('z', 1, 'o')",
    "INSERT INTO {c}.db.t SELECT concat('k', id % 4), id + 100, 'x' FROM range(12)",
    "ALTER TABLE {c}.db.t ADD COLUMN w INT",
    "ALTER TABLE {c}.db.t RENAME COLUMN v TO word",
    "INSERT INTO {c}.db.t VALUES ('w', 1, 'w', 1)",
    "DELETE FROM {c}.db.t WHERE id1 = 'k1'",
    "ALTER TABLE {c}.db.t CREATE BRANCH work",
    "INSERT INTO {c}.db.t.branch_work VALUES ('b', 1, 'b', 2)",
    "CALL {c}.system.fast_forward('db.t', 'main', 'work')",
    "CALL {c}.system.merge_range_deletes('db.t')",
    "CALL {c}.system.convert_deletes('db.t')",
    "CALL {c}.system.rewrite_position_delete_files('db.t')",
    "CALL {c}.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
    "CALL {c}.system.rewrite_manifests('db.t')",
    "CALL {c}.system.drop_dead_deletes('db.t')",
    "DELETE FROM {c}.db.t WHERE id1 = 'w'",
    "CALL {c}.system.publish(table => 'db.t', branch => 'main', target => 'work')",
    "CALL {c}.system.compute_table_stats('db.t')",
    "CALL {c}.system.rollback_to_snapshot('db.t', {tag})",
    "CALL {c}.system.fast_forward('db.t', 'main', 'work')",
    "ALTER TABLE {c}.db.t DROP TAG first",
    "CALL {c}.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2100-01-01 00:00:00')",
    "CALL {c}.system.remove_orphan_files(table => 'db.t', dry_run => true)",
    "CALL {c}.system.run_maintenance('db.t')",
    "ALTER TABLE {c}.db.t SET TBLPROPERTIES ('purpose' = 'estate')",
    "CREATE TABLE {c}.db.copy AS SELECT * FROM {c}.db.t",
    "REPLACE TABLE {c}.db.copy AS SELECT id1 FROM {c}.db.t",
    "ALTER TABLE {c}.db.copy RENAME TO {c}.db.renamed",
)
"""`{c}` is the catalog, `{tag}` the snapshot of the tag."""


@pytest.fixture
def options_of(tmp_path: Path) -> Iterator[Callable[[str], dict[str, str]]]:
    """A function that starts a catalog of a kind, and returns the options to open it."""
    with ExitStack() as stack:

        def start(kind: str) -> dict[str, str]:
            place, _, store = kind.partition(", ")
            servers = stack.enter_context(moto()) if store or place == "glue" else {}
            warehouse = f"s3://{BUCKET}/{place}" if store else f"file://{tmp_path}/{place.replace(' ', '-')}"
            files = servers if store else {}
            if place == "rest":
                return stack.enter_context(rest_server(tmp_path, files, warehouse=warehouse))
            if place == "glue":
                return {**glue_options(servers, warehouse=warehouse), **files}
            if place == "hive":
                return stack.enter_context(hive_metastore(tmp_path))
            uri = stack.enter_context(postgres_uri())
            if place == "sql":
                return {"type": "sql", "uri": uri, "warehouse": warehouse}
            assert place == "lake on PostgreSQL"
            return {"uri": uri, "warehouse": warehouse.removeprefix("file://"), **files}

        yield start


def opened(name: str, options: dict[str, str]) -> tf.Catalog:
    """The same catalog from Python, under the same name: the SQL catalog stores its tables under it."""
    if "type" not in options:
        return tf.open_catalog(options["warehouse"], **{key: options[key] for key in options if key != "warehouse"})
    return tf.open_catalog(name, **options)


KINDS = [
    ("rest", "2"),
    ("rest", "3"),
    ("glue", "2"),
    ("glue", "3"),
    ("sql", "2"),
    ("sql", "3"),
    ("hive", "2"),
    ("hive", "3"),
    ("lake on PostgreSQL", "2"),
    ("lake on PostgreSQL", "3"),
    ("rest, S3", "2"),
    ("rest, S3", "3"),
    ("glue, S3", "2"),
    ("lake on PostgreSQL, S3", "3"),
]


@pytest.mark.parametrize(("kind", "version"), KINDS)
def test_spark_statements_and_procedures_agree_with_a_lake(
    spark: SparkSession, options_of: Callable[[str], dict[str, str]], matrix: Matrix, kind: str, version: str
) -> None:
    """LK-11, LK-15: each statement leaves the rows that it leaves on a lake. The session knows nothing of S3: options
    of the catalog do, and for REST the server alone."""
    name = re.sub(r"\W+", "_", kind) + version
    options = options_of(kind)
    attach(spark, catalog=name, **options)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql("DROP TABLE IF EXISTS lake.db.t PURGE")
    spark.sql(f"CREATE NAMESPACE {name}.db")
    for step in STEPS:
        run(spark, step, "lake", version)
        run(spark, step, name, version)
        assert rows(spark, f"{name}.db.t") == rows(spark, "lake.db.t"), step
        matrix.seen(SPARK, statement_name(step), f"{kind} v{version}")
    expected = rows(spark, "lake.db.t")
    assert len(expected) > 5
    assert rows(spark, f"{name}.db.renamed") == rows(spark, "lake.db.renamed")
    assert spark.table(f"{name}.db.t.files").count() > 0
    with opened(name, options) as catalog:
        table = catalog.load_table("db.t")
        assert sorted(live_tuples(table), key=str) == expected
        assert table.metadata.format_version == int(version)
        assert table.verify(deep=True).errors == ()
    for catalog in ("lake", name):
        spark.sql(f"DROP TABLE {catalog}.db.t PURGE")
        spark.sql(f"DROP TABLE {catalog}.db.renamed PURGE")
    spark.sql(f"DROP NAMESPACE {name}.db")


def run(spark: SparkSession, step: str, catalog: str, version: str) -> None:
    tag = ""
    if "{tag}" in step:
        [[tag]] = spark.sql(f"SELECT snapshot_id FROM {catalog}.db.t.refs WHERE name = 'first'").collect()
    spark.sql(step.format(c=catalog, version=version, tag=tag)).collect()


def rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.table(table).collect()), key=str)
