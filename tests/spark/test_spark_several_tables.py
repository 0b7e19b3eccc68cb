"""Micro-batches that change two tables in one commit, and statements, which cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tableformat import Catalog, Table

HEADERS = pa.schema([pa.field("order", pa.int64(), nullable=False), pa.field("customer", pa.string())])
LINES = pa.schema(
    [
        pa.field("order", pa.int64(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("amount", pa.int64()),
    ]
)
MESSAGES = [
    [(1, "ada", [10, 20]), (2, "bob", [30])],
    [(1, "eve", [11])],
    [(3, "dan", [5, 6, 7]), (2, "bob", [31, 32])],
]
"""For each micro-batch: order, customer, amounts of the lines."""


@pytest.fixture
def tables(lake: Catalog, namespace: str) -> tuple[Table, Table]:
    return (
        lake.create_table((namespace, "headers"), HEADERS, key=["order"]),
        lake.create_table((namespace, "lines"), LINES, key=["order", "line"]),
    )


def expected() -> tuple[list[tuple[int, str]], list[tuple[int, int, int]]]:
    newest = {order: (customer, amounts) for batch in MESSAGES for order, customer, amounts in batch}
    headers = [(order, customer) for order, (customer, _) in newest.items()]
    lines = [(order, at, each) for order, (_, amounts) in newest.items() for at, each in enumerate(amounts, 1)]
    return sorted(headers), sorted(lines)


def rows(table: Table) -> list[tuple]:
    return sorted(zip(*table.refresh().scan().to_arrow().to_pydict().values(), strict=True))


class KilledError(Exception):
    """The end of a run of the stream."""


def test_micro_batch_is_committed_once_to_both_tables_after_crashes(
    spark: SparkSession, lake: Catalog, namespace: str, tables: tuple[Table, Table], tmp_path: Path
) -> None:
    """ST-10, CP-78: a run that ends before the commit of the second batch, one that ends after it, and a third one."""
    messages = tmp_path / "messages"
    messages.mkdir()
    for number, batch in enumerate(MESSAGES):
        flat = [(order, customer, at, each) for order, customer, amounts in batch for at, each in enumerate(amounts, 1)]
        columns = dict(zip(("order", "customer", "line", "amount"), map(list, zip(*flat, strict=True)), strict=True))
        file = messages / f"{number}.parquet"
        pq.write_table(pa.table(columns), file)
        # Spark takes files in the order of their times, and files that were written at once may have the same time.
        os.utime(file, (1_700_000_000 + number,) * 2)
    applied: list[tuple[int, bool]] = []
    ends = [(1, "before"), (1, "after")]

    def write(batch: DataFrame, number: int) -> None:
        found = batch.toArrow()
        customers = found.select(["order", "customer"]).group_by("order").aggregate([("customer", "max")])
        if ends and ends[0] == (number, "before"):
            ends.pop(0)
            raise KilledError
        with lake.transaction(application_id="orders", batch_id=number) as tx:
            tx.table((namespace, "headers")).replace(customers.rename_columns(["order", "customer"]))
            tx.table((namespace, "lines")).replace(found.select(["order", "line", "amount"]), prefix=["order"])
        (is_applied,) = {each.already_applied for each in tx.results.values()}
        applied.append((number, is_applied))
        if ends and ends[0] == (number, "after"):
            ends.pop(0)
            raise KilledError

    def run() -> None:
        source = spark.readStream.schema("`order` BIGINT, customer STRING, line BIGINT, amount BIGINT")
        stream = source.option("maxFilesPerTrigger", 1).option("latestFirst", "false").parquet(str(messages))
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    for _ in range(2):
        with pytest.raises(PySparkException):
            run()
    run()
    assert applied == [(0, False), (1, False), (1, True), (2, False)]
    assert (rows(tables[0]), rows(tables[1])) == expected()


@pytest.mark.since_spark("4.0", "SQL scripts")
def test_script_statements_commit_separately(spark: SparkSession, namespace: str, tables: tuple[Table, Table]) -> None:
    """ST-10: Spark has no transaction of several statements, so each is one commit."""
    for statement in ("START TRANSACTION", "COMMIT", "ROLLBACK"):
        with pytest.raises(PySparkException, match="INVALID_STATEMENT_OR_CLAUSE"):
            spark.sql(statement)
    script = f"""
        BEGIN
          INSERT INTO lake.{namespace}.headers VALUES (1, 'ada');
          INSERT INTO lake.{namespace}.lines VALUES (1, NULL, 1);
        END"""
    with pytest.raises(PySparkException):
        spark.sql(script).collect()
    assert (rows(tables[0]), rows(tables[1])) == ([(1, "ada")], [])
