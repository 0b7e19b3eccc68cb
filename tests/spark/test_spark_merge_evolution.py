"""MERGE and UPDATE within structs, and MERGE that changes the columns of the table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    """Rows 1 and 2 with a struct, a list and a map each."""
    spark.sql(f"""
        CREATE TABLE lake.{namespace}.t
        (id INT NOT NULL, s STRUCT<a: INT, n: STRUCT<b: STRING>>, l ARRAY<INT>, m MAP<STRING, INT>, PRIMARY KEY (id))
    """)
    spark.sql(f"""
        INSERT INTO lake.{namespace}.t
        SELECT /*+ COALESCE(1) */ id, named_struct('a', id * 10, 'n', named_struct('b', 'x')), array(id),
               map('k', id) FROM VALUES (1), (2) AS v(id)
    """)
    return lake.load_table((namespace, "t"))


def rows(spark: SparkSession, table: Table) -> list[dict[str, object]]:
    """The rows that Spark reads, after checking that Python reads the same."""
    found = [row.asDict(recursive=True) for row in spark.table(f"lake.{table.name}").orderBy("id").collect()]
    read = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert found == [{**row, "m": None if row["m"] is None else dict(row["m"])} for row in read]
    return found


def test_update_struct_fields(spark: SparkSession, table: Table) -> None:
    spark.sql(f"UPDATE lake.{table.name} SET s.a = s.a + 1, s.n.b = 'y' WHERE id = 2")
    spark.sql(f"UPDATE lake.{table.name} SET m = map('new', 5), l = array() WHERE s.n.b = 'y'")
    assert rows(spark, table) == [
        {"id": 1, "s": {"a": 10, "n": {"b": "x"}}, "l": [1], "m": {"k": 1}},
        {"id": 2, "s": {"a": 21, "n": {"b": "y"}}, "l": [], "m": {"new": 5}},
    ]


def test_merge_struct_fields(spark: SparkSession, table: Table) -> None:
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT explode(array(1, 3)) id) s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET t.s.n.b = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, named_struct('a', 0, 'n', named_struct('b', 'new')))
        WHEN NOT MATCHED BY SOURCE AND t.s.a = 20 THEN UPDATE SET t.s.a = NULL
    """)
    assert [(row["id"], row["s"], row["l"]) for row in rows(spark, table)] == [
        (1, {"a": 10, "n": {"b": "merged"}}, [1]),
        (2, {"a": None, "n": {"b": "x"}}, [2]),
        (3, {"a": 0, "n": {"b": "new"}}, None),
    ]


@pytest.mark.since_spark("4.1", "MERGE WITH SCHEMA EVOLUTION")
def test_merge_adds_columns_at_every_depth(spark: SparkSession, table: Table) -> None:
    spark.sql(f"""
        MERGE WITH SCHEMA EVOLUTION INTO lake.{table.name} t
        USING (SELECT id, named_struct('a', 7, 'n', named_struct('b', 'z', 'c', 8L)) s,
                      array(9) l, map('q', 1) m, 'extra' e
               FROM VALUES (2), (3) AS v(id)) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    """)
    new = {"s": {"a": 7, "n": {"b": "z", "c": 8}}, "l": [9], "m": {"q": 1}, "e": "extra"}
    assert rows(spark, table) == [
        {"id": 1, "s": {"a": 10, "n": {"b": "x", "c": None}}, "l": [1], "m": {"k": 1}, "e": None},
        {"id": 2, **new},
        {"id": 3, **new},
    ]


@pytest.mark.before_spark("4.1", "MERGE WITH SCHEMA EVOLUTION changes tables")
def test_merge_without_schema_evolution_support_is_rejected(spark: SparkSession, table: Table) -> None:
    """SP-62: Spark 4.0 has the grammar and nothing behind it."""
    before = rows(spark, table)
    with pytest.raises(AnalysisException, match=r"needs Spark 4\.1 or newer|PARSE_SYNTAX_ERROR"):
        spark.sql(f"""
            MERGE WITH SCHEMA EVOLUTION INTO lake.{table.name} t
            USING (SELECT id, s, l, m, 'extra' e FROM lake.{table.name}) s
            ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
        """)
    assert rows(spark, table) == before


@pytest.mark.since_spark("4.0", "the grammar of MERGE WITH SCHEMA EVOLUTION")
@pytest.mark.before_spark("4.1", "MERGE WITH SCHEMA EVOLUTION changes tables")
def test_merge_schema_evolution_is_rejected_without_the_extension(java: None, tmp_path: Path) -> None:
    """SP-62: it was silent there."""
    done = subprocess.run(
        [sys.executable, "-c", _ATTACHED, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "needs Spark 4.1 or newer" in done.stdout
    assert "[Row(id=1, v=1)]" in done.stdout


_ATTACHED = """
import sys
from pyspark.sql import SparkSession
from spark_ext import attach
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = attach(builder.getOrCreate(), warehouse=sys.argv[1])
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.t AS SELECT 1 id, 1 v")
try:
    spark.sql("-- a note\\n MERGE /* and */ with SCHEMA evolution INTO lake.db.t t USING (SELECT 1 id, 2 v, 3 e) s "
              "ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
except Exception as error:
    print(error)
print(spark.table("lake.db.t").collect())
"""


@pytest.mark.since_spark("4.1", "MERGE WITH SCHEMA EVOLUTION")
def test_merge_widens_a_column(spark: SparkSession, table: Table) -> None:
    spark.sql(f"""
        MERGE WITH SCHEMA EVOLUTION INTO lake.{table.name} t
        USING (SELECT 2 id, named_struct('a', 5000000000L, 'n', named_struct('b', 'z')) s) s
        ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s
    """)
    assert [row["s"]["a"] for row in rows(spark, table)] == [10, 5_000_000_000]  # type: ignore[index]
    assert dict(spark.table(f"lake.{table.name}").dtypes)["s"] == "struct<a:bigint,n:struct<b:string>>"


def test_merge_reads_files_written_before_a_rename(spark: SparkSession, table: Table) -> None:
    """Old files have the old names and types."""
    spark.sql(f"ALTER TABLE lake.{table.name} RENAME COLUMN s.n.b TO text")
    spark.sql(f"ALTER TABLE lake.{table.name} ALTER COLUMN s.a TYPE BIGINT")
    spark.sql(f"ALTER TABLE lake.{table.name} ADD COLUMN first STRING FIRST")
    spark.sql(f"""
        MERGE INTO lake.{table.name} t USING (SELECT 1 id) s ON t.id = s.id
        WHEN MATCHED AND t.s.n.text = 'x' THEN UPDATE SET t.s.a = t.s.a + 5000000000, first = 'f'
    """)
    assert [(row["first"], row["id"], row["s"]) for row in rows(spark, table)] == [
        ("f", 1, {"a": 5_000_000_010, "n": {"text": "x"}}),
        (None, 2, {"a": 20, "n": {"text": "x"}}),
    ]
