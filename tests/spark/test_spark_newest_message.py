"""`option("order-by", ...)`: the newest message of each replaced prefix is kept, in batches and in streams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from long_forms import every
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions

from tableformat import Catalog, Table

MESSAGES = "number long, at double, customer string, order long, items array<string>"


PREFIX = {"replace-prefix": "customer,order"}


@pytest.fixture(params=every(3, ["PARTITIONED BY (item)", "", "PARTITIONED BY (bucket(2, customer))"]))
def table(spark: SparkSession, lake: Catalog, namespace: str, request: pytest.FixtureRequest) -> Table:
    """Orders ann 1, of two lines, ann 2 and bob 1; in partitions of nothing, of the item, of the customer."""
    spark.sql(
        f"CREATE TABLE lake.{namespace}.t (customer STRING NOT NULL, order BIGINT NOT NULL, line INT NOT NULL, "
        f"item STRING NOT NULL) {request.param} TBLPROPERTIES ('tableformat.key' = 'customer,order,line')"
    )
    spark.sql(
        f"INSERT INTO lake.{namespace}.t VALUES ('ann', 1, 1, 'old'), ('ann', 1, 2, 'old'), ('ann', 2, 1, 'old'), "
        "('bob', 1, 1, 'old')"
    )
    return lake.load_table(f"{namespace}.t")


def lines(messages: DataFrame, *order: str) -> DataFrame:
    """Messages exploded as in the guide: an empty message becomes one row without a line."""
    columns = messages.select(*order, "customer", "order", functions.posexplode_outer("items").alias("place", "item"))
    line = (functions.col("place") + 1).cast("int").alias("line")
    return columns.select("item", *order, "customer", "order", line)


def rows(spark: SparkSession, table: Table) -> list[str]:
    found = sorted(f"{r.customer} {r.order} {r.line} {r.item}" for r in spark.table(f"lake.{table.name}").collect())
    by_python = table.refresh().scan().to_arrow().to_pylist()
    assert found == sorted(f"{r['customer']} {r['order']} {r['line']} {r['item']}" for r in by_python)
    return found


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
@pytest.mark.parametrize("tasks", every(2, [4, 1]))
def test_newest_message_is_kept_across_tasks(spark: SparkSession, table: Table, tasks: int) -> None:
    """CP-66, CP-68, SP-98"""
    messages = [
        (7, None, "ann", 1, ["a", "b", "a"]),
        (9, 1.0, "ann", 1, ["c", "d"]),
        (8, 2.0, "ann", 1, ["e"]),
        (1, 1.0, "bob", 1, ["a"]),
        (2, 1.0, "bob", 1, None),
        (3, 1.0, "cem", 5, []),
        (4, 1.0, "cem", 5, ["f"]),
    ]
    new = lines(spark.createDataFrame(messages, MESSAGES), "number").repartition(tasks)
    new.writeTo(f"lake.{table.name}").options(**PREFIX).option("order-by", "number").append()
    assert rows(spark, table) == ["ann 1 1 c", "ann 1 2 d", "ann 2 1 old", "cem 5 1 f"]


@pytest.mark.since_spark("4.0", "rows with other columns than the table's")
def test_null_and_nan_sort_before_numbers(spark: SparkSession, table: Table) -> None:
    """CP-66"""
    nan = float("nan")
    messages = [
        (1, nan, "ann", 1, ["a", "b"]),
        (1, -1.5, "ann", 1, ["c"]),
        (1, None, "ann", 2, ["d"]),
        (1, nan, "ann", 2, ["e"]),
        (2, None, "bob", 1, ["f"]),
        (1, 5.0, "bob", 1, ["g", "h"]),
    ]
    new = lines(spark.createDataFrame(messages, MESSAGES), "number", "at").coalesce(1)
    new.write.format("tableformat").mode("append").options(**PREFIX, **{"order-by": "number, AT"}).save(
        f"lake.{table.name}"
    )
    assert rows(spark, table) == ["ann 1 1 c", "ann 2 1 e", "bob 1 1 f"]


@pytest.mark.parametrize("tasks", every(2, [3, 1]))
def test_duplicate_key_in_newest_message_is_rejected(spark: SparkSession, table: Table, tasks: int) -> None:
    """CP-67, CP-68"""
    before = rows(spark, table)
    given = [("ann", 1, 1, "a"), ("ann", 1, 2, "a"), ("ann", 1, 1, "b")]
    new = spark.createDataFrame(given, "customer string, order long, line int, item string").repartition(tasks)
    with pytest.raises(AnalysisException, match=r"'customer': 'ann', 'order': 1, 'line': 1.*order_by"):
        new.writeTo(f"lake.{table.name}").options(**PREFIX).append()
    assert rows(spark, table) == before


def test_invalid_order_by_options_are_rejected(spark: SparkSession, table: Table) -> None:
    new = spark.createDataFrame([("ann", 1, 1, "a")], "customer string, order long, line int, item string")
    for options, message in (
        ({"order-by": "item"}, "order-by requires replace-prefix"),
        ({**PREFIX, "order-by": "number"}, "order-by refers to number, which the rows do not have"),
        ({**PREFIX, "order-by": "order"}, "equal in all rows of a prefix"),
        ({**PREFIX, "order-by": "item", "on-refused": "divert", "refused-rows-table": "x.y"}, "cannot be combined"),
        ({"application-id": "loader"}, "pass both or neither"),
    ):
        with pytest.raises(AnalysisException, match=message):
            new.writeTo(f"lake.{table.name}").options(**options).append()


def test_a_stream_keeps_the_newest_message_of_each_micro_batch(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    """SP-98: two messages of one key, and empty ones, in one micro-batch."""
    batches = [
        [(1, "ann", 1, ["a", "b"]), (3, "ann", 1, ["c"]), (2, "ann", 1, ["d", "e"]), (4, "bob", 1, [])],
        [(5, "bob", 1, ["f"]), (6, "ann", 1, ["g"]), (7, "ann", 1, None), (8, "ann", 2, ["h"])],
    ]
    source = tmp_path / "in"
    source.mkdir()
    for number, batch in enumerate(batches):
        names = ("number", "customer", "order", "items")
        text = "\n".join(json.dumps(dict(zip(names, message, strict=True))) for message in batch)
        (source / f"{number}.json").write_text(text)
        query = (
            lines(spark.readStream.schema(MESSAGES).option("maxFilesPerTrigger", 1).json(str(source)), "number")
            .writeStream.options(**PREFIX, **{"order-by": "number"})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .toTable(f"lake.{table.name}")
        )
        query.awaitTermination()
        if number == 0:
            assert rows(spark, table) == ["ann 1 1 c", "ann 2 1 old"]
    assert rows(spark, table) == ["ann 2 1 h", "bob 1 1 f"]


def test_a_named_batch_is_written_once(spark: SparkSession, table: Table) -> None:
    """SP-99"""
    new = spark.createDataFrame([("zoe", 1, 1, "a")], "customer string, order long, line int, item string")
    writer = new.writeTo(f"lake.{table.name}").option("application-id", "loader").option("batch-id", "7")
    writer.append()
    spark.sql(f"DELETE FROM lake.{table.name} WHERE customer = 'zoe'")
    before = rows(spark, table)
    snapshot_id = table.refresh().snapshot_id
    writer.append()
    new.write.mode("append").options(**PREFIX, **{"application-id": "loader", "batch-id": "7"}).saveAsTable(
        f"lake.{table.name}"
    )
    new.writeTo(f"lake.{table.name}").options(**{"application-id": "loader", "batch-id": "6"}).overwrite(
        functions.lit(True)
    )
    assert (rows(spark, table), table.refresh().snapshot_id) == (before, snapshot_id)


def test_named_procedure_calls_run_once(spark: SparkSession, table: Table, namespace: str) -> None:
    """SP-99: run, append, run again with the same names."""
    named = "application_id => 'cleaner', batch_id => '{}'"
    calls = (
        f"delete_prefix('{namespace}.t', map('customer', 'zoe'), {named.format(1)})",
        f"delete_range('{namespace}.t', lower => struct('zoe'), {named.format(2)})",
        f"replace_interval('{namespace}.t', source => '{namespace}.none', on => array('customer'), "
        f"lower => struct('zoe'), {named.format(3)})",
    )
    spark.sql(f"CREATE TABLE lake.{namespace}.none AS SELECT * FROM lake.{namespace}.t WHERE false")
    expected = [*rows(spark, table), "zoe 1 1 late"]
    for call in calls:
        first = spark.sql(f"CALL lake.system.{call}").first()
        spark.sql(f"INSERT INTO lake.{namespace}.t VALUES ('zoe', 1, 1, 'late')")
        again = spark.sql(f"CALL lake.system.{call}").first()
        assert first is not None
        assert again is not None
        assert (first.already_applied, again.already_applied) == (False, True)
        assert rows(spark, table) == expected
        spark.sql(f"DELETE FROM lake.{namespace}.t WHERE customer = 'zoe'")
    with pytest.raises(AnalysisException, match="must be passed together"):
        spark.sql(f"CALL lake.system.delete_prefix('{namespace}.t', map('customer', 'zoe'), application_id => 'a')")
