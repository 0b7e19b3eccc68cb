"""Two Java processes and a Python process write to the same table concurrently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tableformat import Catalog, Table

SCHEMA = pa.schema(
    [pa.field("p", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False), ("v", pa.int64())]
)
ROUNDS = 3
_SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from spark_ext import configure
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.ui.showConsoleProgress", "false")
spark = configure(builder, catalog="lake", warehouse=sys.argv[1]).getOrCreate()
for line in sys.stdin:
    try:
        answer = [list(row) for row in spark.sql(json.loads(line)).collect()]
    except Exception as error:
        condition = error.getCondition if hasattr(error, "getCondition") else error.getErrorClass
        answer = {"condition": condition(), "state": error.getSqlState(), "message": str(error)}
    print(json.dumps(answer), flush=True)
"""


class StatementError(Exception):
    """The error that the other session returned instead of rows."""

    def __init__(self, condition: str, state: str, message: str) -> None:
        super().__init__(message)
        self.condition, self.state = condition, state


class OtherSession:
    """A Spark session in its own process."""

    def __init__(self, warehouse: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, str(warehouse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def sql(self, statement: str) -> list[list[object]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(statement) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, dict):
            raise StatementError(**answer)
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def other(spark: SparkSession, lake: Catalog, warehouse: Path) -> Iterator[OtherSession]:
    session = OtherSession(warehouse)
    yield session
    session.close()


@pytest.fixture
def table(lake: Catalog, namespace: str) -> Table:
    return lake.create_table((namespace, "t"), SCHEMA, key=["p", "n"])


def rows(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


def at_once(*writers: Callable[[], None]) -> None:
    with ThreadPoolExecutor(len(writers)) as pool:
        for done in [pool.submit(writer) for writer in writers]:
            done.result()


def repeating_conflicts(run: Callable[[], object]) -> int:
    """Runs a statement until no other commit is in its way; how often one was."""
    for conflicts in range(100):
        try:
            run()
            return conflicts
        except AnalysisException as error:
            state = error.getSqlState()
        except StatementError as error:
            state = error.state
        assert state == "40001"
    raise AssertionError("a statement never came through")


@pytest.mark.long
def test_concurrent_appends_and_prefix_replacements_are_all_kept(
    spark: SparkSession, other: OtherSession, table: Table, lake: Catalog
) -> None:
    """Blind writes have no conflicts, regardless of other writers."""
    name = f"lake.{table.name}"

    def first() -> None:
        for n in range(ROUNDS):
            spark.sql(f"INSERT INTO {name} VALUES ('first', {n}, 0)")
            new = spark.sql(f"SELECT 'first-replaced' p, {n}L n, {n}L v")
            new.writeTo(name).option("replace-prefix", "p").append()

    def second() -> None:
        for n in range(ROUNDS):
            other.sql(f"INSERT INTO {name} VALUES ('second', {n}, 0)")
            other.sql(f"DELETE FROM {name} WHERE p = 'first' AND n = {n} + 1000")

    def python() -> None:
        mine = lake.load_table(table.name)
        for n in range(ROUNDS):
            mine.append(pa.table({"p": ["python"], "n": [n], "v": [0]}, schema=SCHEMA))
            mine.replace(pa.table({"p": ["python-replaced"], "n": [n], "v": [n]}, schema=SCHEMA), prefix=["p"])

    at_once(first, second, python)
    last = ROUNDS - 1
    replaced = [(f"{who}-replaced", last, last) for who in ("first", "python")]
    assert rows(table) == sorted(
        [(who, n, 0) for who in ("first", "second", "python") for n in range(ROUNDS)] + replaced
    )
    assert [tuple(row) for row in other.sql(f"SELECT count(*), max(v) FROM {name}")] == [(3 * ROUNDS + 2, last)]


def test_concurrent_updates_are_all_applied(spark: SparkSession, other: OtherSession, table: Table) -> None:
    """Every MERGE reads and writes the same row: each one counts once, or fails with a conflict."""
    table.append(pa.table({"p": ["counter"], "n": [0], "v": [0]}, schema=SCHEMA))
    statement = f"""
        MERGE INTO lake.{table.name} t USING (SELECT 'counter' p, 0L n) s ON t.p = s.p AND t.n = s.n
        WHEN MATCHED THEN UPDATE SET v = t.v + 1
    """

    def repeat(sql: Callable[[str], object]) -> None:
        for _ in range(ROUNDS):
            repeating_conflicts(lambda: sql(statement))

    at_once(lambda: repeat(spark.sql), lambda: repeat(other.sql))
    assert rows(table) == [("counter", 0, 2 * ROUNDS)]
