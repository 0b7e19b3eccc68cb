"""`write.{delete,update,merge}.mode` and `write.delete.blind`: the table owner decides which files statements write."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tableformat import Catalog, Table
from tableformat.metadata.content_file import DeleteKind
from tableformat.operations.ranges.dropped import live_delete_files

STATEMENTS = {
    "delete": "DELETE FROM {name} WHERE v = 'b' OR id % 7 = 5",
    "update": "UPDATE {name} SET v = concat(v, '!') WHERE v = 'c'",
    "merge": "MERGE INTO {name} t USING (SELECT 1L id UNION ALL SELECT 9L) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')",
}


def kinds(table: Table) -> set[DeleteKind]:
    return {delete.kind for delete in live_delete_files(table.refresh().view)}


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.long), 3])
def test_copy_on_write_leaves_no_delete_file_and_keeps_row_ids(
    spark: SparkSession, lake: Catalog, namespace: str, version: int
) -> None:
    """SP-21: the mode of each statement is its own."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('format-version'='{version}')")
    rows = "VALUES (1L, 'a'), (2L, 'b'), (3L, 'c'), (5L, 'e'), (6L, 'f')"
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM {rows}")
    table = lake.load_table((namespace, "t"))
    spark.sql(STATEMENTS["delete"].format(name=name))
    assert kinds(table) == {DeleteKind.POSITION if version == 2 else DeleteKind.DELETION_VECTOR}
    lineage = "id, _row_id" if version == 3 else "id, id"
    ids = {row[0]: row[1] for row in spark.sql(f"SELECT {lineage} FROM {name}").collect()}
    modes = ", ".join(f"'write.{statement}.mode' = 'copy-on-write'" for statement in STATEMENTS)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({modes})")
    for statement in ("update", "merge"):
        spark.sql(STATEMENTS[statement].format(name=name))
        assert kinds(table) == set()
    spark.sql(f"DELETE FROM {name} WHERE v = 'f'")
    assert kinds(table) == set()
    found = spark.sql(f"SELECT id, v FROM {name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, "m"), (3, "c!"), (9, "new")]
    after = {row[0]: row[1] for row in spark.sql(f"SELECT {lineage} FROM {name} WHERE id < 9").collect()}
    assert after == {each: ids[each] for each in (1, 3)}


def test_write_distribution_mode_is_honoured(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-52, SP-55."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING) PARTITIONED BY (v)")
    spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 2 AS STRING) FROM range(0, 40, 1, 2)")

    def rebalanced(statement: str) -> list[str]:
        plan = str(spark.sql(statement)._jdf.queryExecution().executedPlan().commandPhysicalPlan().toString())
        return [line for line in plan.splitlines() if "REBALANCE_PARTITIONS_BY_COL" in line]

    delete, update = f"DELETE FROM {name} WHERE id % 9 = {{}}", f"UPDATE {name} SET id = -id WHERE id % 9 = {{}}"
    assert not rebalanced(delete.format(1))
    assert rebalanced(update.format(2))
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.distribution-mode' = 'hash', "
        "'write.update.distribution-mode' = 'none', 'write.merge.distribution-mode' = 'range', "
        "'write.spark.advisory-partition-size-bytes' = '100')"
    )
    assert "hashpartitioning(_file" in rebalanced(delete.format(3))[0]
    assert not rebalanced(update.format(4))
    merge = f"MERGE INTO {name} t USING (SELECT 5L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 500"
    assert "rangepartitioning(_file" in rebalanced(f"{merge} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")[0]
    ids = sorted(row.id for row in spark.table(name).collect())
    kept = [each for each in range(40) if each % 9 not in (1, 3)]
    assert ids == sorted({5: 500}.get(each, -each if each % 9 in (2, 4) else each) for each in kept)


def test_table_created_using_iceberg_stays_readable_by_other_readers(
    spark: SparkSession, lake: Catalog, namespace: str
) -> None:
    """SP-22: a plain DELETE on a table without a key writes no range or equality delete, unless its owner allows it."""
    name = f"lake.{namespace}.t"
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id n, id % 3 m FROM range(0, 30, 1, 1)")
    table = lake.load_table((namespace, "t"))
    assert table.properties["write.delete.blind"] == "off"
    spark.sql(f"DELETE FROM {name} WHERE n < 5")
    spark.sql(f"DELETE FROM {name} WHERE m = 1")
    assert kinds(table) == {DeleteKind.POSITION}
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.blind' = 'equality')")
    spark.sql(f"DELETE FROM {name} WHERE n < 7")
    assert kinds(table) == {DeleteKind.POSITION}
    spark.sql(f"DELETE FROM {name} WHERE m = 2")
    assert kinds(table) == {DeleteKind.POSITION, DeleteKind.EQUALITY}
    assert [row.n for row in spark.sql(f"SELECT n FROM {name} ORDER BY n").collect()] == [9, 12, 15, 18, 21, 24, 27]
    spark.sql(f"CREATE OR REPLACE TABLE {name} (n BIGINT) USING tableformat")
    spark.sql(f"CREATE TABLE lake.{namespace}.u (n BIGINT)")
    assert "write.delete.blind" not in lake.load_table((namespace, "u")).properties
