"""DELETE ... WHERE (a, b) IN (SELECT ...) by the first columns of the key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from test_spark_transactions import while_running

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [
        pa.field("customer", pa.string()),
        pa.field("order", pa.int64()),
        pa.field("line", pa.int32()),
        pa.field("quantity", pa.int32()),
    ]
)


@pytest.fixture
def orders(lake: Catalog, namespace: str) -> Table:
    """Orders 1 to 3 of ann, bob and cem, with two lines each."""
    created = lake.create_table((namespace, "orders"), SCHEMA, key=["customer", "order", "line"])
    rows = [
        {"customer": customer, "order": order, "line": line, "quantity": order}
        for customer in ("ann", "bob", "cem")
        for order in (1, 2, 3)
        for line in (1, 2)
    ]
    created.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return created


@pytest.fixture
def erased(spark: SparkSession, lake: Catalog, namespace: str) -> str:
    """A table with orders to erase. One has no customer."""
    table = lake.create_table((namespace, "erased"), pa.schema([("who", pa.string()), ("number", pa.int64())]))
    table.append(pa.table({"who": ["ann", "bob", "ann", None], "number": [1, 3, 1, 1]}))
    return f"lake.{namespace}.erased"


def left(spark: SparkSession, table: Table) -> str:
    """The orders that have rows, such as "ann1 bob2"; "" has no customer."""
    found = spark.sql(f"SELECT DISTINCT customer, `order` FROM lake.{table.name} ORDER BY customer, `order`").collect()
    return " ".join(f"{row.customer}{row.order}" for row in found)


def delete_files(table: Table) -> list[str]:
    """The kind of each delete file: "range", "equality" or "positions"."""
    kinds = {1: "positions", 2: "equality"}
    return [
        "range" if entry["file_format"] == "RANGE_DELETES_PARQUET" else kinds[entry["content"]]
        for entry in table.refresh().inspect.delete_files().to_pylist()
    ]


def delete(spark: SparkSession, orders: Table, erased: str, condition: str) -> None:
    condition = condition.format(erased=erased, orders=f"lake.{orders.name}")
    spark.sql(f"DELETE FROM lake.{orders.name} AS o WHERE {condition}")


def explained(spark: SparkSession, orders: Table, erased: str, condition: str) -> str:
    condition = condition.format(erased=erased, orders=f"lake.{orders.name}")
    text: str = spark.sql(f"EXPLAIN DELETE FROM lake.{orders.name} AS o WHERE {condition}").collect()[0][0]
    return text


WITHOUT_ANN1_BOB3 = "ann2 ann3 bob1 bob2 cem1 cem2 cem3"


ALL = "ann1 ann2 ann3 bob1 bob2 bob3 cem1 cem2 cem3"
BY_ORDER = "(customer, `order`) IN (SELECT who, number FROM {erased})"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (BY_ORDER, WITHOUT_ANN1_BOB3),
        ("(`order`, customer) IN (SELECT number, who FROM {erased})", WITHOUT_ANN1_BOB3),
        ("(customer, `order`, line) IN (SELECT who, number, explode(array(1, 2)) FROM {erased})", WITHOUT_ANN1_BOB3),
        ("o.customer IN (SELECT lower(who) FROM {erased} UNION ALL SELECT 'zoe')", "cem1 cem2 cem3"),
        ("customer IN (SELECT customer FROM {orders} WHERE line = 2)", ""),
        ("customer IN (WITH e AS (SELECT 'cem' AS who) SELECT who FROM e)", "ann1 ann2 ann3 bob1 bob2 bob3"),
    ],
)
def test_key_subquery_writes_one_range_delete(
    spark: SparkSession, orders: Table, erased: str, condition: str, expected: str
) -> None:
    """SP-102: a key with a null deletes nothing, as with IN."""
    assert "range delete: " in explained(spark, orders, erased, condition)
    delete(spark, orders, erased, condition)
    assert left(spark, orders) == expected
    assert delete_files(orders) == ["range"]
    assert len(orders.history()) == 2


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"{BY_ORDER} AND quantity = 3", "ann1 ann2 ann3 bob1 bob2 cem1 cem2 cem3"),
        (f"{BY_ORDER} OR customer = 'cem'", "ann2 ann3 bob1 bob2"),
        ("customer NOT IN (SELECT who FROM {erased} WHERE who IS NOT NULL)", "ann1 ann2 ann3 bob1 bob2 bob3"),
        ("customer IN (SELECT who FROM {erased} WHERE number = o.quantity)", WITHOUT_ANN1_BOB3),
        ("`order` IN (SELECT number FROM {erased} WHERE who = 'bob')", "ann1 ann2 bob1 bob2 cem1 cem2"),
        ("upper(customer) IN (SELECT upper(who) FROM {erased})", "cem1 cem2 cem3"),
        ("(customer, line) IN (SELECT who, 1 FROM {erased})", ALL),
        ("EXISTS (SELECT 1 FROM {erased} WHERE who = customer)", "cem1 cem2 cem3"),
    ],
)
def test_other_subquery_conditions_are_evaluated_by_spark(
    spark: SparkSession, orders: Table, erased: str, condition: str, expected: str
) -> None:
    """SP-102: the rows are the same as ever."""
    assert "range delete: " not in explained(spark, orders, erased, condition)
    delete(spark, orders, erased, condition)
    assert left(spark, orders) == expected
    assert "range" not in delete_files(orders)


def test_null_keys_delete_nothing(spark: SparkSession, orders: Table, erased: str) -> None:
    """SP-102."""
    before = orders.refresh().snapshot_id
    delete(spark, orders, erased, "customer IN (SELECT who FROM {erased} WHERE who IS NULL)")
    assert orders.refresh().snapshot_id == before


@pytest.mark.parametrize(
    ("name", "value", "form"),
    [
        ("write.delete.prefix-encoding", "equality", "equality"),
        ("write.delete.blind", "equality", "equality"),
        ("write.delete.blind", "off", "positions"),
    ],
)
def test_table_properties_select_the_delete_form(
    spark: SparkSession, orders: Table, erased: str, name: str, value: str, form: str
) -> None:
    """SP-22, SP-102, SQ-7."""
    orders.set_properties({name: value})
    assert f"{form}" in explained(spark, orders, erased, BY_ORDER)
    delete(spark, orders, erased, BY_ORDER)
    assert set(delete_files(orders)) == {form}
    assert left(spark, orders) == WITHOUT_ANN1_BOB3


def test_cached_rows_are_refreshed_after_delete(spark: SparkSession, orders: Table, erased: str) -> None:
    """SP-102."""
    spark.sql(f"CACHE TABLE lake.{orders.name}")
    delete(spark, orders, erased, BY_ORDER)
    assert left(spark, orders) == WITHOUT_ANN1_BOB3
    spark.sql(f"UNCACHE TABLE lake.{orders.name}")


def test_failing_subquery_deletes_nothing(spark: SparkSession, orders: Table, erased: str) -> None:
    """SP-102."""
    before = orders.refresh().snapshot_id
    with pytest.raises(Exception, match="stop"):
        delete(spark, orders, erased, "customer IN (SELECT raise_error('stop') FROM {erased})")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        delete(spark, orders, erased, "customer IN (SELECT nobody FROM {erased})")
    assert orders.refresh().snapshot_id == before


LATE = {"customer": "ann", "order": 4, "line": 1, "quantity": 3}


@pytest.mark.since_spark("4.2", "statements that catalogs are told of")
def test_concurrent_rows_in_the_subquery_table_conflict(spark: SparkSession, orders: Table, erased: str) -> None:
    """SP-102, ST-2."""
    while_running(spark, orders, lambda found: found.append([{**LATE, "customer": "dan"}]))
    with pytest.raises(AnalysisException) as error:
        delete(spark, orders, erased, "customer IN (SELECT customer FROM {orders} WHERE meanwhile(quantity) = 3)")
    assert error.value.getCondition() == "TABLEFORMAT_COMMIT_CONFLICT"
    assert left(spark, orders) == f"{ALL} dan4"
