"""INSERT INTO ... REPLACE USING and REPLACE ON: rows in the place of all that their prefixes held, in SQL."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from test_spark_replace_prefix import COLUMNS, rows, table

from tableformat import Table

__all__ = ["table"]

REPLACE_ON = pytest.mark.since_spark("4.3", "the grammar of REPLACE ON")
REPLACED = ["a1.0 old", "a1.1 old", "a2.5 new", "a2.6 new", "b1.0 old", "b1.1 old", "c9.0 new"]
"""The rows of `table` after the rows of `new_rows` have replaced those of their messages (id1, id2)."""


@pytest.fixture
def new_rows(spark: SparkSession) -> str:
    """A view of rows of the messages a2 and c9."""
    new = spark.createDataFrame([("a", 2, 5, "new"), ("c", 9, 0, "new"), ("a", 2, 6, "new")], COLUMNS)
    new.createOrReplaceTempView("new_rows")
    return "new_rows"


def range_delete_rows(table: Table) -> list[int]:
    deletes = table.refresh().inspect.delete_files()
    assert set(deletes["file_format"].to_pylist()) <= {"RANGE_DELETES_PARQUET"}
    return deletes["record_count"].to_pylist()


@pytest.mark.parametrize(
    "clause",
    [
        "REPLACE USING (id1, id2) SELECT * FROM {new}",
        "REPLACE USING (ID2, id1) SELECT * FROM {new}",
        "BY NAME REPLACE USING (id1, id2) SELECT v, n, id2, id1 FROM {new}",
        "REPLACE USING (id1, id2) WITH c AS (SELECT * FROM {new}) SELECT * FROM c",
        pytest.param("AS t REPLACE ON t.id1 = s.id1 AND s.id2 = t.id2 (SELECT * FROM {new}) AS s", marks=REPLACE_ON),
    ],
)
def test_messages_are_replaced_blindly(spark: SparkSession, table: Table, new_rows: str, clause: str) -> None:
    """SQ-31: one range delete; the rows of other messages stay."""
    spark.sql(f"INSERT INTO lake.{table.name} " + clause.format(new=new_rows))
    assert rows(spark, table) == REPLACED
    assert range_delete_rows(table) == [2]


def test_replacement_by_rows_of_the_table_itself(spark: SparkSession, table: Table) -> None:
    """SQ-31, ST-2."""
    name = f"lake.{table.name}"
    spark.sql(
        f"INSERT INTO {name} REPLACE USING (id1) SELECT id1, id2 + 10, n, 'moved' FROM {name} WHERE id1 = 'a' AND n = 0"
    )
    assert rows(spark, table) == ["a11.0 moved", "a12.0 moved", "b1.0 old", "b1.1 old"]


def test_no_rows_replace_nothing(spark: SparkSession, table: Table) -> None:
    """SQ-31: what the rows do not name stays; a DELETE says that a message is empty."""
    before = rows(spark, table)
    spark.sql(f"INSERT INTO lake.{table.name} REPLACE USING (id1, id2) SELECT * FROM lake.{table.name} WHERE false")
    assert rows(spark, table) == before


def test_explain_says_what_is_replaced(spark: SparkSession, table: Table, new_rows: str) -> None:
    """SQ-31."""
    statement = f"INSERT INTO lake.{table.name} REPLACE USING (id1, id2) SELECT * FROM {new_rows}"
    plan = spark.sql(f"EXPLAIN {statement}").collect()[0][0]
    assert f"TableFormatWrite(table=lake.{table.name}, mode=append, replacePrefix=id1,id2)" in plan
    assert "a2.5 new" not in rows(spark, table)


@pytest.mark.parametrize(
    ("clause", "instead"),
    [
        ("REPLACE USING (id2) SELECT * FROM {new}", "first columns of the key"),
        ("REPLACE USING (id1, v) SELECT * FROM {new}", "MERGE INTO"),
        ("REPLACE USING (id1, nothing) SELECT * FROM {new}", "first columns of the key"),
        *(
            pytest.param(f"AS t REPLACE ON {condition} (SELECT * FROM {{new}}) AS s", instead, marks=REPLACE_ON)
            for condition, instead in (
                ("t.id2 = s.id2", "first columns of the key"),
                ("t.id1 > s.id1", "MERGE INTO"),
                ("t.id1 = 'a'", "REPLACE WHERE"),
                ("t.id1 = s.v", "MERGE INTO"),
                ("t.id1 = s.id1 OR t.id2 = s.id2", "MERGE INTO"),
            )
        ),
    ],
)
def test_what_is_not_a_prefix_of_the_key_is_refused(
    spark: SparkSession, table: Table, new_rows: str, clause: str, instead: str
) -> None:
    """SQ-31: nothing is changed, and the error names the statement to use."""
    before = table.refresh().snapshot_id
    with pytest.raises(AnalysisException, match=instead) as error:
        spark.sql(f"INSERT INTO lake.{table.name} " + clause.format(new=new_rows))
    assert error.value.getCondition() == "TABLEFORMAT_UNSUPPORTED"
    assert table.refresh().snapshot_id == before
