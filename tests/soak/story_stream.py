"""The streaming query of the story: as in the guide, in its own process or on a session of the tests.

Run as a program it is the driver of one stream: `story_stream.py WAREHOUSE TABLE MESSAGES CHECKPOINT MODE`, where MODE
is "forever" or "once".
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from soak_figures import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

MESSAGE: Final = "at BIGINT, offset BIGINT, customer STRING, `order` BIGINT, items ARRAY<STRING>"
FOREVER: Final = {"processingTime": "100 milliseconds"}
ONCE: Final = {"availableNow": True}
_SECONDS_OF_A_START: Final = 600


def start_query(
    spark: SparkSession, table: str, messages: Path, checkpoint: Path, trigger: dict[str, Any]
) -> StreamingQuery:
    from pyspark.sql import functions

    source = spark.readStream.schema(MESSAGE).option("maxFilesPerTrigger", random.randint(1, 3)).json(str(messages))
    lines = functions.posexplode_outer("items").alias("position", "item")
    exploded = source.select("at", "offset", "customer", "order", lines)
    return (
        exploded.withColumn("line", (functions.col("position") + 1).cast("int"))
        .drop("position")
        .writeStream.option("checkpointLocation", str(checkpoint))
        .option("replace-prefix", "customer,order")
        .option("order-by", "at,offset")
        .trigger(**trigger)
        .toTable(table)
    )


def committed_batches(checkpoint: Path) -> int:
    """The micro-batches that Spark has noted as done; each has a file at least."""
    numbers = [int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()]
    return max(numbers, default=-1) + 1


@dataclass
class SessionStream:
    """A query on a session that others use too. It is ended by interrupting its threads."""

    spark: SparkSession
    table: str
    messages: Path
    checkpoint: Path
    _query: StreamingQuery | None = None

    def start(self) -> None:
        self._query = start_query(self.spark, self.table, self.messages, self.checkpoint, FOREVER)

    @property
    def has_begun(self) -> bool:
        assert self._query is not None
        assert self._query.exception() is None
        return self._query.lastProgress is not None

    def end_at_random(self) -> None:
        assert self._query is not None
        self._query.stop()

    def finish(self) -> None:
        start_query(self.spark, self.table, self.messages, self.checkpoint, ONCE).awaitTermination()

    def abandon(self) -> None:
        if self._query is not None:
            self._query.stop()

    @property
    def committed_batches(self) -> int:
        return committed_batches(self.checkpoint)


@dataclass
class ProcessStream:
    """A driver in a separate process, with the catalog's process as its child. It is ended by SIGKILL."""

    warehouse: Path
    table: str
    messages: Path
    checkpoint: Path
    draw: random.Random
    log: Path
    _process: subprocess.Popen[bytes] | None = None
    _batches_at_start: int = 0

    def start(self) -> None:
        self._batches_at_start = self.committed_batches
        self._process = self._started("forever")

    @property
    def has_begun(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the driver has ended by itself:\n{self.log.read_text()[-3000:]}"
        return self.committed_batches > self._batches_at_start

    def end_at_random(self) -> None:
        """Kill the whole driver, its Java process alone, or the catalog's process alone."""
        assert self._process is not None
        java = next(iter(_children(self._process.pid)), None)
        catalog = None if java is None else next(iter(_children(java)), None)
        kind = self.draw.choice(("driver", "java", "catalog"))
        victim = {"driver": None, "java": java, "catalog": catalog}[kind]
        count(f"kills of the {kind}")
        if victim is not None:
            os.kill(victim, signal.SIGKILL)
            time.sleep(self.draw.uniform(0, 1))
        self.abandon()

    def finish(self) -> None:
        self._process = self._started("once")
        assert self._process.wait(_SECONDS_OF_A_START) == 0, self.log.read_text()[-3000:]

    def abandon(self) -> None:
        """The group lasts as long as one of its processes does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    @property
    def committed_batches(self) -> int:
        return committed_batches(self.checkpoint)

    def _started(self, mode: str) -> subprocess.Popen[bytes]:
        arguments = [self.warehouse, self.table, self.messages, self.checkpoint, mode]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, __file__, *map(str, arguments)], stdout=log, stderr=log, start_new_session=True
            )


def _children(pid: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == pid:
            yield int(stat.parent.name)


def main() -> None:
    from pyspark.sql import SparkSession

    from spark_ext import configure

    warehouse, table, messages, checkpoint, mode = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    spark = configure(builder, catalog="lake", warehouse=warehouse).getOrCreate()
    trigger = FOREVER if mode == "forever" else ONCE
    start_query(spark, table, Path(messages), Path(checkpoint), trigger).awaitTermination()


if __name__ == "__main__":
    main()
