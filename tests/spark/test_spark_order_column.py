"""Writes with `replace-prefix` to a table with an order column leave out messages older than the stored ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from tableformat import Catalog, Table

LINES = "customer string, order long, line int, ts timestamp"
PREFIX = {"replace-prefix": "customer,order"}


@pytest.fixture(params=["2", pytest.param("3", marks=pytest.mark.long)])
def table(spark: SparkSession, lake: Catalog, namespace: str, request: pytest.FixtureRequest) -> Table:
    """A table with order 1 of ann: two lines, written in minute 40."""
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (customer STRING NOT NULL, order BIGINT NOT NULL, line INT NOT NULL, "
        "ts TIMESTAMP) TBLPROPERTIES ('tableformat.key' = 'customer,order,line', 'tableformat.order-column' = 'ts', "
        f"'format-version' = '{request.param}')"
    )
    created = lake.load_table(f"{namespace}.t")
    append(created, message(spark, "ann", 1, 40, 2))
    return created


def message(spark: SparkSession, customer: str, order: int, minute: int, count: int) -> DataFrame:
    """The rows of a message: one row for each line, or one row without a line if `count` is 0."""
    numbers = range(1, count + 1) if count else [None]
    rows = [(customer, order, number, f"2026-01-02 10:{minute}:00") for number in numbers]
    return spark.createDataFrame(rows, LINES.replace("timestamp", "string")).withColumn(
        "ts", functions.col("ts").cast("timestamp")
    )


def append(table: Table, rows: DataFrame, **options: str) -> None:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    rows.writeTo(f"lake.{table.name}").options(**PREFIX, **named).append()


def stored(spark: SparkSession, table: Table) -> list[str]:
    rows = spark.sql(f"SELECT customer, order, line, minute(ts) AS minute FROM lake.{table.name}").collect()
    assert table.refresh().scan().count() == len(rows)
    return sorted(f"{row.customer} {row.order} {row.line} at {row.minute}" for row in rows)


@pytest.mark.parametrize("order_by", [{}, {"order_by": "TS"}])
def test_older_message_is_skipped_in_any_task(spark: SparkSession, table: Table, order_by: dict[str, str]) -> None:
    """SP-111, CP-69: the other messages of the batch are written."""
    batch = message(spark, "ann", 1, 30, 3).union(message(spark, "ann", 2, 30, 1)).repartition(3)
    append(table, batch, **order_by)
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 1 2 at 40", "ann 2 1 at 30"]
    summary = table.metadata.current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    assert summary.additional_properties["tableformat.stale-rows"] == "3"
    append(table, message(spark, "ann", 1, 30, 1))
    append(table, message(spark, "ann", 1, 40, 1), **order_by)
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 2 1 at 30"]


@pytest.mark.since_spark("4.0", "rows without a value in required columns")
def test_empty_message_is_remembered(spark: SparkSession, table: Table) -> None:
    """CP-71: also after a conversion."""
    append(table, message(spark, "ann", 1, 50, 0).union(message(spark, "bob", 1, 50, 0)))
    assert stored(spark, table) == []
    spark.sql(f"CALL lake.system.convert_deletes('{table.name}')")
    append(table, message(spark, "ann", 1, 45, 1).union(message(spark, "bob", 1, 50, 1)))
    assert stored(spark, table) == ["bob 1 1 at 50"]


def test_on_stale_option_raises_the_error(spark: SparkSession, table: Table) -> None:
    with pytest.raises(Exception, match="1 message is older than a stored or deleted row"):
        append(table, message(spark, "ann", 1, 30, 3), on_stale="error")
    append(table, message(spark, "ann", 1, 50, 1), on_stale="error")
    assert stored(spark, table) == ["ann 1 1 at 50"]


def test_invalid_order_column_options_are_rejected(spark: SparkSession, table: Table) -> None:
    rows = message(spark, "ann", 1, 30, 1)
    for options, text in (
        ({"on_stale": "divert"}, "a statement returns no rows"),
        ({"on_stale": "skip"}, "on-stale must be one of"),
        ({"order_by": "line"}, "the table compares rows by 'ts'"),
        (
            {"on_refused": "divert", "refused_rows_table": table.name},
            "to the table itself|has an order column",
        ),
    ):
        with pytest.raises(Exception, match=text):
            append(table, rows, **options)
    with pytest.raises(Exception, match="on-stale requires replace-prefix or operation"):
        rows.writeTo(f"lake.{table.name}").option("on-stale", "error").append()
    table.refresh().remove_properties("tableformat.order-column")
    spark.sql(f"REFRESH TABLE lake.{table.name}")
    with pytest.raises(Exception, match="has no order column"):
        append(table, rows, on_stale="error")
    append(table, rows)
    assert stored(spark, table) == ["ann 1 1 at 30"]


def test_stream_with_batches_out_of_order_keeps_the_newest_messages(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """SP-111: each file is a micro-batch."""
    batches = [
        [("ann", 1, 45, [1, 2, 3]), ("bob", 1, 20, [1])],
        [("ann", 1, 44, [1]), ("bob", 1, 10, [1, 2]), ("cem", 1, 10, [1])],
        [("ann", 1, 50, []), ("cem", 1, 5, [])],
        [("ann", 1, 49, [1]), ("bob", 1, 21, [1, 2])],
    ]
    source = tmp_path / "in"
    source.mkdir()
    names = ("customer", "order", "minute", "lines")
    for number, batch in enumerate(batches):
        (source / f"{number}.json").write_text(
            "\n".join(json.dumps(dict(zip(names, each, strict=True))) for each in batch)
        )
        read = spark.readStream.schema("customer string, order long, minute int, lines array<int>").json(str(source))
        at = functions.expr("make_timestamp(2026, 1, 2, 10, minute, 0)").alias("ts")
        rows = read.select("customer", "order", at, functions.explode_outer("lines").alias("line"))
        query = (
            rows.select("customer", "order", "line", "ts")
            .writeStream.options(**PREFIX)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .toTable(f"lake.{table.name}")
        )
        query.awaitTermination()
    assert stored(spark, table) == ["bob 1 1 at 21", "bob 1 2 at 21", "cem 1 1 at 10"]


def test_sql_statements_compare_messages_and_protect_the_column(spark: SparkSession, table: Table) -> None:
    """FM-33, SP-111"""
    name = f"lake.{table.name}"
    spark.sql(
        f"INSERT INTO {name} REPLACE USING (customer, order) VALUES ('ann', 1, 9, TIMESTAMP '2026-01-02 10:30:00'), "
        "('ann', 2, 9, TIMESTAMP '2026-01-02 10:30:00')"
    )
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 1 2 at 40", "ann 2 9 at 30"]
    for statement, text in (
        (f"ALTER TABLE {name} DROP COLUMN ts", "cannot be dropped"),
        (f"ALTER TABLE {name} RENAME COLUMN ts TO moment", "cannot be renamed"),
        (f"ALTER TABLE {name} SET TBLPROPERTIES ('tableformat.order-column' = 'moment')", "moment"),
        (f"ALTER TABLE {name} SET TBLPROPERTIES ('tableformat.order-column' = 'line')", "belongs to the key"),
        (f"CREATE TABLE {name}2 (a INT) TBLPROPERTIES ('tableformat.order-column' = 'b')", "unknown column 'b'"),
    ):
        with pytest.raises(Exception, match=text):
            spark.sql(statement)


def events(spark: SparkSession, *rows: tuple[int, int | None, int, str]) -> DataFrame:
    """Events for the orders of ann, each with the order, the line, the minute, and the operation."""
    data = [("ann", order, line, f"2026-01-02 10:{minute}:00", op) for order, line, minute, op in rows]
    return spark.createDataFrame(data, LINES.replace("timestamp", "string") + ", op string").withColumn(
        "ts", functions.col("ts").cast("timestamp")
    )


def write(table: Table, rows: DataFrame, **options: str) -> None:
    named = {name.replace("_", "-"): value for name, value in options.items()}
    rows.writeTo(f"lake.{table.name}").options(**named).append()


def test_upserts_are_compared_by_key(spark: SparkSession, table: Table) -> None:
    """SP-111: also for several rows of one key in a batch."""
    rows = events(spark, (1, 1, 30, ""), (1, 2, 50, ""), (1, 2, 45, ""), (2, 1, 10, "")).drop("op").repartition(3)
    with pytest.raises(Exception, match="1 message is older than a stored or deleted row"):
        write(table, rows, operation="upsert", on_stale="error")
    write(table, rows, operation="upsert")
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 1 2 at 50", "ann 2 1 at 10"]
    spark.sql(
        f"UPSERT INTO lake.{table.name} VALUES ('ann', 1, 1, TIMESTAMP '2026-01-02 10:39:00'), "
        "('ann', 2, 1, TIMESTAMP '2026-01-02 10:11:00')"
    )
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 1 2 at 50", "ann 2 1 at 11"]


def test_change_events_are_compared_and_deletes_remembered(spark: SparkSession, table: Table) -> None:
    """SP-111, CP-71"""
    options = {"operation": "changes", "op_column": "op", "order_by": "ts"}
    write(table, events(spark, (1, 1, 50, "delete"), (1, 2, 30, "delete"), (2, 1, 20, "insert")), **options)
    assert stored(spark, table) == ["ann 1 2 at 40", "ann 2 1 at 20"]
    spark.sql(f"CALL lake.system.convert_deletes('{table.name}')")
    write(table, events(spark, (1, 1, 45, "insert"), (2, 1, 15, "update"), (1, 2, 41, "update")), **options)
    assert stored(spark, table) == ["ann 1 2 at 41", "ann 2 1 at 20"]
    with pytest.raises(Exception, match="a delete event for each key"):
        write(table, events(spark, (1, 1, 55, "truncate"), (1, 1, 56, "insert")), **options)
    assert stored(spark, table) == ["ann 1 2 at 41", "ann 2 1 at 20"]


def test_unordered_writes_to_order_column_table_are_rejected(spark: SparkSession, table: Table) -> None:
    """SP-111"""
    rows = events(spark, (1, 1, 30, "")).drop("op")
    for options, text in (
        ({"operation": "delete"}, "with delete events, or DELETE FROM"),
        ({"operation": "insert-ignore"}, "UPSERT INTO"),
        ({"operation": "insert-error"}, "UPSERT INTO"),
        ({"replace_equal": "ts"}, "first columns of the key"),
    ):
        with pytest.raises(Exception, match=text):
            write(table, rows, **options)
    values = "VALUES ('ann', 1, 1, TIMESTAMP '2026-01-02 10:30:00')"
    for statement in (
        f"INSERT IGNORE INTO lake.{table.name} {values}",
        f"INSERT INTO lake.{table.name} REPLACE USING (ts) {values}",
        f"INSERT INTO lake.{table.name} REPLACE USING (line) {values}",
    ):
        with pytest.raises(Exception, match="has the order column 'ts'"):
            spark.sql(statement)
    assert stored(spark, table) == ["ann 1 1 at 40", "ann 1 2 at 40"]
