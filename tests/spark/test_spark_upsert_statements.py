"""UPSERT INTO and INSERT IGNORE INTO, as in Kudu and Impala."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema([("customer", pa.string()), ("order", pa.int64()), ("city", pa.string()), ("price", pa.float64())])


@pytest.fixture
def orders(lake: Catalog, namespace: str) -> Table:
    """Orders 1 and 2 of ann, and order 1 of bob."""
    created = lake.create_table((namespace, "orders"), SCHEMA, key=["customer", "order"])
    rows = [("ann", 1, "Oslo", 1.5), ("ann", 2, "Oslo", 2.5), ("bob", 1, "Rome", 3.5)]
    created.append([dict(zip(SCHEMA.names, row, strict=True)) for row in rows])
    return created


def rows(spark: SparkSession, table: Table) -> list[str]:
    found = spark.sql(f"SELECT * FROM lake.{table.name} ORDER BY customer, `order`").collect()
    assert len(found) == table.refresh().scan().count()
    return [f"{row.customer}{row.order} {row.city} {row.price}" for row in found]


BEFORE = ["ann1 Oslo 1.5", "ann2 Oslo 2.5", "bob1 Rome 3.5"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPSERT INTO {t} VALUES ('ann', 2, 'Bonn', 9), ('cem', 1, 'Bonn', 8)",
        "upsert into table {t} (city, price, `order`, CUSTOMER) VALUES ('Bonn', 9, 2, 'ann'), ('Bonn', 8, 1, 'cem')",
        "UPSERT INTO {t} BY NAME SELECT 'Bonn' AS city, c AS customer, p AS price, o AS `order` "
        "FROM VALUES ('ann', 2, 9), ('cem', 1, 8) AS v(c, o, p)",
        "UPSERT INTO {t} WITH v AS (SELECT * FROM VALUES ('ann', 2, 9), ('cem', 1, 8) AS v(c, o, p)) "
        "SELECT c, o, 'Bonn', p FROM v",
    ],
)
def test_an_upsert_replaces_rows_with_its_keys(spark: SparkSession, orders: Table, statement: str) -> None:
    """SQ-32: one blind snapshot."""
    spark.sql(statement.format(t=f"lake.{orders.name}"))
    assert rows(spark, orders) == ["ann1 Oslo 1.5", "ann2 Bonn 9.0", "bob1 Rome 3.5", "cem1 Bonn 8.0"]
    assert len(orders.history()) == 2
    assert [entry["content"] for entry in orders.inspect.delete_files().to_pylist()] == [2]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT IGNORE INTO {t} VALUES ('ann', 2, 'Bonn', 9), ('cem', 1, 'Bonn', 8), ('cem', 1, 'Bonn', 8)",
        "INSERT IGNORE INTO {t} (city, customer, price, `order`) VALUES ('Bonn', 'ann', 9, 2), ('Bonn', 'cem', 8, 1)",
    ],
)
def test_insert_ignore_skips_existing_keys(spark: SparkSession, orders: Table, statement: str) -> None:
    """SQ-33."""
    spark.sql(statement.format(t=f"lake.{orders.name}"))
    assert rows(spark, orders) == [*BEFORE, "cem1 Bonn 8.0"]
    spark.sql(statement.format(t=f"lake.{orders.name}"))
    assert rows(spark, orders) == [*BEFORE, "cem1 Bonn 8.0"]


@pytest.mark.parametrize(("statement", "operation"), [("UPSERT", "upsert"), ("INSERT IGNORE", "insert-ignore")])
def test_explain_displays_the_operation(spark: SparkSession, orders: Table, statement: str, operation: str) -> None:
    """SQ-32, SQ-33."""
    plan = spark.sql(f"EXPLAIN {statement} INTO lake.{orders.name} VALUES ('ann', 1, 'x', 1)").collect()[0][0]
    assert f"mode=append, operation={operation})" in plan
    assert rows(spark, orders) == BEFORE


@pytest.mark.parametrize(
    ("statement", "condition", "message"),
    [
        ("UPSERT INTO {t} VALUES ('ann', 1, 'x', 1), ('ann', 1, 'y', 2)", "TABLEFORMAT_DUPLICATE_KEY", "order"),
        ("UPSERT INTO {t} (customer, `order`) VALUES ('ann', 1)", "TABLEFORMAT_UNSUPPORTED", "MERGE INTO"),
        ("INSERT IGNORE INTO {t} (customer, `order`) VALUES ('ann', 3)", "TABLEFORMAT_UNSUPPORTED", "city, price"),
        ("UPSERT INTO {t} PARTITION (customer = 'ann') SELECT 1, 'x', 1", "TABLEFORMAT_UNSUPPORTED", "one query"),
        (
            "UPSERT INTO {t} (customer, `order`, city, price) VALUES ('ann', 1)",
            None,
            "(?i)number of column|same number",
        ),
        ("UPSERT INTO {t} SELECT 'ann', 1", "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS", "data columns"),
        ("UPSERT INTO {t} BY NAME SELECT 'ann' AS customer, 1 AS `order`", None, "city"),
        ("UPSERT {t} VALUES ('ann', 1, 'x', 1)", "PARSE_SYNTAX_ERROR", "UPSERT"),
        ("UPSERT INTO {t} VALUES ('ann', 1,", "PARSE_SYNTAX_ERROR", "end of input"),
        ("UPSERT INTO {t}s VALUES ('ann', 1, 'x', 1)", "TABLE_OR_VIEW_NOT_FOUND", "orderss"),
        ("UPSERT INTO spark_catalog.default.t VALUES ('ann', 1)", "PARSE_SYNTAX_ERROR", "UPSERT"),
    ],
)
def test_invalid_upsert_statements_are_rejected(
    spark: SparkSession, orders: Table, statement: str, condition: str | None, message: str
) -> None:
    """SQ-32, SQ-33, CP-27, CP-67: nothing is written."""
    before = orders.refresh().snapshot_id
    with pytest.raises(PySparkException, match=message) as error:
        spark.sql(statement.format(t=f"lake.{orders.name}"))
    if condition is not None:
        assert error.value.getCondition() == condition
    assert orders.refresh().snapshot_id == before


@pytest.mark.parametrize("statement", ["UPSERT INTO", "INSERT IGNORE INTO"])
def test_a_table_without_a_key_is_refused(spark: SparkSession, lake: Catalog, namespace: str, statement: str) -> None:
    """SQ-32, SQ-33."""
    table = lake.create_table((namespace, "events"), pa.schema([("n", pa.int64())]))
    with pytest.raises(AnalysisException, match="requires a key"):
        spark.sql(f"{statement} lake.{table.name} VALUES (1)")
