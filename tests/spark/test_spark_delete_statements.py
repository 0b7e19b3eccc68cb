"""DELETE and TRUNCATE: blind for a predicate on the key or a range, whole files if all their rows match, or by
position."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [pa.field("id1", pa.string(), nullable=False), pa.field("id2", pa.int64(), nullable=False), ("v", pa.float64())]
)


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Twelve rows in two files: a1..a6 and b1..b6."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id1", "id2"])
    for letter in "ab":
        created.append(pa.table({"id1": [letter] * 6, "id2": np.arange(1, 7), "v": np.arange(6) / 2}, schema=SCHEMA))
    return created


def rows(spark: SparkSession, table: Table) -> list[str]:
    """The keys that Spark returns, after checking that Python returns the same."""
    found = sorted(f"{row.id1}{row.id2}" for row in spark.table(f"lake.{table.name}").collect())
    assert found == sorted(f"{r['id1']}{r['id2']}" for r in table.refresh().scan().to_arrow().to_pylist())
    return found


def deletes(table: Table) -> list[tuple[int, str]]:
    """Content and format of the live delete files."""
    found = table.refresh().inspect.delete_files()
    return list(zip(found["content"].to_pylist(), found["file_format"].to_pylist(), strict=True))


ALL = [f"{letter}{n}" for letter in "ab" for n in range(1, 7)]


RANGE = (2, "RANGE_DELETES_PARQUET")


EQUALITY = (2, "PARQUET")


POSITION = (1, "PARQUET")


@pytest.mark.parametrize(
    ("where", "kind", "gone"),
    [
        ("id1 = 'a'", None, ["a1", "a2", "a3", "a4", "a5", "a6"]),
        ("id1 = 'a' AND id2 = 3", RANGE, ["a3"]),
        ("id1 = 'a' AND id2 IN (3, 5)", RANGE, ["a3", "a5"]),
        ("id1 = 'a' AND id2 >= 3 AND id2 < 5", RANGE, ["a3", "a4"]),
        ("id1 = 'a' AND id2 BETWEEN 5 AND 50", RANGE, ["a5", "a6"]),
        ("id1 > 'a'", None, ["b1", "b2", "b3", "b4", "b5", "b6"]),
        ("(id1 = 'a' AND id2 = 1) OR (id1 = 'b' AND id2 = 2)", RANGE, ["a1", "b2"]),
        ("id2 = 4", EQUALITY, ["a4", "b4"]),
        ("id2 IN (1, 6)", EQUALITY, ["a1", "a6", "b1", "b6"]),
        ("v = 1.5", POSITION, ["a4", "b4"]),
        ("id2 % 3 = 0", POSITION, ["a3", "a6", "b3", "b6"]),
        ("id1 = 'a' AND v < 1", POSITION, ["a1", "a2"]),
        ("concat(id1, id2) IN (SELECT k FROM VALUES ('b5') AS t(k))", POSITION, ["b5"]),
    ],
)
def test_delete_form_depends_on_the_predicate(
    spark: SparkSession, table: Table, where: str, kind: tuple[int, str] | None, gone: list[str]
) -> None:
    """SP-5, RD-5, DA-2, DA-1, RP-17: one delete file each, or none if a whole file is removed (`None`). The same rows
    are deleted for every reader."""
    spark.sql(f"DELETE FROM lake.{table.name} WHERE {where}")
    assert rows(spark, table) == [key for key in ALL if key not in gone]
    assert set(deletes(table)) == ({kind} if kind else set())
    if kind in (RANGE, EQUALITY):
        assert len(deletes(table)) == 1


def test_delete_of_all_rows_removes_the_files(spark: SparkSession, table: Table) -> None:
    spark.sql(f"DELETE FROM lake.{table.name}")
    assert rows(spark, table) == []
    assert deletes(table) == []


def test_truncate(spark: SparkSession, table: Table) -> None:
    spark.sql(f"DELETE FROM lake.{table.name} WHERE id1 = 'a'")
    spark.sql(f"TRUNCATE TABLE lake.{table.name}")
    assert rows(spark, table) == []


def test_delete_of_whole_partitions_removes_their_files(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.p (id BIGINT NOT NULL, ts TIMESTAMP) PARTITIONED BY (days(ts))")
    spark.sql(f"INSERT INTO lake.{namespace}.p SELECT id, timestamp_seconds(id * 43200) FROM range(8)")
    table = lake.load_table((namespace, "p"))
    spark.sql(f"DELETE FROM lake.{table.name} WHERE ts < TIMESTAMP '1970-01-03 00:00:00'")
    assert sorted(row.id for row in spark.table(f"lake.{table.name}").collect()) == [4, 5, 6, 7]
    assert deletes(table) == []


def test_position_deletes_of_many_tasks_are_combined(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "big"), SCHEMA, key=["id1", "id2"])
    spark.range(60_000).selectExpr("concat('k', id % 5) id1", "id id2", "double(id % 11) v").repartition(3).writeTo(
        f"lake.{table.name}"
    ).append()
    spark.sql(f"DELETE FROM lake.{table.name} WHERE v = 3")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE id1 = 'k2'")
    spark.sql(f"DELETE FROM lake.{table.name} WHERE v = 7 AND id2 % 2 = 0")
    expected = [n for n in range(60_000) if n % 11 != 3 and n % 5 != 2 and not (n % 11 == 7 and n % 2 == 0)]
    found = spark.sql(f"SELECT count(*) n, sum(id2) s FROM lake.{table.name} WHERE id2 >= 0").collect()[0]
    assert (found.n, found.s) == (len(expected), sum(expected))
    assert sorted(table.refresh().scan().to_arrow()["id2"].to_pylist()) == expected


def test_delete_in_v3_writes_deletion_vectors(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """DA-7: in version 3 the rows are in deletion vectors."""
    table = lake.create_table((namespace, "v3"), SCHEMA, key=["id1", "id2"], properties={"format-version": "3"})
    spark.sql(f"INSERT INTO lake.{table.name} SELECT 'a', id, double(id) FROM range(10)")
    for v in (3, 4):
        spark.sql(f"DELETE FROM lake.{table.name} WHERE v = {v}")
    assert rows(spark, table) == [f"a{n}" for n in (0, 1, 2, 5, 6, 7, 8, 9)]
    assert {kind for _, kind in deletes(table)} == {"PUFFIN"}


def test_delete_from_time_travel_is_rejected(spark: SparkSession, table: Table) -> None:
    with pytest.raises(AnalysisException):
        spark.sql(f"DELETE FROM lake.{table.name} VERSION AS OF {table.snapshot_id} WHERE id1 = 'a'")
    assert rows(spark, table) == ALL
