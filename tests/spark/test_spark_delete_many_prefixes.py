"""CALL lake.system.delete_prefix with the rows of a table or view as prefixes."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string(), nullable=False),
        pa.field("order", pa.int64(), nullable=False),
        pa.field("line", pa.int32(), nullable=False),
    ]
)


@pytest.fixture
def orders(lake: Catalog, namespace: str) -> Table:
    """Orders 1 to 3 of ann, bob and cem, with two lines each."""
    created = lake.create_table((namespace, "orders"), SCHEMA, key=["customer", "order", "line"])
    rows = [
        {"customer": customer, "order": order, "line": line}
        for customer in ("ann", "bob", "cem")
        for order in (1, 2, 3)
        for line in (1, 2)
    ]
    created.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return created


def call(spark: SparkSession, table: Table, arguments: str) -> dict[str, Any]:
    [row] = spark.sql(f"CALL lake.system.delete_prefix('{table.name}', {arguments})").collect()
    answer: dict[str, Any] = row.asDict()
    return answer


def left(spark: SparkSession, table: Table, *, branch: str = "main") -> str:
    """The orders that have rows, such as "ann1 bob2"."""
    found = spark.sql(
        f"SELECT DISTINCT customer, `order` FROM lake.{table.name} VERSION AS OF '{branch}' ORDER BY customer, `order`"
    ).collect()
    return " ".join(f"{row.customer}{row.order}" for row in found)


def span_count(table: Table) -> int:
    """The number of spans in the newest snapshot's range delete files."""
    entries = table.refresh().inspect.delete_files().to_pylist()
    return sum(entry["record_count"] for entry in entries)


@pytest.fixture
def few_keys(spark: SparkSession) -> str:
    """A temporary view with an order twice, and one that the table lacks."""
    spark.createDataFrame(
        [("ann", 1), ("bob", 3), ("ann", 2), ("ann", 1), ("zoe", 9)], "customer string, `order` int"
    ).createOrReplaceTempView("few_keys")
    return "few_keys"


def test_rows_of_a_view_are_deleted_in_one_snapshot(spark: SparkSession, orders: Table, few_keys: str) -> None:
    """PR-25: neighbouring orders are one span of one range delete file."""
    answer = call(spark, orders, f"source => '{few_keys}'")
    assert (answer["deleted_rows_count"], answer["added_delete_files_count"]) == (None, 1)
    assert left(spark, orders) == "ann3 bob1 bob2 cem1 cem2 cem3"
    assert len(orders.refresh().history()) == 2
    assert span_count(orders) == 3


@pytest.mark.parametrize("source", ["{namespace}.keys", "lake.{namespace}.keys", "spark_catalog.default.old_customers"])
def test_source_may_be_a_table_of_any_catalog(
    spark: SparkSession, lake: Catalog, namespace: str, orders: Table, source: str
) -> None:
    """PR-25."""
    keys = lake.create_table((namespace, "keys"), pa.schema([("CUSTOMER", pa.string())]))
    keys.append(pa.table({"CUSTOMER": ["ann", "cem"]}))
    spark.sql("CREATE OR REPLACE TEMP VIEW old AS SELECT explode(array('ann', 'cem')) AS customer")
    spark.sql("DROP TABLE IF EXISTS spark_catalog.default.old_customers")
    spark.sql("CREATE TABLE spark_catalog.default.old_customers USING parquet AS SELECT * FROM old")
    call(spark, orders, f"source => '{source.format(namespace=namespace)}'")
    assert left(spark, orders) == "bob1 bob2 bob3"


def test_options_of_the_procedure_apply_to_a_source(spark: SparkSession, orders: Table, few_keys: str) -> None:
    """PR-25, SP-99."""
    orders.create_branch("audit")
    before = orders.refresh().snapshot_id
    assert call(spark, orders, f"source => '{few_keys}', dry_run => true")["deleted_rows_count"] == 6
    assert orders.refresh().snapshot_id == before
    named = f"source => '{few_keys}', application_id => 'erasure', batch_id => '1', branch => 'audit', mode => 'scan'"
    first, second = call(spark, orders, named), call(spark, orders, named)
    assert (first["deleted_rows_count"], first["already_applied"], second["already_applied"]) == (6, False, True)
    assert left(spark, orders, branch="audit") == "ann3 bob1 bob2 cem1 cem2 cem3"
    assert orders.refresh().snapshot_id == before


def test_empty_source_deletes_nothing(spark: SparkSession, orders: Table) -> None:
    """PR-25."""
    before = left(spark, orders)
    spark.sql("CREATE OR REPLACE TEMP VIEW no_keys AS SELECT 'a' AS customer WHERE false")
    assert call(spark, orders, "source => 'no_keys'")["added_delete_files_count"] == 0
    assert left(spark, orders) == before


def test_source_uuids_are_text(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """PR-7, PR-25."""
    schema = pa.schema([pa.field("id", pa.uuid(), nullable=False)])
    table = lake.create_table((namespace, "u"), schema, key=["id"])
    keys = [uuid.UUID(int=number) for number in (10, 11)]
    table.append(pa.table({"id": pa.array([key.bytes for key in keys], pa.uuid())}, schema=schema))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW ids AS SELECT '{str(keys[0]).upper()}' AS id")
    call(spark, table, "source => 'ids'")
    assert [row.id for row in spark.sql(f"SELECT id FROM lake.{table.name}").collect()] == [str(keys[1])]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("'ann' AS customer, 7 AS quantity", "quantity is not in the key (customer, order, line)"),
        ("1 AS line", "is not a leading part of the key (customer, order, line)"),
        ("1 AS customer", "column 'customer' is string"),
        ("'ann' AS customer, 1.5 AS `order`", "column 'order' is long"),
    ],
)
def test_source_with_wrong_columns_is_rejected(spark: SparkSession, orders: Table, columns: str, message: str) -> None:
    """PR-7, PR-25."""
    before = orders.refresh().snapshot_id
    spark.sql(f"CREATE OR REPLACE TEMP VIEW others AS SELECT {columns}")
    with pytest.raises(AnalysisException) as error:
        call(spark, orders, "source => 'others'")
    assert message in str(error.value)
    assert orders.refresh().snapshot_id == before
