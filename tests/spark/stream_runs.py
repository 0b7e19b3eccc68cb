"""Streaming queries that stop when they have read all available data, and that are started again."""

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
        has_changes: bool = False,
        **options: Any,
    ) -> None:
        """`has_changes`: the rows that were inserted and deleted, instead of those appended."""
        self._spark = spark
        self._table = table
        self._checkpoint = str(checkpoint)
        self._columns = columns
        self._has_changes = has_changes
        self.options = {name.replace("_", "-"): str(value) for name, value in options.items()}

    def rows(self) -> DataFrame:
        reader = self._spark.readStream.options(**self.options)
        return reader.changes(self._table) if self._has_changes else reader.table(self._table)

    def batches(self) -> list[Rows]:
        """The new rows since the last run: the sorted rows of each micro-batch."""
        found: list[Rows] = []
        self.run(lambda batch: found.append(sorted((tuple(row) for row in batch.collect()), key=str)))
        return found

    def run(self, with_batch: Callable[[DataFrame], object]) -> None:
        self.run_numbered(lambda batch, _number: with_batch(batch))

    def run_numbered(self, with_batch: Callable[[DataFrame, int], object]) -> None:
        """A batch that is run again has the number that it had."""
        query = (
            self._columns(self.rows())
            .writeStream.foreachBatch(with_batch)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """Simulate a driver that died after the last micro-batch, before Spark recorded its completion."""
        commits = Path(self._checkpoint) / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)
