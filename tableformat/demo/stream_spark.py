"""Writes the demo's messages with Spark: the sink of the catalog replaces the rows of each message."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_ext import configure
from tableformat.demo.messages import CALENDARS, PREFIX
from tableformat.demo.report import BatchFigures
from tableformat.metadata.snapshot_view import last_sequence_number
from tableformat.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG: Final = "lake"
_POLL_SECONDS: Final = 1
_MESSAGE_SCHEMA: Final = "message_number bigint, id1 string, id2 bigint, " + ", ".join(
    f"{name} array<date>" for name in CALENDARS
)


@contextmanager
def local_spark(warehouse: Path) -> Iterator[SparkSession]:
    """An embedded session on two cores without log output, with the lake as catalog."""
    from pyspark.sql import SparkSession

    # Workers must use the Python that has this library, not the `python3` on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tableformat demo")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    session = configure(builder, catalog=CATALOG, warehouse=warehouse).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def run_stream(
    spark: SparkSession,
    table: Table,
    messages_directory: Path,
    checkpoint_directory: Path,
    on_batch: Callable[[BatchFigures], None],
) -> None:
    """Replace the rows of every message, one micro-batch for each input file, until the directory is exhausted."""
    messages = spark.readStream.schema(_MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1).json(str(messages_directory))
    seen = last_sequence_number(table.metadata)
    query = (
        explode(messages)
        .writeStream.option("checkpointLocation", str(checkpoint_directory))
        .option("replace-prefix", ",".join(PREFIX))
        .option("order-by", "message_number")
        .trigger(availableNow=True)
        .toTable(f"{CATALOG}.{table.name}")
    )
    is_done = False
    while not is_done:
        is_done = bool(query.awaitTermination(_POLL_SECONDS))
        for snapshot in table.refresh().metadata.snapshots:
            if (snapshot.sequence_number or 0) > seen:
                seen = snapshot.sequence_number or 0
                on_batch(BatchFigures.of(snapshot))


def explode(messages: DataFrame) -> DataFrame:
    """The rows of all messages; a message without dates gives one row without a number."""
    from pyspark.sql import functions

    numbered = messages.select(
        "message_number",
        *PREFIX,
        functions.posexplode_outer(functions.arrays_zip(*CALENDARS)).alias("position", "dates"),
    )
    return numbered.select(
        *PREFIX,
        (functions.col("position") + 1).cast("int").alias("num_cal"),
        *(functions.col("dates")[name].alias(name) for name in CALENDARS),
        "message_number",
    )
