"""Reading in Spark, without deletes and with each kind of delete, compared with `spark.read.parquet` of the same
files."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from measuring import Contender, Timing, against_target, heading, show, show_all
from nine_million_rows import benchmark_directory
from spark_measuring import CATALOG, Stopwatch, race_in_spark, ratio_of, read_bytes_of_children, spark_session
from wide_rows import DELETES, MANY_DELETES, WideRows, wide_rows

import tableformat as tf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS = 7
_FIRST_READS = 3
_WARM_UPS = 3
_PARQUET = "spark.read.parquet"
_NONE, _POSITIONS, _LONG, _STRING_AND_LONG, _RANGES = DELETES
_ALL_COLUMNS = ("count(1)", "count(id1)", "sum(id2)", "max(name)", "sum(val)", "max(ts)", "sum(qty)")
_PENDING_AT_MOST = dict(zip(MANY_DELETES, (1.15, 1.3, 1.3), strict=True))
_TWO_COLUMNS_AT_MOST_SECONDS = 0.15

Query = Callable[["DataFrame"], object]


@dataclass(frozen=True)
class Reads:
    """A session, and a table for each kind of delete over the same data files."""

    spark: SparkSession
    base: WideRows
    catalog: tf.Catalog

    def parquet(self) -> DataFrame:
        return self.spark.read.parquet(*self.base.paths)

    def table(self, name: str) -> DataFrame:
        return self.spark.table(f"{CATALOG}.{name}")

    def new_table(self, kind: str, *, is_converted: bool = False) -> str:
        """The name of another table with such deletes, which no process has read yet."""
        name = f"reads.t{uuid.uuid4().hex}"
        table = self.base.copy(self.catalog, name)
        delete = (DELETES | MANY_DELETES)[kind]
        if delete is not None:
            delete(self.base, table)
        if is_converted:
            table.maintenance.convert_deletes()
        return name


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reads]:
    home = tmp_path_factory.mktemp("spark-reads")
    base = wide_rows(benchmark_directory(home))
    catalog = tf.open_catalog(str(home / "warehouse"))
    catalog.create_namespace("reads")
    with spark_session(home / "warehouse") as spark:
        yield Reads(spark, base, catalog)


@pytest.fixture(scope="module")
def tables(reads: Reads) -> dict[str, str]:
    """A table for each kind of delete, its deletes resolved: its rows were counted once."""
    names = {kind: reads.new_table(kind) for kind in DELETES}
    heading(f"{reads.base.row_count:,} rows in {len(reads.base.paths)} files of {reads.base.size_bytes:,} bytes")
    for kind, name in names.items():
        show(kind, f"{reads.table(name).count():>12,} rows")
    return names


def aggregate(frame: DataFrame) -> object:
    """Seven aggregates over all six columns."""
    return frame.selectExpr(*_ALL_COLUMNS).collect()


def full_read(frame: DataFrame) -> object:
    """Every row of every column to a sink that drops it."""
    return frame.write.format("noop").mode("overwrite").save()


def two_columns(frame: DataFrame) -> object:
    """An aggregate that reads one column."""
    return frame.selectExpr("count(1)", "sum(qty)").collect()


@pytest.mark.parametrize(
    ("query", "at_most"),
    [
        (aggregate, {_NONE: 1.10, _POSITIONS: 1.10, _LONG: 1.20, _STRING_AND_LONG: 1.30, _RANGES: 1.10}),
        (full_read, {_NONE: 1.15, _POSITIONS: 1.25, _LONG: 1.35, _STRING_AND_LONG: 1.50, _RANGES: 1.25}),
        (two_columns, {}),
    ],
)
def test_repeated_reads(reads: Reads, tables: dict[str, str], query: Query, at_most: dict[str, float]) -> None:
    contenders = {_PARQUET: Contender(query, reads.parquet)}
    for kind, name in tables.items():
        contenders[kind] = Contender(query, lambda name=name: reads.table(name))
    timings = race_in_spark(Stopwatch(reads.spark), contenders, rounds=_ROUNDS, warm_ups=_WARM_UPS)

    heading(f"{query.__name__.replace('_', ' ')}, against {_PARQUET}")
    show_all(timings)
    for kind in tables:
        cpu, wall = ratio_of(timings[kind], timings[_PARQUET])
        if kind in at_most:
            against_target(f"{kind}, CPU time", cpu, at_most[kind])
            show(f"{kind}, wall time", f"{wall:9.3f} x")
        else:
            show(f"{kind}, CPU time and wall time", f"{cpu:9.3f} x {wall:9.3f} x")
            more = timings[kind].cpu - timings[_NONE].cpu
            against_target(f"{kind}, CPU time above the clean table", more, _TWO_COLUMNS_AT_MOST_SECONDS, "s")


@pytest.mark.parametrize("query", [aggregate, full_read])
def test_first_reads(reads: Reads, tables: dict[str, str], query: Query) -> None:
    """The first read of a snapshot resolves its deletes; what is left afterwards is in the catalog's process."""
    stopwatch = Stopwatch(reads.spark)
    timings = {_PARQUET: Timing()} | {kind: Timing() for kind in DELETES}
    for number in range(1 + _FIRST_READS):
        kept = timings if number else {name: Timing() for name in timings}
        stopwatch.time(Contender(query, reads.parquet), kept[_PARQUET])
        for kind in DELETES:
            name = reads.new_table(kind)
            stopwatch.time(_first_read(reads, query, name), kept[kind])

    heading(f"{query.__name__.replace('_', ' ')}, the first read of a table, against {_PARQUET}")
    show_all(timings)
    for kind in DELETES:
        cpu, wall = ratio_of(timings[kind], timings[_PARQUET])
        show(f"{kind}, CPU time and wall time", f"{cpu:9.3f} x {wall:9.3f} x")


@pytest.mark.parametrize("query", [aggregate, two_columns])
def test_pending_deletes_against_converted_ones(reads: Reads, query: Query) -> None:
    """Range and equality deletes that executors compare with rows, against the same deletes as positions. "first" is a
    table that no process has read; the row of bytes is what the catalog's process read for one of them."""
    stopwatch = Stopwatch(reads.spark)
    for kind, at_most in _PENDING_AT_MOST.items():
        contenders = {"converted": reads.new_table(kind, is_converted=True), "pending": reads.new_table(kind)}
        repeated = {
            name: Contender(query, lambda table=table: reads.table(table)) for name, table in contenders.items()
        }
        timings = race_in_spark(stopwatch, repeated, rounds=_ROUNDS, warm_ups=_WARM_UPS)
        first = {name: Timing() for name in contenders}
        for _ in range(_FIRST_READS):
            for name in contenders:
                table = reads.new_table(kind, is_converted=name == "converted")
                before = read_bytes_of_children(reads.spark)
                stopwatch.time(_first_read(reads, query, table), first[name])
                read_bytes = read_bytes_of_children(reads.spark) - before
        heading(f"{query.__name__.replace('_', ' ')}, {kind}")
        show_all(timings | {f"{name}, first": timing for name, timing in first.items()})
        show("read by the catalog's process for a first read", f"{read_bytes:>12,} bytes")
        for state, of_state in (("repeated", timings), ("first", first)):
            cpu, wall = ratio_of(of_state["pending"], of_state["converted"])
            against_target(f"{kind}, {state}, CPU time", cpu, at_most)
            show(f"{kind}, {state}, wall time", f"{wall:9.3f} x")


def _first_read(reads: Reads, query: Query, name: str) -> Contender:
    def run(_: Any) -> object:
        return query(reads.table(name))

    return Contender(run)
