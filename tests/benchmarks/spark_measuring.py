"""A Spark session with two cores for timing statements, and the CPU time of all its processes."""

from __future__ import annotations

import ctypes
import gc
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from measuring import Contender, Timing

from spark_ext import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG: Final = "lake"
_DRIVER_MEMORY: Final = "6g"
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def session_builder(warehouse: Path, *, memory: str = _DRIVER_MEMORY) -> SparkSession.Builder:
    """A builder for `local[2]`, without any catalog yet; Spark's own tables are next to the warehouse."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .appName("tableformat benchmarks")
        .config("spark.driver.memory", memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .config("spark.sql.warehouse.dir", str(warehouse.parent / "spark-warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
    )


@contextmanager
def spark_session(warehouse: Path) -> Iterator[SparkSession]:
    """`local[2]` with the catalog `lake` over the warehouse."""
    session = configure(session_builder(warehouse), catalog=CATALOG, warehouse=warehouse).getOrCreate()
    yield session
    session.stop()


class Stopwatch:
    """Times what Spark does: wall seconds, and CPU seconds of the JVM, the catalog's process and this one."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    def time(self, contender: Contender, timing: Timing) -> None:
        prepared = contender.prepare()
        gc.collect()
        cpu, started = self.cpu_seconds(), time.perf_counter()
        contender.run(prepared)
        timing.wall_seconds.append(time.perf_counter() - started)
        timing.cpu_seconds.append(self.cpu_seconds() - cpu)

    def cpu_seconds(self) -> float:
        """So far, of all of them."""
        return sum(_cpu_seconds_of(pid) for pid in (os.getpid(), self._jvm, *_children(self._jvm)))


def race_in_spark(
    stopwatch: Stopwatch, contenders: Mapping[str, Contender], *, rounds: int, warm_ups: int
) -> dict[str, Timing]:
    """Time all contenders by turns, after warm-up rounds that are not counted, because the JVM compiles code that runs
    often. Every other round is in reverse order, so that none always follows the same one."""
    timings = {name: Timing() for name in contenders}
    for number in range(warm_ups + rounds):
        for name, contender in list(contenders.items())[:: -1 if number % 2 else 1]:
            stopwatch.time(contender, timings[name] if number >= warm_ups else Timing())
    return timings


def ratio_of(timing: Timing, base: Timing) -> tuple[float, float]:
    """The medians of the ratios of each round, in CPU time and in wall time: what changes slowly falls out."""
    cpu = [ours / theirs for ours, theirs in zip(timing.cpu_seconds, base.cpu_seconds, strict=True)]
    wall = [ours / theirs for ours, theirs in zip(timing.wall_seconds, base.wall_seconds, strict=True)]
    return statistics.median(cpu), statistics.median(wall)


def _cpu_seconds_of(pid: int) -> float:
    """The process's own clock, which is finer than the ticks in /proc."""
    clock = ctypes.c_int()
    if _LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)):
        return 0.0
    return time.clock_gettime(clock.value)


def read_bytes_of_children(spark: SparkSession) -> int:
    """The bytes that the catalog's processes have read so far, from files and from the JVM."""
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    texts = (Path(f"/proc/{pid}/io").read_text() for pid in _children(jvm))
    return sum(int(text.partition("rchar: ")[2].partition("\n")[0]) for text in texts)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]
