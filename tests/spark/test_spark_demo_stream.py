"""The stream of the demo with Spark, on the session of the other tests; `tests/integration` runs it with its own
session."""

from __future__ import annotations

from pathlib import Path

from demo_rows import PLAN, expected_rows
from pyspark.sql import SparkSession

from tableformat import Catalog
from tableformat.demo import stream_spark
from tableformat.demo.messages import KEY, TABLE_SCHEMA, write_messages
from tableformat.demo.report import BatchFigures


def test_demo_stream_keeps_the_newest_message_of_every_key(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """One snapshot a batch; the executors write the files."""
    table = lake.create_table((namespace, "calendars"), TABLE_SCHEMA, key=KEY)
    write_messages(tmp_path / "messages", PLAN)
    results: list[BatchFigures] = []
    stream_spark.run_stream(spark, table, tmp_path / "messages", tmp_path / "checkpoint", results.append)
    assert len(results) == PLAN.batch_count
    assert sum(result.added_row_count for result in results) > 0
    found: dict[tuple[str, int], list[tuple]] = {}
    for row in table.refresh().scan().to_arrow().to_pylist():
        found.setdefault((row["id1"], row["id2"]), []).append(tuple(row.values())[2:])
    assert {key: sorted(rows, key=lambda row: row[0]) for key, rows in found.items()} == expected_rows(PLAN)
