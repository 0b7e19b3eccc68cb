"""Runs of streaming queries that stop when they have read what is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[Any, ...]]


def unchanged(rows: DataFrame) -> DataFrame:
    return rows


class Source:
    """A stream that reads one table with one checkpoint, again and again."""

    def __init__(
        self,
        spark: SparkSession,
        table: str,
        checkpoint: Path,
        *,
        columns: Callable[[DataFrame], DataFrame] = unchanged,
        **options: Any,
    ) -> None:
        self._spark = spark
        self._table = table
        self._checkpoint = str(checkpoint)
        self._columns = columns
        self.options = {name.replace("_", "-"): str(value) for name, value in options.items()}

    def rows(self) -> DataFrame:
        return self._spark.readStream.options(**self.options).table(self._table)

    def batches(self) -> list[Rows]:
        """What is new since the last run: the sorted rows of each micro-batch."""
        found: list[Rows] = []

        def collect(batch: DataFrame, _number: int) -> None:
            found.append(sorted(tuple(row) for row in batch.collect()))

        query = (
            self._columns(self.rows())
            .writeStream.foreachBatch(collect)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return found

    def forget_last_commit(self) -> None:
        """As if the driver had died after the last micro-batch, before Spark wrote down that it was done."""
        commits = Path(self._checkpoint) / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)
