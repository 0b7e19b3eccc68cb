"""Statements that are either correct or rejected: deep conditions, warehouse URIs, similar names, newer snapshots."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from session_settings import settings

from spark_ext import attach
from tableformat import Catalog, Table, open_catalog

NUMBERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
ALIKE = pa.schema([pa.field("id", pa.int64(), nullable=False), ("Id", pa.int64()), ("s", pa.string())])
LOOKS_AT_CASE = {"spark.sql.caseSensitive": "true"}


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """1, 10 and 2, 20."""
    table = lake.create_table((namespace, "t"), NUMBERS, key=["id"])
    table.append(pa.table({"id": [1, 2], "v": [10, 20]}, schema=NUMBERS))
    return table


@pytest.fixture
def alike(lake: Catalog, namespace: str) -> Table:
    """Each of `id` and `Id` has a value that the other has in another row."""
    table = lake.create_table((namespace, "alike"), ALIKE, key=["id"])
    table.append(pa.table({"id": [1, 2, 3], "Id": [3, 1, 2], "s": ["a", "b", "c"]}, schema=ALIKE))
    return table


def rows(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


# -- long and deep conditions


def test_deeply_nested_condition_is_evaluated_on_rows(spark: SparkSession, table: Table) -> None:
    """SP-100: Spark's parser fails at a depth that depends on the stack size of the thread."""
    condition = "id > 1"
    for number in range(100, 430):
        condition = f"({condition} AND v <> {number})" if number % 2 else f"({condition} OR v = {number})"
    try:
        spark.sql(f"DELETE FROM lake.{table.name} WHERE {condition}")
        assert rows(table) == [(1, 10)]
    except ParseException:
        assert rows(table) == [(1, 10), (2, 20)]


# -- warehouses as URIs


def test_warehouse_may_be_a_uri(spark: SparkSession, tmp_path: Path) -> None:
    attach(spark, catalog="uri", warehouse=f"file:{tmp_path}/la ke")
    spark.sql("CREATE NAMESPACE uri.db")
    with open_catalog(tmp_path / "la ke") as opened:
        assert opened.list_namespaces() == ["db"]


# -- columns whose names differ only in case


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("INSERT INTO {} (s, Id, id) VALUES ('d', 5, 4)", [(1, 3, "a"), (2, 1, "b"), (3, 2, "c"), (4, 5, "d")]),
        ("UPDATE {} SET Id = 9 WHERE id = 1", [(1, 9, "a"), (2, 1, "b"), (3, 2, "c")]),
        ("DELETE FROM {} WHERE Id = 1", [(1, 3, "a"), (3, 2, "c")]),
        ("DELETE FROM {} WHERE id + Id = 5", [(1, 3, "a"), (2, 1, "b")]),
        (
            "MERGE INTO {} t USING (SELECT 1L AS k) u ON t.Id = u.k WHEN MATCHED THEN UPDATE SET s = 'z'",
            [(1, 3, "a"), (2, 1, "z"), (3, 2, "c")],
        ),
    ],
)
def test_changes_of_columns_that_differ_only_in_case(
    spark: SparkSession, alike: Table, statement: str, after: list[tuple[object, ...]]
) -> None:
    """SP-63: correct if the session is case-sensitive, and rejected otherwise."""
    before, statement = rows(alike), statement.format(f"lake.{alike.name}")
    with pytest.raises(AnalysisException, match=r"AMBIGUOUS_REFERENCE|COLUMN_ALREADY_EXISTS|UNRESOLVED_COLUMN"):
        spark.sql(statement)
    assert rows(alike) == before
    with settings(spark, LOOKS_AT_CASE):
        spark.sql(statement)
    assert rows(alike) == after


def test_struct_fields_that_differ_only_in_case(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("st", pa.struct([("x", pa.int64()), ("X", pa.int64())]))])
    table = lake.create_table((namespace, "st"), schema)
    table.append(pa.table({"id": [1, 2], "st": [{"x": 1, "X": 2}, {"x": 2, "X": 1}]}, schema=schema))
    name = f"lake.{table.name}"
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        spark.sql(f"DELETE FROM {name} WHERE st.X = 1")
    with settings(spark, LOOKS_AT_CASE):
        assert [row.id for row in spark.sql(f"SELECT id FROM {name} WHERE st.X = 1").collect()] == [2]
        spark.sql(f"UPDATE {name} SET st.x = 7 WHERE st.X = 1")
    assert rows(table) == [(1, {"x": 1, "X": 2}), (2, {"x": 7, "X": 1})]


# -- states that another process made


def test_newer_snapshots_and_refs_are_found(spark: SparkSession, warehouse: Path, table: Table) -> None:
    """ST-5, ST-6."""
    assert spark.table(f"lake.{table.name}").count() == 2
    with open_catalog(str(warehouse)) as other:
        newer = other.load_table(table.name)
        newer.append(pa.table({"id": [3], "v": [30]}, schema=NUMBERS))
        newer.create_tag("later")
        newer.create_branch("side")
        snapshot = newer.view.snapshot
    assert snapshot is not None
    name = f"lake.{table.name}"
    for read in (f"{name} VERSION AS OF {snapshot.snapshot_id}", f"{name}.tag_later", f"{name}.branch_side"):
        assert spark.sql(f"SELECT count(*) AS n FROM {read}").collect()[0].n == 3
    assert spark.read.option("tag", "later").table(name).count() == 3


# -- partition fields that have the name of a column


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {}_new (ts TIMESTAMP, ts_day INT) PARTITIONED BY (days(ts))",
        "REPLACE TABLE {} (ts TIMESTAMP, ts_day INT) PARTITIONED BY (days(ts))",
        "CREATE OR REPLACE TABLE {} PARTITIONED BY (days(ts)) AS SELECT current_timestamp() AS ts, 1 AS ts_day",
        "ALTER TABLE {} ADD PARTITION FIELD days(ts)",
    ],
)
def test_partition_field_named_like_a_column(
    spark: SparkSession, lake: Catalog, namespace: str, statement: str
) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (ts TIMESTAMP, ts_day INT)")
    with pytest.raises(AnalysisException, match="ts_day_part"):
        spark.sql(statement.format(f"lake.{namespace}.t"))
    assert lake.list_tables(namespace) == [f"{namespace}.t"]
    assert lake.load_table((namespace, "t")).metadata.spec().is_unpartitioned()
