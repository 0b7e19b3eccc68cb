"""CALL revert_snapshot and restore_rows (CP-89, CP-90)."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    spark.sql(
        f"CREATE TABLE lake.{namespace}.orders (customer STRING NOT NULL, line INT NOT NULL, price DOUBLE) "
        "TBLPROPERTIES ('tableformat.key' = 'customer,line')"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.orders VALUES ('ann', 1, 1.0), ('ann', 2, 2.0), ('bob', 1, 3.0)")
    return lake.load_table((namespace, "orders"))


def rows(spark: SparkSession, table: Table) -> list[tuple[str, int, float]]:
    return sorted(tuple(row) for row in spark.sql(f"SELECT * FROM lake.{table.name}").collect())


def test_revert_snapshot_undoes_one_commit(spark: SparkSession, table: Table) -> None:
    spark.sql(f"DELETE FROM lake.{table.name} WHERE customer = 'ann'")
    mistake = table.refresh().snapshot_id
    spark.sql(f"INSERT INTO lake.{table.name} VALUES ('cem', 1, 4.0)")

    dry = spark.sql(f"CALL lake.system.revert_snapshot('{table.name}', {mistake}, dry_run => true)").first()
    assert dry is not None
    assert (dry.added_rows_count, dry.deleted_rows_count) == (2, 0)
    assert len(rows(spark, table)) == 2
    done = spark.sql(f"CALL lake.system.revert_snapshot('{table.name}', {mistake})").first()
    assert done is not None
    assert (done.added_rows_count, done.deleted_rows_count) == (2, 0)
    assert rows(spark, table) == [("ann", 1, 1.0), ("ann", 2, 2.0), ("bob", 1, 3.0), ("cem", 1, 4.0)]
    with pytest.raises(PySparkException):
        spark.sql(f"CALL lake.system.revert_snapshot('{table.name}', {mistake})")


def test_restore_rows_restores_an_earlier_state(spark: SparkSession, table: Table) -> None:
    good = table.snapshot_id
    spark.sql(f"UPDATE lake.{table.name} SET price = 9.0")
    where = "customer = 'ann' AND line < 2"
    spark.sql(f"CALL lake.system.restore_rows(table => '{table.name}', where => \"{where}\", snapshot_id => {good})")
    assert rows(spark, table) == [("ann", 1, 1.0), ("ann", 2, 9.0), ("bob", 1, 9.0)]
    with pytest.raises(PySparkException):
        spark.sql(f"CALL lake.system.restore_rows(table => '{table.name}', where => 'line % 2 = 0', tag => 'x')")
