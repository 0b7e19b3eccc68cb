"""`write.{delete,update,merge}.isolation-level` in statements that run a job."""

from __future__ import annotations

import pyarrow as pa
import pytest
from long_forms import crossed
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from test_spark_transactions import append, ids, while_running

from tableformat import Catalog, Table

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
STATEMENTS = {
    "delete": "DELETE FROM {name} WHERE meanwhile(id) < 3",
    "update": "UPDATE {name} SET v = concat(v, '!') WHERE meanwhile(id) < 3",
    "merge": "MERGE INTO {name} t USING (SELECT 2L id) s ON meanwhile(t.id) = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'm'",
}


@pytest.fixture(params=[pytest.param("2", marks=pytest.mark.long), "3"])
def table(lake: Catalog, namespace: str, request: pytest.FixtureRequest) -> Table:
    """Ids 1 to 3 in one file; statements are at snapshot isolation."""
    levels = {f"write.{statement}.isolation-level": "snapshot" for statement in STATEMENTS}
    created = lake.create_table(
        (namespace, "t"), SCHEMA, key=["id"], properties={"format-version": request.param, **levels}
    )
    created.append(pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}, schema=SCHEMA))
    return created


def test_snapshot_isolation_allows_concurrent_appends(spark: SparkSession, table: Table) -> None:
    """SP-20: at snapshot isolation rows that were added concurrently stay unchanged, although they match. The level
    applies to one kind of statement."""
    for number, statement in enumerate(STATEMENTS.values()):
        while_running(spark, table, append(-number))
        spark.sql(statement.format(name=f"lake.{table.name}"))
    # The delete removed 1 and 2; the update saw 0, which was added during the delete.
    assert ids(table) == [-2, -1, 0, 3]
    rows = table.refresh().scan().to_arrow().sort_by("id")
    assert rows["v"].to_pylist() == ["new", "new", "new!", "c"]
    spark.sql(f"ALTER TABLE lake.{table.name} UNSET TBLPROPERTIES ('write.update.isolation-level')")
    while_running(spark, table, append(-9))
    with pytest.raises(AnalysisException, match="was added"):
        spark.sql(STATEMENTS["update"].format(name=f"lake.{table.name}"))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_concurrently_changed_rows_conflict(spark: SparkSession, table: Table, statement: str) -> None:
    """SP-20, CP-6: the first that changes a row wins."""
    while_running(spark, table, lambda found: found.update("id = 2", set={"v": "'theirs'"}))
    with pytest.raises(AnalysisException) as error:
        spark.sql(STATEMENTS[statement].format(name=f"lake.{table.name}"))
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    rows = table.refresh().scan().to_arrow().sort_by("id")
    assert rows["v"].to_pylist() == ["a", "theirs", "c"]


INSERTING = {
    "unchanged": "MERGE INTO {name} t USING (SELECT 2L id, 'new' v UNION ALL SELECT 9L, 'new') s "
    "ON meanwhile(t.id) = s.id WHEN MATCHED AND t.v = 'other' THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "missing": "MERGE INTO {name} t USING (SELECT 2L id, 'new' v UNION ALL SELECT 9L, 'new') s "
    "ON meanwhile(t.id) = s.id WHEN NOT MATCHED THEN INSERT *",
}


@pytest.mark.since_spark("4.2", "statements that catalogs are told of")
@pytest.mark.parametrize(("statement", "mode"), crossed(list(INSERTING), ["range", "scan"]))
def test_merge_conflicts_if_a_matched_row_was_deleted_concurrently(
    spark: SparkSession, table: Table, statement: str, mode: str
) -> None:
    """CP-38: after the delete of 2 there would be neither the old row nor the one of the source."""
    table.set_properties(**{"write.merge.isolation-level": "serializable"})
    while_running(spark, table, lambda found: found.delete_prefix({"id": 2}, mode=mode))
    with pytest.raises(AnalysisException, match="made this change skip an insert") as error:
        spark.sql(INSERTING[statement].format(name=f"lake.{table.name}"))
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert ids(table) == [1, 3]
    while_running(spark, table, lambda _: None)
    spark.sql(INSERTING[statement].format(name=f"lake.{table.name}"))
    assert ids(table) == [1, 2, 3, 9]


def test_merge_without_inserts_allows_concurrent_deletes_of_other_rows(spark: SparkSession, table: Table) -> None:
    """SP-20, CP-38: a row that it does not change does not matter to it."""
    table.set_properties(**{"write.merge.isolation-level": "serializable"})
    while_running(spark, table, lambda found: found.delete_prefix({"id": 3}))
    spark.sql(STATEMENTS["merge"].format(name=f"lake.{table.name}"))
    assert ids(table) == [1, 2]
    assert "m" in table.refresh().scan().to_arrow()["v"].to_pylist()
