"""Namespaces and tables in SQL: create, alter, drop, rename, show, describe."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every
from pyiceberg.table.statistics import StatisticsFile
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, open_catalog


def names(spark: SparkSession, statement: str, column: str) -> list[str]:
    return sorted(row[column] for row in spark.sql(statement).collect())


def test_namespaces(spark: SparkSession, lake: Catalog) -> None:
    spark.sql("CREATE NAMESPACE lake.sales COMMENT 'what we sold' WITH DBPROPERTIES ('team' = 'a')")
    assert "sales" in names(spark, "SHOW NAMESPACES IN lake", "namespace")
    spark.sql("ALTER NAMESPACE lake.sales SET DBPROPERTIES ('team' = 'b')")
    described = {row.info_name: row.info_value for row in spark.sql("DESCRIBE NAMESPACE EXTENDED lake.sales").collect()}
    assert described["Comment"] == "what we sold"
    assert "team,b" in described["Properties"]
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        spark.sql("CREATE NAMESPACE lake.sales")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.sales")
    spark.sql("DROP NAMESPACE lake.sales")
    assert not lake.namespace_exists("sales")


def test_drop_namespace_with_tables_requires_cascade(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    with pytest.raises(AnalysisException, match="still has tables"):
        spark.sql(f"DROP NAMESPACE lake.{namespace}")
    spark.sql(f"DROP NAMESPACE lake.{namespace} CASCADE")
    assert not lake.namespace_exists(namespace)


@pytest.mark.since_spark("4.1", "PRIMARY KEY")
def test_primary_key_clause_sets_the_table_key(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (v DOUBLE COMMENT 'a value', id2 BIGINT, id1 STRING, PRIMARY KEY (id1, id2)) "
        "COMMENT 'rows of messages' TBLPROPERTIES ('write.target-file-size-bytes' = '1000000')"
    )
    table = lake.load_table((namespace, "t"))
    assert table.key == ("id1", "id2")
    assert table.schema.field("id1").nullable is False
    assert table.properties["comment"] == "rows of messages"
    assert table.properties["write.target-file-size-bytes"] == "1000000"
    assert table.iceberg.schema().find_field("v").doc == "a value"
    statement = spark.sql(f"SHOW CREATE TABLE lake.{namespace}.t").collect()[0][0]
    assert "PRIMARY KEY (id1, id2)" in statement
    assert "COMMENT 'rows of messages'" in statement


def test_key_on_a_floating_point_column_is_refused(spark: SparkSession, namespace: str) -> None:
    with pytest.raises(AnalysisException, match="floating point") as caught:
        spark.sql(f"CREATE TABLE lake.{namespace}.t (a DOUBLE, PRIMARY KEY (a))")
    assert caught.value.getCondition() == "TABLEFORMAT_INVALID_KEY"
    assert caught.value.getSqlState() == "22023"


def test_partition_transforms(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (a INT, s STRING, ts TIMESTAMP, country STRING) "
        "PARTITIONED BY (bucket(16, a), truncate(4, s), days(ts), country)"
    )
    spec = lake.load_table((namespace, "t")).iceberg.spec()
    assert [str(field.transform) for field in spec.fields] == ["bucket[16]", "truncate[4]", "day", "identity"]
    described = [row.data_type for row in spark.sql(f"DESCRIBE lake.{namespace}.t").collect()]
    assert {"bucket(16, a)", "truncate(4, s)", "days(ts)", "country"} <= set(described)


@pytest.mark.since_spark("4.1", "INSERT of some of the columns")
def test_defaults_of_new_columns(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (a INT, b STRING DEFAULT 'x') TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"INSERT INTO {name} (a) VALUES (1)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN n INT DEFAULT 7")
    assert [tuple(row) for row in spark.table(name).collect()] == [(1, "x", 7)]
    assert lake.load_table((namespace, "t")).scan().to_arrow().to_pylist() == [{"a": 1, "b": "x", "n": 7}]
    with pytest.raises(AnalysisException, match="only single values"):
        spark.sql(f"ALTER TABLE {name} ADD COLUMN s STRUCT<x: INT> DEFAULT named_struct('x', 1)")


@pytest.mark.since_spark("4.1", "a new default comes as a value, not as the statement's text alone")
def test_default_of_existing_column_is_changed(spark: SparkSession, namespace: str) -> None:
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (a INT, b STRING DEFAULT 'x') TBLPROPERTIES ('format-version' = '3')")
    for n, change in enumerate(("SET DEFAULT 'y'", "DROP DEFAULT")):
        spark.sql(f"ALTER TABLE {name} ALTER COLUMN b {change}")
        spark.sql(f"INSERT INTO {name} (a) VALUES ({n})")
    assert sorted(map(tuple, spark.table(name).collect())) == [(0, "y"), (1, None)]


def test_column_types_round_trip(spark: SparkSession, namespace: str) -> None:
    columns = (
        "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(12,3), s STRING, x BINARY, day DATE, ts TIMESTAMP, "
        "local TIMESTAMP_NTZ, st STRUCT<a: INT NOT NULL, b: ARRAY<STRING>>, m MAP<STRING, STRUCT<v: DOUBLE>>"
    )
    spark.sql(f"CREATE TABLE lake.{namespace}.t ({columns})")
    spark.sql(f"CREATE TABLE {namespace}_expected ({columns}) USING parquet")
    created = spark.table(f"lake.{namespace}.t").schema
    expected = spark.table(f"{namespace}_expected").schema
    assert [(field.name, field.dataType.simpleString()) for field in created] == [
        (field.name, field.dataType.simpleString()) for field in expected
    ]
    assert all(field.metadata.keys() <= {"__FIELD_ID"} for field in created), "Spark 4.3 shows the ids of fields (ST-8)"


def test_rename_and_drop(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.old (a INT)")
    spark.sql(f"CREATE TABLE lake.{namespace}.taken (a INT)")
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        spark.sql(f"ALTER TABLE lake.{namespace}.old RENAME TO {namespace}.taken")
    with pytest.raises(AnalysisException, match=r"(?i)SCHEMA_NOT_FOUND.*nowhere"):
        spark.sql(f"ALTER TABLE lake.{namespace}.old RENAME TO nowhere.new")
    spark.sql(f"ALTER TABLE lake.{namespace}.old RENAME TO {namespace}.new")
    assert names(spark, f"SHOW TABLES IN lake.{namespace}", "tableName") == ["new", "taken"]
    spark.sql(f"DROP TABLE lake.{namespace}.new PURGE")
    spark.sql(f"DROP TABLE IF EXISTS lake.{namespace}.new")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"DROP TABLE lake.{namespace}.new")
    assert lake.list_tables(namespace) == [f"{namespace}.taken"]


def test_purge_is_rejected_if_gc_is_disabled(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """MT-65."""
    name = f"{namespace}.kept"
    spark.sql(f"CREATE TABLE lake.{name} (a INT) TBLPROPERTIES ('gc.enabled' = 'false')")
    spark.sql(f"INSERT INTO lake.{name} VALUES (1)")
    with pytest.raises(AnalysisException, match="cannot be purged"):
        spark.sql(f"DROP TABLE lake.{name} PURGE")
    assert lake.load_table(name).scan().count() == 1
    spark.sql(f"DROP TABLE lake.{name}")
    assert not lake.table_exists(name)


def test_create_existing_table_with_and_without_if_not_exists(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.{namespace}.t (b INT)")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("CREATE TABLE lake.nowhere.t (a INT)")


def test_schema_evolution_reads_old_files(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table(
        (namespace, "t"),
        pa.schema(
            [pa.field("id", pa.int32(), nullable=False), ("v", pa.float32()), ("s", pa.struct([("x", pa.int32())]))]
        ),
        key=["id"],
    )
    table.append(pa.table({"id": [1, 2], "v": [0.5, 1.5], "s": [{"x": 1}, None]}, schema=table.schema))
    for change in (
        "ADD COLUMN added STRING COMMENT 'new' AFTER id",
        "ADD COLUMN s.y STRING",
        "RENAME COLUMN v TO w",
        "ALTER COLUMN w TYPE DOUBLE",
        "ALTER COLUMN id TYPE BIGINT",
        "RENAME COLUMN s.x TO z",
        "ALTER COLUMN w FIRST",
        "ALTER COLUMN w COMMENT 'weight'",
    ):
        spark.sql(f"ALTER TABLE lake.{namespace}.t {change}")
    found = spark.table(f"lake.{namespace}.t").orderBy("id")
    assert found.schema.simpleString() == "struct<w:double,id:bigint,added:string,s:struct<z:int,y:string>>"
    assert [row.asDict(True) for row in found.collect()] == [
        {"w": 0.5, "id": 1, "added": None, "s": {"z": 1, "y": None}},
        {"w": 1.5, "id": 2, "added": None, "s": None},
    ]
    spark.sql(f"ALTER TABLE lake.{namespace}.t DROP COLUMN added")
    assert spark.table(f"lake.{namespace}.t").columns == ["w", "id", "s"]
    assert table.refresh().key == ("id",)
    comments = {row.col_name: row.comment for row in spark.sql(f"DESCRIBE lake.{namespace}.t").collect()}
    assert comments["w"] == "weight"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("DROP COLUMN id", "belongs to the key"),
        ("ALTER COLUMN id DROP NOT NULL", "must be NOT NULL"),
        ("DROP COLUMN day", "partition field"),
        ("ADD COLUMN must INT NOT NULL", "required|NOT NULL"),
        ("ALTER COLUMN v SET NOT NULL", "nullable|required"),
        ("ADD COLUMN x INT DEFAULT 3", "format version 3"),
        ("SET TBLPROPERTIES ('tableformat.key-field-ids' = '2')", "cannot be changed"),
    ],
)
def test_invalid_alterations_are_rejected(
    spark: SparkSession, lake: Catalog, namespace: str, change: str, reason: str
) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id INT, v INT, day DATE, PRIMARY KEY (id)) PARTITIONED BY (days(day))")
    with pytest.raises(AnalysisException, match=reason):
        spark.sql(f"ALTER TABLE lake.{namespace}.t {change}")


def test_table_properties(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    spark.sql(f"ALTER TABLE lake.{namespace}.t SET TBLPROPERTIES ('x' = '1', 'y' = 'two')")
    spark.sql(f"ALTER TABLE lake.{namespace}.t UNSET TBLPROPERTIES ('x')")
    spark.sql(f'COMMENT ON TABLE lake.{namespace}.t IS "it\'s a table"')
    shown = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES lake.{namespace}.t").collect()}
    assert (shown.get("x"), shown["y"], shown["format-version"]) == (None, "two", "2")
    assert lake.load_table((namespace, "t")).properties["comment"] == "it's a table"


@pytest.mark.since_spark("4.1", "PRIMARY KEY")
def test_key_is_added_to_existing_table(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT NOT NULL, b STRING)")
    spark.sql(f"ALTER TABLE lake.{namespace}.t ADD CONSTRAINT k PRIMARY KEY (a)")
    assert lake.load_table((namespace, "t")).key == ("a",)


@pytest.mark.parametrize(
    "name", every(3, ["dot.ted", "with space", "ünï ☃", "back`tick", "quo'te", 'dou"ble', "a%20b", "UPPER", "123"])
)
def test_unusual_table_and_column_names(spark: SparkSession, lake: Catalog, namespace: str, name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    spark.sql(f"CREATE TABLE lake.{namespace}.{quoted} ({quoted} INT, v STRING)")
    assert name in names(spark, f"SHOW TABLES IN lake.{namespace}", "tableName")
    table = lake.load_table((namespace, name))
    table.append(pa.table({name: pa.array([1, 2], pa.int32()), "v": ["x", "y"]}))
    found = spark.sql(f"SELECT {quoted}, v, _file FROM lake.{namespace}.{quoted} WHERE {quoted} = 2").collect()
    assert [(row[0], row.v) for row in found] == [(2, "y")]
    spark.sql(f"DROP TABLE lake.{namespace}.{quoted}")


@pytest.mark.parametrize("name", every(2, ["", " ", "..", "."]))
def test_empty_table_name_is_rejected(spark: SparkSession, lake: Catalog, namespace: str, name: str) -> None:
    with pytest.raises(AnalysisException, match="part of the name is empty"):
        spark.sql(f"CREATE TABLE lake.{namespace}.`{name}` (a INT)")
    with pytest.raises(AnalysisException, match="part of the name is empty"):
        spark.sql(f"CREATE TABLE lake.{namespace}.`{name}` AS SELECT 1 a")
    assert lake.list_tables(namespace) == []


@pytest.mark.parametrize("name", every(4, ["a b", "it's", 'a"b', "select", "a`b", "ünï", "a/b"]))
def test_statements_on_unusual_names(spark: SparkSession, lake: Catalog, namespace: str, name: str) -> None:
    quoted = f"lake.{namespace}.`{name.replace('`', '``')}`"
    spark.sql(f"CREATE TABLE {quoted} (`x.y` INT, `a``b` STRING, PRIMARY KEY (`x.y`)) PARTITIONED BY (`a``b`)")
    spark.sql(f"INSERT INTO {quoted} VALUES (1, 'p'), (2, 'q'), (3, 'q')")
    spark.sql(f"DELETE FROM {quoted} WHERE `x.y` = 2")
    spark.sql(f"UPDATE {quoted} SET `a``b` = 'r' WHERE `a``b` = 'q'")
    assert sorted(map(tuple, spark.sql(f"SELECT * FROM {quoted} WHERE `x.y` > 0").collect())) == [(1, "p"), (3, "r")]
    assert spark.sql(f"SELECT count(*) FROM {quoted}.snapshots").collect()[0][0] == 3
    assert lake.load_table((namespace, name)).scan().count() == 2


def test_using_another_format_is_rejected(spark: SparkSession, namespace: str) -> None:
    with pytest.raises(AnalysisException, match="USING delta: tables of this catalog are Iceberg tables") as caught:
        spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT) USING delta")
    assert caught.value.getCondition() == "TABLEFORMAT_INVALID_ARGUMENT"
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT) USING iceberg")


def test_table_provider_is_the_one_in_using(spark: SparkSession, namespace: str) -> None:
    """SQ-9: dbt-spark takes only tables with the provider iceberg for tables that MERGE INTO can change."""
    name = f"lake.{namespace}.t"

    def provider(of: str) -> str:
        described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {of}").collect()}
        assert f"USING {described['Provider']}" in spark.sql(f"SHOW CREATE TABLE {of}").collect()[0][0]
        assert "provider" not in {row[0] for row in spark.sql(f"SHOW TBLPROPERTIES {of}").collect()}
        return str(described["Provider"])

    spark.sql(f"CREATE TABLE {name} (a INT) USING iceberg")
    assert provider(name) == "iceberg"
    spark.sql(f"CREATE TABLE {name}_like LIKE {name}")
    assert provider(f"{name}_like") == "iceberg"
    spark.sql(f"REPLACE TABLE {name} AS SELECT 1 AS a")
    assert provider(name) == "tableformat"
    spark.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 2 AS a")
    assert provider(name) == "iceberg"


@pytest.mark.parametrize("name", ["x/../../../outside", "..", "/outside", "a\x01b"])
def test_names_cannot_escape_the_warehouse_directory(
    spark: SparkSession, lake: Catalog, namespace: str, warehouse: Path, name: str
) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    before = set(warehouse.parent.rglob("*"))
    for statement in (
        f"CREATE TABLE lake.{namespace}.`{name}` (a INT)",
        f"CREATE TABLE lake.{namespace}.`{name}` AS SELECT 1 AS a",
        f"CREATE NAMESPACE lake.`{name}`",
        f"ALTER TABLE lake.{namespace}.t RENAME TO {namespace}.`{name}`",
        f"ALTER TABLE lake.{namespace}.t CREATE BRANCH `a\x01b`",
    ):
        with pytest.raises(
            Exception, match=r"to another directory|part of the name is empty|is not allowed in a name|PARSE_SYNTAX"
        ):
            spark.sql(statement)
    after = set(warehouse.parent.rglob("*"))
    assert {path for path in after - before if "catalog.db" not in path.name} == set()
    assert lake.list_tables(namespace) == [f"{namespace}.t"]


def test_purge_keeps_files_outside_the_table(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """MT-53"""
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT)")
    spark.sql(f"INSERT INTO lake.{namespace}.t VALUES (1)")
    victim = tmp_path / "precious.txt"
    victim.write_text("mine")
    table = lake.load_table((namespace, "t"))
    snapshot_id = table.snapshot_id
    assert snapshot_id is not None
    with table.iceberg.update_statistics() as update:
        update.set_statistics(
            StatisticsFile.model_validate(
                {
                    "snapshot-id": snapshot_id,
                    "statistics-path": f"file://{victim}",
                    "file-size-in-bytes": 4,
                    "file-footer-size-in-bytes": 4,
                    "blob-metadata": [],
                }
            )
        )
    spark.sql(f"DROP TABLE lake.{namespace}.t PURGE")
    assert victim.read_text() == "mine"
    assert not lake.table_exists((namespace, "t"))


def test_table_of_another_lake_is_read_only(spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path) -> None:
    """CP-25"""
    with open_catalog(str(tmp_path / "other")) as other:
        other.create_namespace("db")
        theirs = other.create_table("db.t", pa.schema([("a", pa.int64())]))
        theirs.append(pa.table({"a": [1, 2]}))
        lake.register_table((namespace, "t"), theirs.iceberg.metadata_location)
    before = set((tmp_path / "other" / "db").rglob("*"))
    assert spark.sql(f"SELECT count(*) FROM lake.{namespace}.t").collect()[0][0] == 2
    for statement in (
        f"INSERT INTO lake.{namespace}.t VALUES (3)",
        f"DELETE FROM lake.{namespace}.t WHERE a = 1",
        f"ALTER TABLE lake.{namespace}.t ADD COLUMN b INT",
        f"CALL lake.system.expire_snapshots(table => '{namespace}.t')",
        f"DROP TABLE lake.{namespace}.t PURGE",
    ):
        with pytest.raises(Exception, match="has its own catalog"):
            spark.sql(statement)
    assert set((tmp_path / "other" / "db").rglob("*")) == before
