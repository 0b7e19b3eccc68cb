"""Branches, tags and snapshots by the names that Iceberg's Spark tables use, and writing to branches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    """Ids 1 and 2 on main, on the branch `audit` and at the tag `first`."""
    created = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    created.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=SCHEMA))
    created.create_branch("audit")
    created.create_tag("first")
    return created


def ids(spark: SparkSession, name: str) -> list[int]:
    return sorted(row.id for row in spark.table(name).collect())


def test_branch_is_written_by_name(spark: SparkSession, table: Table) -> None:
    """ST-5."""
    main, audit = f"lake.{table.name}", f"lake.{table.name}.branch_audit"
    spark.sql(f"INSERT INTO {audit} VALUES (3, 'c'), (4, 'd')")
    spark.sql(f"DELETE FROM {audit} WHERE id = 1")
    spark.sql(f"UPDATE {audit} SET v = 'x' WHERE v = 'b'")
    spark.sql(f"""
        MERGE INTO {audit} t USING (SELECT explode(array(4L, 5L)) id) s ON t.id = s.id
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')
    """)
    assert ids(spark, main) == ids(spark, f"{main}.tag_first") == [1, 2]
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {audit} ORDER BY id").collect()] == [
        (2, "x"),
        (3, "c"),
        (5, "new"),
    ]
    spark.sql(f"INSERT OVERWRITE {audit} SELECT id + 10, v FROM {main}")
    assert ids(spark, audit) == [11, 12]
    assert ids(spark, main) == [1, 2]


def test_branch_and_main_are_read_in_one_statement(spark: SparkSession, table: Table) -> None:
    """ST-2: reading another branch does not count as reading the branch that is written to."""
    spark.sql(f"INSERT INTO lake.{table.name}.branch_audit SELECT id + 2, v FROM lake.{table.name}")
    spark.sql(f"INSERT INTO lake.{table.name} SELECT id + 8, v FROM lake.{table.name}.branch_audit WHERE id > 2")
    assert ids(spark, f"lake.{table.name}.branch_audit") == [1, 2, 3, 4]
    assert ids(spark, f"lake.{table.name}") == [1, 2, 11, 12]


@pytest.mark.since_spark("4.2", "INSERT WITH SCHEMA EVOLUTION")
def test_schema_evolves_from_a_branch(spark: SparkSession, table: Table) -> None:
    """A table has one schema for all of its branches."""
    audit = f"lake.{table.name}.branch_audit"
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {audit} BY NAME SELECT 3L id, 'c' v, 7 w")
    assert sorted(tuple(row) for row in spark.sql(f"SELECT id, w FROM {audit} WHERE id > 1").collect()) == [
        (2, None),
        (3, 7),
    ]
    assert spark.table(f"lake.{table.name}").columns == ["id", "v", "w"]


def test_tags_and_snapshots_are_read_only(spark: SparkSession, table: Table) -> None:
    first = table.refresh().snapshot_id
    table.delete("id = 1")
    for state in ("tag_first", f"snapshot_id_{first}"):
        assert ids(spark, f"lake.{table.name}.{state}") == [1, 2]
        with pytest.raises(AnalysisException, match=r"BATCH_WRITE|APPEND|append in batch mode"):
            spark.sql(f"INSERT INTO lake.{table.name}.{state} VALUES (9, 'z')")


@pytest.mark.parametrize(
    ("state", "message"), [("branch_audi", "no branch 'audi'.*audit"), ("tag_x", "no tag 'x'.*first")]
)
def test_unknown_branch_tag_or_snapshot_raises_error(
    spark: SparkSession, table: Table, state: str, message: str
) -> None:
    """ST-5."""
    with pytest.raises(AnalysisException, match=message) as error:
        spark.sql(f"SELECT * FROM lake.{table.name}.{state}")
    assert error.value.getCondition() == "TABLEFORMAT_SNAPSHOT_NOT_FOUND"
