"""The cost of range partitions: the check of every row, dropping few and many files, listing, and metadata."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measuring import Contender, against_target, heading, race, show, show_all
from opened_files import OpenedFiles
from spark_measuring import CATALOG, Stopwatch, race_in_spark, ratio_of, spark_session

import tableformat as tf
from tableformat.metadata.snapshot_choice import head_view
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions import listing
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.property_text import range_partitions_of, to_property
from tableformat.testing.replacing import replaced

_ROWS = 1_000_000
_ROUNDS = 9
_ROUNDS_IN_SPARK = 10
_WARM_UPS = 4
_COLUMNS = [
    pa.field("ts", pa.timestamp("us"), nullable=False),
    pa.field("id", pa.int64(), nullable=False),
    pa.field("region", pa.string(), nullable=False),
    pa.field("amount", pa.float64()),
    pa.field("note", pa.string()),
]
SCHEMA = pa.schema(_COLUMNS)
BEGIN = dt.datetime(2024, 1, 1)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        yield catalog


def some_rows(count: int = _ROWS, days: int = 1) -> pa.Table:
    random = np.random.default_rng(1)
    moments = np.datetime64(BEGIN, "us") + random.integers(0, days * 86_400_000_000, count).astype("timedelta64[us]")
    regions = pa.array([f"region {number}" for number in range(20)]).take(pa.array(random.integers(0, 20, count)))
    columns = [
        moments,
        np.arange(count),
        regions,
        random.random(count),
        pa.array(random.integers(0, 10**9, count)).cast(pa.string()),
    ]
    return pa.table([pa.array(column) for column in columns], schema=SCHEMA)


CASES: dict[str, tf.RangePartitions] = {
    "one bound of a timestamp": tf.RangePartitions(on=["ts"], bounds=[(BEGIN, BEGIN + dt.timedelta(days=90))]),
    "a bound for each of 20 texts": tf.list_partitions("region", [f"region {number}" for number in range(20)]),
    "timestamp and number": tf.RangePartitions(
        on=["ts", "id"], bounds=[((BEGIN, 0), (BEGIN + dt.timedelta(days=90),))]
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_append_compared_with_table_without_range_partitions(case: str, catalog: tf.Catalog, benchmark: Any) -> None:
    ranges = CASES[case]
    names = ["region"] if list(ranges.on) == ["region"] else []
    keyed: dict[str, Any] = {"key": ["id"], "partition_by": names}
    ours = catalog.create_table("db.ours", SCHEMA, range_partitions=ranges, **keyed)
    plain = catalog.create_table("db.plain", SCHEMA, **keyed)
    rows = some_rows()
    timings = race(
        benchmark,
        {
            "with": Contender(lambda _: ours.append(rows)),
            "without": Contender(lambda _: plain.append(rows)),
        },
        rounds=_ROUNDS,
    )
    heading(f"append of {_ROWS:,} rows, {case}")
    show_all(timings)
    against_target("with against without, CPU time", timings["with"].cpu / timings["without"].cpu, 1.05)


def test_spark_append_compared_with_table_without_range_partitions(tmp_path: Path) -> None:
    """Both contenders read the rows from Parquet each time, in key order."""
    warehouse, source = tmp_path / "warehouse", tmp_path / "rows.parquet"
    pq.write_table(some_rows(), source)
    with tf.open_catalog(str(warehouse)) as catalog, spark_session(warehouse) as spark:
        catalog.create_namespace("db")

        def append(name: str, case: str, ranges: tf.RangePartitions | None) -> Contender:
            identifier = f"db.{name}_{list(CASES).index(case)}"

            def new_table() -> str:
                if catalog.table_exists(identifier):
                    catalog.drop_table(identifier, purge=True)
                names = ["region"] if list(CASES[case].on) == ["region"] else []
                catalog.create_table(identifier, SCHEMA, key=["id"], partition_by=names, range_partitions=ranges)
                return f"{CATALOG}.{identifier}"

            return Contender(lambda table: spark.read.parquet(str(source)).writeTo(table).append(), new_table)

        stopwatch = Stopwatch(spark)
        for case, ranges in CASES.items():
            contenders = {"with": append("ours", case, ranges), "without": append("plain", case, None)}
            timings = race_in_spark(stopwatch, contenders, rounds=_ROUNDS_IN_SPARK, warm_ups=_WARM_UPS)
            heading(f"append of {_ROWS:,} rows from Spark, {case}")
            show_all(timings)
            cpu, _ = ratio_of(timings["with"], timings["without"])
            against_target("with against without, CPU time", cpu, 1.05)


@pytest.mark.parametrize("files", [1, 1_000])
def test_drop_opens_no_data_file(files: int, catalog: tf.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    days = tf.RangePartitions(on=["ts"], bounds=[(BEGIN, BEGIN + dt.timedelta(days=1_001))], step="1 day")
    table = catalog.create_table("db.t", SCHEMA, key=["ts", "id"], range_partitions=days)
    table.append(some_rows(20_020, days=1_001))
    opened = OpenedFiles()
    opened.watch(monkeypatch)
    started = time.process_time()
    result = table.range_partitions.drop(BEGIN, BEGIN + dt.timedelta(days=files), metadata_only=True)
    seconds = time.process_time() - started
    monkeypatch.undo()
    heading(f"drop of {files:,} of 1,001 files")
    show("CPU time", f"{seconds * 1000:9.1f} ms")
    assert result.removed_data_files_count == files
    assert opened.of(".parquet") == []


def test_list_and_metadata_of_ten_thousand_partitions(catalog: tf.Catalog) -> None:
    """The manifests of 100,000 files are stood in for by entries in memory: reading them is what every plan does."""
    days = tf.RangePartitions(on=["ts"], bounds=[(BEGIN, BEGIN + dt.timedelta(days=10_000))], step="1 day")
    table = catalog.create_table("db.t", SCHEMA, key=["ts", "id"], range_partitions=days)
    table.append(some_rows(10_000, days=1_000))
    view = head_view(table.metadata, table.iceberg.io)
    defined = range_partitions_of(table.properties, table.metadata.schema())
    assert defined is not None
    heading("10,000 partitions")
    show("property", f"{len(table.properties[RANGE_PARTITIONS]):,} bytes")
    read = listing.read_manifest
    known: dict[Any, Any] = {}

    def a_hundred_times(io: Any, manifest: Any, metadata: Any) -> Any:
        if manifest not in known:
            known[manifest] = list(read(io, manifest, metadata)) * 100
        return known[manifest]

    with replaced(read, a_hundred_times):
        listing.partition_contents(view, defined)
        started = time.process_time()
        listed = listing.partition_contents(view, defined).to_arrow()
        seconds = time.process_time() - started
    show(f"list of {sum(listed['file_count'].to_pylist()):,} files, CPU time", f"{seconds:9.2f} s")
    texts = define(
        tf.list_partitions("region", [f"region {number}" for number in range(1_000)]), table.metadata.schema()
    )
    show("1,000 list partitions, property", f"{len(to_property(texts)):,} bytes")
