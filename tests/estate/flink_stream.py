"""A Flink process, and a stream with a known state at each of its numbers.

Number n of the stream sets the value of one of 500 keys to n; if the number of a key is divisible by seven, the key is
deleted. An additional row, the clock, always has the newest number. So the clock of a checkpoint determines its rows.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from servers import CACHE, HERE

import tableformat as tf

PYTHON: Final = HERE.parents[1] / ".venv-flink" / "bin" / "python"
JARS: Final = CACHE / "flink"
SCHEMA: Final = pa.schema([("id1", pa.string()), ("id2", pa.int64()), ("n", pa.int64())])
KEY: Final = ["id1", "id2"]
CATALOG: Final = "tableformat"
"""The name of the catalog in Flink: a lake stores its tables under this name."""
SETTINGS: Final = {
    "execution.checkpointing.interval": "1 s",
    "restart-strategy.type": "none",
    "parallelism.default": "1",
}
Row = tuple[str, int, int]

_LATEST: Final = """
    SELECT id1, id2, LAST_VALUE(n) AS n FROM (
        SELECT id1, id2, LAST_VALUE(n) AS n FROM (
            SELECT CASE WHEN k < 0 THEN 'clock' ELSE 'k' || CAST(MOD(k, 3) AS STRING) END AS id1, k AS id2, n
            FROM numbers CROSS JOIN UNNEST(ARRAY[MOD(n * 37, 500), -1]) AS keys (k))
        GROUP BY id1, id2 HAVING id2 < 0 OR MOD(LAST_VALUE(n), 7) <> 0)
    GROUP BY id1, id2"""
"""The outer groups make deletes of rows that the inner ones take back: Iceberg's sink ignores the latter."""


def state_at(clock: int) -> list[Row]:
    """The rows after number `clock`, sorted."""
    latest = {number * 37 % 500: number for number in range(clock + 1)}
    rows = [(f"k{key % 3}", key, number) for key, number in latest.items() if number % 7]
    return sorted([*rows, ("clock", -1, clock)])


def clock_of(rows: list[Row]) -> int:
    [clock] = [n for id1, _, n in rows if id1 == "clock"]
    return clock


def create(catalog: tf.Catalog, name: str, *, version: str, partitioned: bool) -> tf.Table:
    """An empty table for Flink's upserts, which keeps metadata files long enough for slow readers."""
    properties = {
        "format-version": version,
        "write.upsert.enabled": "true",
        "write.metadata.previous-versions-max": "1000",
        "commit.retry.min-wait-ms": "1",
    }
    with pytest.warns(tf.errors.PropertyWithoutEffectWarning, match=r"write\.upsert\.enabled"):
        return catalog.create_table(
            name, SCHEMA, key=KEY, partition_by=["bucket(2, id2)"] if partitioned else [], properties=properties
        )


class Flink:
    """Statements of SQL to a process of Flink."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"Flink ended with {self._process.wait(60)}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, f"{request}: {answer['error']}"
        return answer

    def open(self, options: Mapping[str, str]) -> None:
        """Open the catalog `CATALOG`, replacing the former one."""
        self.ask(sql="DROP CATALOG IF EXISTS " + CATALOG)
        self.ask(sql="DROP CATALOG IF EXISTS " + CATALOG, mode="batch")
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in {"type": "iceberg", **options}.items())
        self.ask(sql=f"CREATE CATALOG {CATALOG} WITH ({listed})")

    def upsert(self, tables: list[str], *, rate: int, settings: Mapping[str, str] = SETTINGS) -> int:
        """Starts a job that writes so many numbers a second to each of the tables, until it is cancelled."""
        self.ask(sql="DROP TEMPORARY TABLE IF EXISTS numbers")
        sequence = "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '300000'"
        generated = f"'connector' = 'datagen', {sequence}, 'rows-per-second' = '{rate}'"
        self.ask(sql=f"CREATE TEMPORARY TABLE numbers (n BIGINT) WITH ({generated})")
        inserts = " ".join(f"INSERT INTO {CATALOG}.{table} {_LATEST};" for table in tables)
        statement = f"EXECUTE STATEMENT SET BEGIN {inserts} END"
        job: int = self.ask(sql=statement, set={**SETTINGS, **settings})["job"]
        return job

    def cancel(self, job: int) -> None:
        self.ask(cancel=job)

    def is_running(self, job: int) -> bool:
        """Whether the job is running. Raises if it has failed, because nothing restarts it."""
        running: bool = self.ask(job=job)["running"]
        return running

    def rows(self, table: str) -> list[Row]:
        """The rows that Flink reads, sorted."""
        found = self.ask(sql=f"SELECT id1, id2, n FROM {CATALOG}.{table}", mode="batch")["rows"]
        return sorted((id1, id2, n) for id1, id2, n in found)


@contextmanager
def flink_process(directory: Path) -> Iterator[Flink]:
    """A Flink process. If PyFlink or the jars are not installed, the test is skipped. Flink's output is in flink.log in
    the directory."""
    if not PYTHON.exists() or not JARS.is_dir():
        pytest.skip("PyFlink or Iceberg's runtime for it is not there: make test-estate fetches them")
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "JDK_JAVA_OPTIONS"}}
    environment |= {
        "HADOOP_CLASSPATH": f"{JARS}/*",
        "FLINK_LOG_DIR": str(directory),
        "JVM_ARGS": "-Xmx1500m -XX:TieredStopAtLevel=1",
        "AWS_REGION": "us-east-1",
    }
    with (directory / "flink.log").open("w") as log:
        process = subprocess.Popen(
            [PYTHON, HERE / "flink" / "session.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
        try:
            yield Flink(process)
        finally:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(timeout=120)
            process.stdout.close()
