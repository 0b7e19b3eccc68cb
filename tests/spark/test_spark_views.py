"""Iceberg views in the catalog, through Spark's own statements (docs/reference/spark-sql.md)."""

from __future__ import annotations

from decimal import Decimal
from importlib.metadata import version

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from tableformat import Catalog

NO_COMMENT = None if tuple(int(part) for part in version("pyspark").split(".")[:2]) >= (4, 2) else ""


"""DESCRIBE's comment for a view column without one. Before Spark 4.2 our statements implement views, with Iceberg's
texts."""


@pytest.fixture
def db(spark: SparkSession, namespace: str) -> str:
    """A namespace with the table `t` of ids 1 and 2."""
    name = f"lake.{namespace}"
    spark.sql(f"CREATE TABLE {name}.t (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name}.t VALUES (1, 'a'), (2, 'b')")
    return name


def rows(spark: SparkSession, query: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


def refused(spark: SparkSession, statement: str, match: str) -> None:
    with pytest.raises((AnalysisException, ParseException), match=match):
        spark.sql(statement)


def test_view_names_resolve_in_its_creation_namespace(spark: SparkSession, lake: Catalog, db: str) -> None:
    """SQ-26: names in its query are resolved in the catalog and namespace in which it was created, in every later
    session."""
    namespace = db.removeprefix("lake.")
    spark.sql(f"USE {db}")
    try:
        spark.sql("CREATE VIEW v (n COMMENT 'the id', w) COMMENT 'c' TBLPROPERTIES ('k' = '1') AS SELECT id, v FROM t")
        spark.sql(
            "CREATE VIEW `x,y` AS WITH m AS (SELECT max(id) AS m FROM t) SELECT v AS `a,b`, id FROM t, m WHERE id = m"
        )
    finally:
        spark.sql("USE spark_catalog.default")
    assert rows(spark, f"SELECT * FROM {db}.v ORDER BY n DESC") == [(2, "b"), (1, "a")]
    assert rows(spark.newSession(), f"SELECT * FROM {db}.`x,y`") == [("b", 2)]
    assert rows(spark, f"DESCRIBE {db}.v") == [("n", "bigint", "the id"), ("w", "string", NO_COMMENT)]
    assert ("k", "1") in rows(spark, f"SHOW TBLPROPERTIES {db}.v")
    (created,) = rows(spark, f"SHOW CREATE TABLE {db}.v")
    spark.sql(f"DROP VIEW {db}.v")
    spark.sql(f"USE {db}")
    try:
        spark.sql(str(created[0]))
    finally:
        spark.sql("USE spark_catalog.default")
    assert rows(spark, f"SHOW CREATE TABLE {db}.v") == [created]
    shown = [view for view in rows(spark, f"SHOW VIEWS IN {db}") if not view[2]]
    assert shown == [(namespace, "v", False), (namespace, "x,y", False)], "some versions show temporary ones as well"
    assert rows(spark, f"SHOW VIEWS IN {db} LIKE 'v*'") == [(namespace, "v", False)]
    assert lake.list_views(namespace) == [f"{namespace}.v", f"{namespace}.x,y"]
    view = lake.views.load((namespace, "v"))
    assert view is not None
    version = view.current_version()
    assert version.default_catalog is None
    assert version.default_namespace == (namespace,)
    assert view.properties == {"comment": "c", "k": "1", "spark.query-column-names": "id,v"}
    assert (version.summary["engine-name"], version.summary["engine-version"]) == ("spark", spark.version)


def test_view_keeps_creation_settings_and_columns(spark: SparkSession, db: str) -> None:
    """SQ-26: under the settings of SQL that it was made under, and by the columns that there were."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        spark.sql(f"CREATE VIEW {db}.v AS SELECT *, CAST('x' AS INT) AS nothing FROM {db}.t WHERE id = 1")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    spark.sql(f"CREATE NAMESPACE {db}.beside")
    spark.sql(f"USE {db}.beside")
    try:
        spark.sql(f"CREATE VIEW inner_view (a, b) AS SELECT id, id FROM {db}.t WHERE id = 2")
        spark.sql("CREATE VIEW outer_view AS SELECT * FROM inner_view")
    finally:
        spark.sql("USE spark_catalog.default")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW inner_view AS SELECT 'of the session' AS a")
    assert rows(spark, f"SELECT * FROM {db}.beside.outer_view") == [(2, 2)]
    spark.sql("DROP VIEW inner_view")
    spark.sql(f"ALTER TABLE {db}.t ADD COLUMN later INT")
    assert rows(spark, f"SELECT * FROM {db}.v") == [(1, "a", None)]
    spark.sql(f"CREATE VIEW {db}.nested AS SELECT named_struct('a', array(1.5)) AS s, map('k', id) AS m FROM {db}.v")
    (row,) = spark.table(f"{db}.nested").collect()
    assert row.asDict(recursive=True) == {"s": {"a": [Decimal("1.5")]}, "m": {"k": 1}}


def test_catalog_view_with_name_of_a_temporary_view(spark: SparkSession, db: str) -> None:
    """SQ-26: before Spark 4.2 a temporary view of the name made CREATE VIEW a statement of the session catalog."""
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW beside AS SELECT 'of the session' AS a")
    spark.sql(f"USE {db}")
    try:
        spark.sql("CREATE VIEW beside AS SELECT id FROM t WHERE id = 1")
        assert rows(spark, "SELECT * FROM beside") == [("of the session",)]
        assert rows(spark, f"SELECT * FROM {db}.beside") == [(1,)]
        spark.sql("DROP VIEW beside")
        assert rows(spark, "SELECT * FROM beside") == [(1,)]
    finally:
        spark.sql("DROP VIEW IF EXISTS beside")
        spark.sql("USE spark_catalog.default")


def test_replace_alter_rename_and_drop_view(spark: SparkSession, lake: Catalog, db: str) -> None:
    """SQ-27."""
    namespace = db.removeprefix("lake.")
    spark.sql(f"CREATE VIEW {db}.v AS SELECT id FROM {db}.t")
    spark.sql(f"CREATE VIEW IF NOT EXISTS {db}.v AS SELECT 7 AS seven")
    spark.sql(f"CREATE OR REPLACE VIEW {db}.v COMMENT 'c' AS SELECT v, id FROM {db}.t WHERE id = 1")
    assert rows(spark, f"SELECT * FROM {db}.v") == [("a", 1)]
    spark.sql(f"ALTER VIEW {db}.v SET TBLPROPERTIES ('k' = '1', 'l' = '2')")
    spark.sql(f"ALTER VIEW {db}.v UNSET TBLPROPERTIES ('l')")
    shown = dict(rows(spark, f"SHOW TBLPROPERTIES {db}.v"))
    assert (shown["k"], "l" in shown) == ("1", False)
    view = lake.views.load((namespace, "v"))
    assert view is not None
    assert [each.version_id for each in view.history()] == [1, 2], "properties are no version of the query"
    spark.sql(f"ALTER VIEW {db}.v AS SELECT id + 10 AS id FROM {db}.t WHERE id = 2")
    spark.sql(f"ALTER VIEW {db}.v RENAME TO {db}.w")
    assert rows(spark, f"SELECT id FROM {db}.w") == [(12,)]
    assert rows(spark, f"SHOW TBLPROPERTIES {db}.w ('k')") == [("k", "1")]
    spark.sql(f"DROP VIEW {db}.w")
    spark.sql(f"DROP VIEW IF EXISTS {db}.w")
    refused(spark, f"DROP VIEW {db}.w", "NOT_FOUND")
    refused(spark, f"SELECT * FROM {db}.w", "TABLE_OR_VIEW_NOT_FOUND")
    spark.sql(f"CREATE VIEW {db}.v AS SELECT 1 AS one")
    spark.sql(f"DROP NAMESPACE {db} CASCADE")
    assert not lake.namespace_exists(namespace)


def test_invalid_view_statements_are_rejected(spark: SparkSession, db: str) -> None:
    """SQ-26, SQ-28."""
    spark.sql(f"CREATE VIEW {db}.v AS SELECT id FROM {db}.t")
    spark.sql(f"CREATE VIEW {db}.w AS SELECT * FROM {db}.v")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW of_the_session AS SELECT 1 AS a")
    for statement, match in (
        (f"CREATE VIEW {db}.v AS SELECT 1 AS a", "ALREADY_EXISTS"),
        (f"CREATE VIEW {db}.t AS SELECT 1 AS a", "ALREADY_EXISTS"),
        (f"CREATE OR REPLACE VIEW {db}.t AS SELECT 1 AS a", "EXPECT_VIEW_NOT_TABLE|ALREADY_EXISTS"),
        (f"CREATE TABLE {db}.v (a INT)", "ALREADY_EXISTS"),
        (f"CREATE TABLE {db}.v AS SELECT 1 AS a", "ALREADY_EXISTS"),
        (f"ALTER TABLE {db}.t RENAME TO {db}.v", "ALREADY_EXISTS"),
        (f"ALTER VIEW {db}.v RENAME TO {db}.t", "ALREADY_EXISTS"),
        (f"CREATE OR REPLACE VIEW {db}.v AS SELECT * FROM {db}.w", "RECURSIVE_VIEW|to itself"),
        (f"CREATE VIEW {db}.x AS SELECT * FROM of_the_session", "TEMP"),
        (
            f"CREATE VIEW {db}.x AS SELECT parse_json('1') AS j",
            "view.j.*do not support Spark's type variant|UNRESOLVED_ROUTINE",
        ),
        ("CREATE VIEW lake.nowhere.x AS SELECT 1 AS a", "SCHEMA_NOT_FOUND"),
        (f"ALTER VIEW {db}.v SET TBLPROPERTIES ('format-version' = '2')", "format-version"),
        (f"ALTER VIEW {db}.v SET TBLPROPERTIES ('spark.query-column-names' = 'x')", "query-column-names"),
        (f"INSERT INTO {db}.v VALUES (1)", "v"),
        (f"DELETE FROM {db}.v", "v"),
        (f"UPDATE {db}.v SET id = 7", "v"),
        (f"MERGE INTO {db}.v AS x USING {db}.t AS s ON x.id = s.id WHEN MATCHED THEN DELETE", "v"),
        (f"DROP TABLE {db}.v", "v"),
        (f"DROP VIEW {db}.t", "t"),
        (f"DROP NAMESPACE {db}", "views"),
    ):
        refused(spark, statement, match)
    assert rows(spark, f"SELECT * FROM {db}.w ORDER BY id") == [(1,), (2,)]


def test_view_without_namespace_is_rejected(spark: SparkSession, db: str) -> None:
    """SQ-26: the catalog root cannot have a view, and the error says so."""
    assert [row.viewName for row in spark.sql("SHOW VIEWS IN lake").collect() if not row.isTemporary] == []
    for statement in ("CREATE VIEW lake.v AS SELECT 1 a", "CREATE OR REPLACE VIEW lake.v AS SELECT 1 a"):
        with pytest.raises(AnalysisException, match=r"is not the name of a view: write 'lake\.db\.v'"):
            spark.sql(statement)


@pytest.mark.parametrize("verb", ["ALTER", "CREATE OR REPLACE"])
def test_recursive_view_through_subquery_is_rejected(spark: SparkSession, db: str, verb: str) -> None:
    """SQ-28."""
    if spark.version.startswith("4.2"):
        pytest.skip("Spark 4.2 looks for views that lead back to themselves outside of subqueries alone")
    spark.sql(f"CREATE VIEW {db}.v AS SELECT id FROM {db}.t")
    spark.sql(f"CREATE VIEW {db}.w AS SELECT * FROM {db}.v")
    statement = f"{verb} VIEW {db}.v AS SELECT * FROM {db}.t WHERE id IN (SELECT id FROM {db}.w)"
    refused(spark, statement, "RECURSIVE_VIEW|to itself")
