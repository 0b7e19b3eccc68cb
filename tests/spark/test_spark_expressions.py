"""Spark predicates as filters: exact filters match the same rows, also for null values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, DateType, DoubleType, LongType, NestedField, StringType, TimestamptzType
from pyspark.sql import SparkSession

from spark_ext.service.wire.expressions import exact_filter, pruning_filter
from tableformat import Catalog
from tableformat.filters.filter_text import filter_text

SCHEMA = Schema(
    NestedField(1, "a", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "at", TimestamptzType()),
    NestedField(5, "flag", BooleanType()),
    NestedField(6, "d", DoubleType()),
)


def column(name: str) -> dict[str, Any]:
    return {"column": [name]}


def literal(value: Any, spark_type: str = "long") -> dict[str, Any]:
    return {"literal": None if value is None else str(value), "type": spark_type}


def call(operator: str, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"operator": operator, "arguments": list(arguments)}


UNKNOWN = {"unknown": "udf(a)"}


def exact(predicate: dict[str, Any]) -> BooleanExpression | None:
    return exact_filter([predicate], SCHEMA)


@pytest.mark.parametrize(
    "predicate",
    [
        UNKNOWN,
        call("=", column("a"), column("d")),
        call("=", column("nowhere"), literal(1)),
        call("=", column("a"), literal("x", "string")),
        call("AND", call("=", column("a"), literal(1)), UNKNOWN),
        call("OR", call("=", column("a"), literal(1)), UNKNOWN),
        call("NOT", UNKNOWN),
        call("ENDS_WITH", column("s"), literal("x", "string")),
        call("=", call("CAST", column("a")), literal(1)),
        call("<", column("at"), literal(10**18, "timestamp")),
    ],
)
def test_predicates_without_an_exact_filter(predicate: dict[str, Any]) -> None:
    assert exact(predicate) is None


def test_pruning_uses_translatable_parts_of_a_conjunction() -> None:
    left = call("=", column("a"), literal(1))
    assert pruning_filter([call("AND", left, UNKNOWN)], SCHEMA) == exact(left)
    assert pruning_filter([left, UNKNOWN], SCHEMA) == exact(left)
    assert pruning_filter([call("OR", left, UNKNOWN)], SCHEMA) == AlwaysTrue()
    assert pruning_filter([call("NOT", call("AND", left, UNKNOWN))], SCHEMA) == AlwaysTrue()


def test_literals_are_converted_by_type() -> None:
    assert str(exact(call("=", column("day"), literal(19723, "date")))) == str(
        exact(call("=", literal(19723, "date"), column("day")))
    )
    moment = exact(call(">=", column("at"), literal(1_704_067_200_000_001, "timestamp")))
    assert moment is not None
    assert "2024-01-01" in str(moment) or "1704067200000001" in str(moment)


PREDICATES = (
    "a = 1",
    "NOT (a = 1)",
    "a <=> 1",
    "NOT (a <=> 1)",
    "a <=> NULL",
    "NOT (a <=> NULL)",
    "a IN (1, NULL)",
    "a NOT IN (1, 2)",
    "a NOT IN (1, NULL)",
    "a IS NULL OR a > 2",
    "NOT (a > 1 AND s = 'x')",
    "NOT (a > 1 OR s IS NULL)",
    "d = 0.0",
    "d > 1e300",
    "d = DOUBLE('NaN')",
    "d < DOUBLE('NaN')",
    "NOT (d < 1)",
    "s LIKE 'x%'",
    "s NOT LIKE 'x%'",
    "s LIKE '%y'",
    "s > 'x'",
    "flag",
    "NOT flag",
    "flag IS NOT TRUE",
    "day >= DATE '2024-01-02'",
    "day BETWEEN DATE '2024-01-01' AND DATE '2024-01-02'",
    "at = TIMESTAMP '2024-01-01 00:00:00'",
    "a + 1 = 2",
    "CAST(a AS STRING) = '1'",
    "a = d",
    "coalesce(a, 0) = 0",
    "a BETWEEN 1.5 AND 2.5",
    "a = 1.5",
    "true",
    "false",
)


def test_filters_never_change_the_rows(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    """SP-3: the same query over one row a file, pruned by bounds, and over rows that Spark holds itself."""
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.string()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("flag", pa.bool_()),
            ("d", pa.float64()),
        ]
    )
    rows = pa.table(
        {
            "a": [1, 2, None, 3, None],
            "s": ["x", None, "xy", "y", None],
            "day": [date(2024, 1, day) for day in (1, 2, 3)] + [None, date(1969, 12, 31)],
            "at": [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(2024, 1, 2, tzinfo=UTC), None, None],
            "flag": [True, False, None, True, None],
            "d": [0.0, -0.0, math.nan, math.inf, None],
        },
        schema=schema,
    )
    table = lake.create_table((namespace, "t"), schema)
    for number in range(rows.num_rows):
        table.append(rows.slice(number, 1))
    spark.createDataFrame(rows).createOrReplaceTempView("held_rows")
    for where in PREDICATES:
        query = "SELECT to_json(struct(*)) AS row FROM {} WHERE " + where
        found = sorted(row.row for row in spark.sql(query.format(f"lake.{table.name}")).collect())
        assert found == sorted(row.row for row in spark.sql(query.format("held_rows")).collect()), where


def transformed(name: str, column_name: str, *width: int) -> dict[str, Any]:
    return {"transform": name, "arguments": [*(literal(each, "integer") for each in width), column(column_name)]}


@pytest.mark.parametrize(
    ("predicate", "as_column"),
    [
        (
            call("=", transformed("years", "at"), literal(-1)),
            "at >= TIMESTAMP '1969-01-01 00:00:00' AND at < TIMESTAMP '1970-01-01 00:00:00'",
        ),
        (call(">", literal(-1), transformed("months", "day")), "day < DATE '1969-12-01'"),
        (call("<=", transformed("days", "at"), literal(0, "date")), "at < TIMESTAMP '1970-01-02 00:00:00'"),
        (
            call("<>", transformed("days", "day"), literal(0, "date")),
            "day < DATE '1970-01-01' OR day >= DATE '1970-01-02'",
        ),
        (call(">", transformed("hours", "at"), literal(-2)), "at >= TIMESTAMP '1969-12-31 23:00:00'"),
        (call("IS_NULL", transformed("hours", "at")), "at IS NULL"),
        (call("=", transformed("truncate", "s", 2), literal("ab", "string")), "s STARTS WITH 'ab'"),
        (call("=", transformed("truncate", "s", 2), literal("a", "string")), "s = 'a'"),
    ],
)
def test_transform_comparisons_become_column_comparisons(predicate: dict[str, Any], as_column: str) -> None:
    """SP-46."""
    assert filter_text(exact(predicate) or AlwaysTrue()) == as_column


@pytest.mark.parametrize(
    "predicate",
    [
        call("=", transformed("bucket", "a", 4), literal(2)),
        call("=", transformed("truncate", "a", 10), literal(20)),
        call("=", transformed("truncate", "s", 2), literal("abc", "string")),
        call("<", transformed("truncate", "s", 2), literal("ab", "string")),
        call("=", transformed("years", "at"), literal(10**9)),
        call("<=>", transformed("years", "at"), literal(1)),
        call("=", transformed("years", "s"), literal(1)),
        call("=", transformed("years", "nowhere"), literal(1)),
    ],
)
def test_transforms_without_an_exact_filter(predicate: dict[str, Any]) -> None:
    """SP-46."""
    assert exact(predicate) is None
