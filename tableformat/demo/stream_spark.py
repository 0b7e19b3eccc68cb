"""Writes the demo's messages with Spark: executors write Parquet files, the driver commits and reads no rows."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tableformat.demo.messages import CALENDARS, PREFIX
from tableformat.operations.drafts.result import CommitResult
from tableformat.operations.staged_write import StagedWrite
from tableformat.table import Table
from tableformat.write.staged import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPLICATION_ID: Final = "demo-stream"
_MESSAGE_SCHEMA: Final = "message_number bigint, id1 string, id2 bigint, " + ", ".join(
    f"{name} array<date>" for name in CALENDARS
)


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """A quiet embedded session on two cores."""
    from pyspark.sql import SparkSession

    # Workers must be the Python that has this library, whatever `python3` is on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tableformat demo")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()


def run_stream(
    spark: SparkSession,
    table: Table,
    messages_directory: Path,
    checkpoint_directory: Path,
    on_batch: Callable[[int, CommitResult], None],
) -> None:
    """Replace the rows of every message, one input file a micro-batch, until the directory is exhausted."""
    messages = spark.readStream.schema(_MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1).json(str(messages_directory))
    query = (
        messages.writeStream.foreachBatch(partial(_replace_batch, table, on_batch))
        .option("checkpointLocation", str(checkpoint_directory))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _replace_batch(
    table: Table, on_batch: Callable[[int, CommitResult], None], messages: DataFrame, batch_id: int
) -> None:
    """One micro-batch is one snapshot; Spark may call this again for the same batch, which then changes nothing."""
    write = table.new_write(kind="replace", prefix=PREFIX)
    staged = explode(messages).mapInArrow(partial(write_partition, write), "staged binary").collect()
    result = table.commit(
        write, [pickle.loads(row.staged) for row in staged], application_id=APPLICATION_ID, batch_id=batch_id
    )
    on_batch(batch_id, result)


def explode(messages: DataFrame) -> DataFrame:
    """The newest message of each business key as rows; a message without dates gives one row without a number."""
    from pyspark.sql import Window, functions

    newest_first = Window.partitionBy(*PREFIX).orderBy(functions.desc("message_number"))
    newest = messages.withColumn("age", functions.row_number().over(newest_first)).where("age = 1")
    numbered = newest.select(
        *PREFIX, functions.posexplode_outer(functions.arrays_zip(*CALENDARS)).alias("position", "dates")
    )
    return numbered.select(
        *PREFIX,
        (functions.col("position") + 1).cast("int").alias("num_cal"),
        *(functions.col("dates")[name].alias(name) for name in CALENDARS),
    )


def write_partition(write: StagedWrite, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On an executor: write the rows of one partition, and hand the driver what it needs to commit them."""
    empty: list[pa.RecordBatch] = []

    def with_rows() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            has_row = pc.is_valid(batch.column("num_cal"))
            empty.append(batch.filter(pc.invert(has_row)).select(list(PREFIX)))
            yield batch.filter(has_row)

    staged = [write.write(with_rows())]
    if any(batch.num_rows for batch in empty):
        staged.append(write.cover(pa.Table.from_batches(empty)))
    yield pa.record_batch({"staged": pa.array([pickle.dumps(StagedFiles.merge(staged))], pa.binary())})
