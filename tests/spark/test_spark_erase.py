"""CALL erase (MT-111): rows leave the whole history."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tableformat import Catalog, ErasureCertificate, Table


@pytest.fixture
def table(spark: SparkSession, lake: Catalog, namespace: str) -> Table:
    spark.sql(
        f"CREATE TABLE lake.{namespace}.orders (customer STRING NOT NULL, line INT NOT NULL, price DOUBLE) "
        "TBLPROPERTIES ('tableformat.key' = 'customer,line')"
    )
    spark.sql(f"INSERT INTO lake.{namespace}.orders VALUES ('ann', 1, 1.0), ('ann', 2, 2.0), ('bob', 1, 3.0)")
    spark.sql(f"DELETE FROM lake.{namespace}.orders WHERE customer = 'ann' AND line = 2")
    return lake.load_table((namespace, "orders"))


def lines(spark: SparkSession, text: str) -> list[tuple[str, int]]:
    return sorted((row.customer, row.line) for row in spark.sql(text).collect())


def test_erase_prefix_removes_rows_from_history(spark: SparkSession, table: Table) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    name = f"lake.{table.name}"
    dry = spark.sql(f"CALL lake.system.erase('{table.name}', map('customer', 'ann'), dry_run => true)").first()
    assert (dry.erased_rows_count, dry.is_complete) == (2, False)
    assert lines(spark, f"SELECT * FROM {name}") == [("ann", 1), ("bob", 1)]
    done = spark.sql(f"CALL lake.system.erase('{table.name}', map('customer', 'ann'))").first()
    assert (done.erased_rows_count, done.not_reached_count, done.is_complete) == (2, 0, True)
    assert lines(spark, f"SELECT * FROM {name}") == [("bob", 1)]
    assert lines(spark, f"SELECT * FROM {name} VERSION AS OF {first}") == [("bob", 1)]
    certificate = ErasureCertificate.from_json(done.certificate)
    assert json.loads(done.certificate)["tables"][0]["table"] == table.name
    assert table.refresh().verify(erased=certificate).is_clean


def test_erase_by_condition_and_by_source(spark: SparkSession, table: Table, namespace: str) -> None:
    by_where = f"CALL lake.system.erase(table => '{table.name}', where => 'customer = \"bob\"', dry_run => true)"
    assert spark.sql(by_where).first().erased_rows_count == 1
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW leavers AS SELECT 'bob' AS customer")
    assert spark.sql(f"CALL lake.system.erase('{table.name}', source => 'leavers')").first().is_complete
    assert lines(spark, f"SELECT * FROM lake.{table.name}") == [("ann", 1)]
    with pytest.raises(PySparkException, match="give prefix, where, or source"):
        spark.sql(f"CALL lake.system.erase('{table.name}')")
