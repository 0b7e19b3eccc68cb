"""A table with upkeep in which a streaming query replaces messages for a long time: the measures of
test_upkeep_bench.py, in Spark.

`TABLEFORMAT_UPKEEP_BATCHES` sets the number of micro-batches, by default 300.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from measuring import heading, show
from spark_measuring import CATALOG, spark_session
from table_with_upkeep import Look, look_at, show_looks
from test_upkeep_bench import KEY, MESSAGES, REPLACED, ROWS_EACH, growth, messages

import tableformat as tf
from tableformat.maintenance.upkeep.ledger import Ledger
from tableformat.storage.location import local_path

BATCHES = int(os.environ.get("TABLEFORMAT_UPKEEP_BATCHES", "300"))
_LOOKS = 15
_SCHEMA = "id1 STRING, id2 BIGINT, num_cal INT, amount DOUBLE"


def pieces(count: int) -> Iterator[int]:
    """How many micro-batches go before each look at the table."""
    done = 0
    for look in range(1, _LOOKS + 1):
        upto = count * look // _LOOKS
        yield upto - done
        done = upto


@pytest.mark.parametrize("mode", ["writer", "background", "off"])
def test_upkeep_during_a_long_replacing_stream(tmp_path: Path, mode: str) -> None:
    warehouse, source = tmp_path / "lake", tmp_path / "source"
    source.mkdir()
    catalog = tf.open_catalog(str(warehouse))
    catalog.create_namespace("db")
    rows = messages(0, MESSAGES, ROWS_EACH, 0)
    table = catalog.create_table("db.t", rows.schema, key=KEY, properties={"tableformat.upkeep": mode})
    table.append(rows)
    loaded_bytes = Ledger.of(table.metadata, table.view.snapshot).written_bytes
    random = np.random.default_rng(1)
    batch_seconds: list[float] = []
    looks: list[Look] = []
    metadata_bytes: list[int] = []
    with spark_session(warehouse) as spark:
        for count in pieces(BATCHES):
            for _ in range(count):
                number = len(list(source.iterdir()))
                batch = messages(int(random.integers(0, MESSAGES - REPLACED)), REPLACED, 15, number)
                path = source / f"{number:06}.parquet"
                pq.write_table(batch, path)
                os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
            query = (
                spark.readStream.schema(_SCHEMA)
                .option("maxFilesPerTrigger", 1)
                .parquet(str(source))
                .writeStream.option("replace-prefix", "id1,id2")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .toTable(f"{CATALOG}.db.t")
            )
            query.awaitTermination()
            # The first batch of a query starts it.
            took = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress]
            batch_seconds += took[1 : count + 1]
            reader = catalog.load_table("db.t")
            metadata_path = local_path(reader.iceberg.metadata_location)
            assert metadata_path is not None
            metadata_bytes.append(Path(metadata_path).stat().st_size)
            looks.append(look_at(catalog, "db.t", len(list(source.iterdir()))))
    table.refresh()
    ledger = Ledger.of(table.metadata, table.view.snapshot)
    found = table.scan().to_arrow().sort_by([(name, "ascending") for name in KEY])
    table.maintenance.compact(rewrite_all=True)
    assert table.scan().to_arrow().sort_by([(name, "ascending") for name in KEY]).equals(found)
    heading(f"{mode}, {BATCHES} micro-batches of {REPLACED} messages")
    show_looks(looks)
    show("metadata file at the first look; at the last", f"{metadata_bytes[0]:,}; {metadata_bytes[-1]:,} bytes")
    # Until then the JVM compiles what every micro-batch runs.
    warm = batch_seconds[len(batch_seconds) // 5 :]
    show("micro-batch p50 of the last tenth against the first, of the last four fifths", f"{growth(warm):.2f}")
    show("micro-batch p50; p99", f"{statistics.median(batch_seconds):.3f} s; {np.percentile(batch_seconds, 99):.3f} s")
    written = ledger.written_bytes - loaded_bytes
    show("bytes written for each byte of the batches", f"{1 + ledger.rewritten_bytes / written:.2f}")
