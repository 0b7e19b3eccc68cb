"""INSERT INTO ... REPLACE USING and REPLACE ON: new rows replace all rows with the same prefixes, in SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from test_spark_replace_prefix import COLUMNS, rows, table

from tableformat import Catalog, Table

__all__ = ["table"]


REPLACE_ON = pytest.mark.since_spark("4.3", "the grammar of REPLACE ON")


REPLACED = ["a1.0 old", "a1.1 old", "a2.5 new", "a2.6 new", "b1.0 old", "b1.1 old", "c9.0 new"]


"""The rows of `table` after `new_rows` has replaced the rows of the same messages (id1, id2)."""


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
def test_replace_using_writes_a_blind_range_delete(
    spark: SparkSession, table: Table, new_rows: str, clause: str
) -> None:
    """SQ-31: one range delete; the rows of other messages stay."""
    spark.sql(f"INSERT INTO lake.{table.name} " + clause.format(new=new_rows))
    assert rows(spark, table) == REPLACED
    assert range_delete_rows(table) == [2]


def test_replace_using_rows_of_the_target_table(spark: SparkSession, table: Table) -> None:
    """SQ-31, ST-2."""
    name = f"lake.{table.name}"
    spark.sql(
        f"INSERT INTO {name} REPLACE USING (id1) SELECT id1, id2 + 10, n, 'moved' FROM {name} WHERE id1 = 'a' AND n = 0"
    )
    assert rows(spark, table) == ["a11.0 moved", "a12.0 moved", "b1.0 old", "b1.1 old"]


def test_explain_shows_the_replaced_prefix(spark: SparkSession, table: Table, new_rows: str) -> None:
    """SQ-31."""
    statement = f"INSERT INTO lake.{table.name} REPLACE USING (id1, id2) SELECT * FROM {new_rows}"
    plan = spark.sql(f"EXPLAIN {statement}").collect()[0][0]
    assert f"TableFormatWrite(table=lake.{table.name}, mode=append, replacePrefix=id1,id2)" in plan
    assert "a2.5 new" not in rows(spark, table)


@pytest.mark.parametrize(
    "clause",
    [
        "REPLACE USING (v) SELECT * FROM {new}",
        "REPLACE USING (V) SELECT * FROM {new}",
        pytest.param("AS t REPLACE ON t.v = s.v (SELECT * FROM {new}) AS s", marks=REPLACE_ON),
    ],
)
def test_replace_on_writes_a_blind_equality_delete(spark: SparkSession, table: Table, clause: str) -> None:
    """SQ-34: one equality delete; a null equals nothing."""
    new = spark.createDataFrame([("a", 2, 5, "old"), ("c", 9, 0, "new"), ("a", 2, 6, None)], COLUMNS)
    new.createOrReplaceTempView("equal_rows")
    spark.sql(f"INSERT INTO lake.{table.name} VALUES ('z', 1, 1, NULL), ('z', 2, 2, 'kept')")
    spark.sql(f"INSERT INTO lake.{table.name} " + clause.format(new="equal_rows"))
    assert rows(spark, table) == ["a2.5 old", "a2.6 None", "c9.0 new", "z1.1 None", "z2.2 kept"]
    deletes = table.refresh().inspect.delete_files()
    assert (deletes["content"].to_pylist(), deletes["record_count"].to_pylist()) == ([2], [2])
    assert len(table.history()) == 3


def test_replace_on_floating_point_column_is_rejected(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SQ-34, DA-5."""
    table = lake.create_table((namespace, "f"), pa.schema([("weight", pa.float64())]))
    with pytest.raises(AnalysisException, match="floating"):
        spark.sql(f"INSERT INTO lake.{table.name} REPLACE USING (weight) VALUES (1.5)")
    writer = spark.sql("SELECT 1.5D AS weight").writeTo(f"lake.{table.name}")
    both = writer.option("replace-equal", "weight").option("replace-prefix", "weight")
    with pytest.raises(AnalysisException, match="replace-equal and replace-prefix cannot be combined"):
        both.append()
    assert table.refresh().snapshot_id is None


@pytest.mark.parametrize(
    ("clause", "instead"),
    [
        ("REPLACE USING (id1, nothing) SELECT * FROM {new}", "no column nothing"),
        *(
            pytest.param(f"AS t REPLACE ON {condition} (SELECT * FROM {{new}}) AS s", instead, marks=REPLACE_ON)
            for condition, instead in (
                ("t.id1 > s.id1", "MERGE INTO"),
                ("t.id1 = 'a'", "REPLACE WHERE"),
                ("t.id1 = s.v", "MERGE INTO"),
                ("t.id1 = s.id1 OR t.id2 = s.id2", "MERGE INTO"),
            )
        ),
    ],
)
def test_unsupported_replace_conditions_are_rejected(
    spark: SparkSession, table: Table, new_rows: str, clause: str, instead: str
) -> None:
    """SQ-31, SQ-34: nothing is changed, and the error names the statement to use."""
    before = table.refresh().snapshot_id
    with pytest.raises(AnalysisException, match=instead) as error:
        spark.sql(f"INSERT INTO lake.{table.name} " + clause.format(new=new_rows))
    assert error.value.getCondition() in ("TABLEFORMAT_UNSUPPORTED", "TABLEFORMAT_INVALID_ARGUMENT")
    assert table.refresh().snapshot_id == before
