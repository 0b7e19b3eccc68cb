"""Statements of the SQL extension (specs/spark-sql.md): what Spark's own grammar lacks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from spark_ext.configure import SQL_EXTENSION_CLASS
from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Ids 1 and 2."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    return created


def refused(spark: SparkSession, statement: str, kind: type[Exception], match: str) -> None:
    with pytest.raises(kind, match=match):
        spark.sql(statement)


def test_branches_and_tags(spark: SparkSession, table: Table) -> None:
    """SQ-3."""
    name, first = f"lake.{table.name}", table.snapshot_id
    spark.sql(f"ALTER TABLE {name} CREATE TAG `the first` RETAIN 3 HOURS")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c')")
    spark.sql(
        f"alter table {name} create branch if not exists audit as of version {first} -- the first\n"
        "RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 90 MINUTES;"
    )
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH other WITH SNAPSHOT RETENTION 5 DAYS")
    found = {row.name: tuple(row)[2:] for row in spark.table(f"{name}.refs").collect()}
    assert found["the first"] == (first, 3 * 3_600_000, None, None)
    assert found["audit"] == (first, 7 * 86_400_000, 2, 90 * 60_000)
    assert found["other"] == (table.refresh().snapshot_id, None, None, 5 * 86_400_000)
    spark.sql(f"ALTER TABLE {name} CREATE OR REPLACE BRANCH audit")
    spark.sql(f"ALTER TABLE {name} REPLACE TAG `the first` AS OF VERSION {table.snapshot_id}")
    spark.sql(f"ALTER TABLE {name} DROP BRANCH IF EXISTS nowhere")
    spark.sql(f"ALTER TABLE {name} DROP BRANCH other")
    assert {row.name: row.snapshot_id for row in spark.table(f"{name}.refs").collect()} == dict.fromkeys(
        ("audit", "main", "the first"), table.snapshot_id
    )
    refused(spark, f"ALTER TABLE {name} DROP TAG nowhere", AnalysisException, "no tag 'nowhere'")
    refused(spark, f"ALTER TABLE {name} CREATE BRANCH audit", AnalysisException, "exists already")
    refused(spark, f"ALTER TABLE {name}x CREATE BRANCH b", AnalysisException, "TABLE_OR_VIEW_NOT_FOUND")


def test_errors_in_statements_of_ours_say_what_was_expected(spark: SparkSession, table: Table) -> None:
    """SQ-2."""
    name = f"lake.{table.name}"
    for clause, where, expected in (
        ("CREATE BRANCHE b", "'BRANCHE'", "BRANCH or TAG"),
        ("CREATE BRANCH", "end of input", "a name"),
        ("CREATE BRANCH b RETAIN 3 WEEKS", "'WEEKS'", "DAYS, HOURS or MINUTES"),
        ("CREATE BRANCH b WITH SNAPSHOT RETENTION 3", "end of input", "SNAPSHOTS, DAYS, HOURS or MINUTES"),
        ("CREATE TAG b AS OF VERSION 'x'", "''x''", "the id of a snapshot"),
        ("DROP TAG a b", "'b'", "the end of the statement"),
    ):
        refused(spark, f"ALTER TABLE {name} {clause}", ParseException, f"{where}: expected {expected}")
    with pytest.raises(ParseException) as caught:
        spark.sql(f"ALTER TABLE {name}\n  CREATE BRANCHE b")
    assert caught.value.getCondition() == "PARSE_SYNTAX_ERROR"
    assert "line 2, pos 9" in str(caught.value)
    assert table.refresh().metadata.refs.keys() == {"main"}


def test_other_statements_and_other_catalogs_are_for_the_next_parser(
    spark: SparkSession, table: Table, namespace: str
) -> None:
    """SQ-1: names in the current catalog are ours as well."""
    assert SQL_EXTENSION_CLASS in (spark.conf.get("spark.sql.extensions") or "")
    refused(spark, "ALTER TABLE spark_catalog.default.t CREATE BRANCH b", ParseException, r"near 'CREATE'\.")
    refused(spark, "ALTER TABLE t CREATE BRANCH b", ParseException, r"near 'CREATE'\.")
    refused(spark, f"ALTER TABLE lake.{namespace}.t MAKE BRANCH b", ParseException, r"near 'MAKE'\.")
    assert spark.sql("SELECT 'ALTER TABLE t CREATE BRANCH b' AS text").collect()[0].text.startswith("ALTER")
    spark.sql(f"USE lake.{namespace}")
    try:
        spark.sql("SET the.name = one")
        spark.sql("ALTER TABLE /* of ours /* really */ */ t CREATE BRANCH ${the.name}")
        spark.sql(f"ALTER TABLE {namespace}.t CREATE BRANCH `two words`")
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql("RESET the.name")
    assert table.refresh().metadata.refs.keys() == {"main", "one", "two words"}
