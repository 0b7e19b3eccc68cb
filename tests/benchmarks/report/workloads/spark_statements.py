"""Spark statements on one table of ours, of Iceberg and of Delta, on the Spark version that the latter two support."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from report.systems.process import System
from report.workloads.contest import Contest, Setting, contest

WORKLOAD = "spark"
BARE = "spark.read.parquet"
_ROWS = 1_000_000
_READS = 3
_BATCHES = 15
_COLUMNS = (
    "id1 STRING NOT NULL, id2 BIGINT NOT NULL, num_cal INT NOT NULL, k BIGINT, amount BIGINT, ts TIMESTAMP, txt STRING"
)
_AGGREGATE = (
    "SELECT count(*), sum(amount), sum(id2), sum(num_cal), sum(k), min(txt), max(txt), max(id1), "
    "max(ts) IS NULL FROM {t}"
)
_CHANGED = (
    "SELECT id1, id2, num_cal, k, amount + 1 amount, ts, txt FROM src WHERE k % 100 = 9 "
    "UNION ALL SELECT concat('N', id1), id2, num_cal, -k, amount, ts, txt FROM src WHERE k % 1000 = 11"
)
_MERGE = (
    "MERGE INTO {t} t USING changed s ON t.id1 = s.id1 AND t.id2 = s.id2 AND t.num_cal = s.num_cal "
    "WHEN MATCHED THEN UPDATE SET amount = s.amount "
    "WHEN NOT MATCHED THEN INSERT (id1, id2, num_cal, k, amount, ts, txt) "
    "VALUES (s.id1, s.id2, s.num_cal, s.k, s.amount, s.ts, s.txt)"
)


def spark_systems(python: str) -> list[System]:
    """One session each."""
    named = {"tableformat": "tableformat", "Iceberg": "Iceberg", "Delta": "Delta", BARE: "bare files"}
    return [System(name, "on_spark", "OnSpark", python, (dialect,)) for name, dialect in named.items()]


def run(setting: Setting) -> None:
    """Once; the reads are repeated."""
    setting.measurements.sizes[WORKLOAD] = f"{_ROWS:,} rows of seven columns, local[2]"
    source = setting.directory / "src.parquet"
    oracle = _source(source)
    oracle.execute(f"CREATE VIEW src AS FROM '{source}'")
    oracle.execute("CREATE TABLE t AS FROM src")
    oracle.execute(f"CREATE TABLE changed AS {_CHANGED}")
    with contest(WORKLOAD, setting, spark_systems(setting.systems[0].python), setting.directory) as entered:
        entered.each("view", "view", name="src", path=str(source), is_recorded=False)
        _statements(entered, oracle)
    oracle.close()


def _statements(entered: Contest, oracle: duckdb.DuckDBPyConnection) -> None:
    tables = [name for name in entered.systems if name != BARE]
    entered.each("table", "table", only=tables, name="t", columns=_COLUMNS, key="id1, id2, num_cal", is_recorded=False)
    # The first statement of a session compiles what all later ones use.
    for _ in range(2):
        _sql(entered, "warm up", _AGGREGATE.format(t="src"), is_recorded=False)
    entered.each("append", "append", name="t", query="SELECT * FROM src")
    _read(entered, oracle, "clean")
    for what, statement in (
        ("DELETE of 1 %, scattered", "DELETE FROM {t} WHERE k % 100 = 7"),
        ("DELETE by prefix", "DELETE FROM {t} WHERE id1 = 'C00000500'"),
        ("UPDATE of 0.1 %", "UPDATE {t} SET amount = 0 WHERE k % 1000 = 3"),
    ):
        oracle.execute(statement.format(t="t"))
        _sql(entered, what, statement, only=tables)
        _read(entered, oracle, f"after {what}")
    _sql(entered, "view", f"CREATE TEMP VIEW changed AS {_CHANGED}", only=tables, is_recorded=False)
    oracle.execute("UPDATE t SET amount = s.amount FROM changed s WHERE t.k = s.k")
    oracle.execute("INSERT INTO t FROM changed WHERE k < 0")
    _sql(entered, "MERGE of 1 %", _MERGE, only=tables)
    _read(entered, oracle, "after MERGE of 1 %")
    for number in range(_BATCHES):
        if entered.setting.deadline.left < entered.setting.deadline.seconds / 5:
            entered.setting.measurements.note(WORKLOAD, f"There was time for {number} micro-batches.")
            break
        query = (
            f"SELECT id1, id2, num_cal, k, CAST({number} AS BIGINT) amount, ts, txt FROM src "
            f"WHERE k >= {number * 2_000} AND k < {(number + 1) * 2_000} AND num_cal < 15"
        )
        oracle.execute(f"CREATE OR REPLACE TABLE batch AS {query}")
        oracle.execute("DELETE FROM t WHERE (id1, id2) IN (SELECT id1, id2 FROM batch)")
        oracle.execute("INSERT INTO t FROM batch")
        entered.each("replacement of 100 messages", "replace_messages", only=tables, name="t", query=query)
    _read(entered, oracle, "after the replacements")
    entered.each("compaction", "compact", only=tables, name="t")
    _read(entered, oracle, "after compaction")


def _read(entered: Contest, oracle: duckdb.DuckDBPyConnection, when: str) -> None:
    (row,) = oracle.execute(_AGGREGATE.format(t="t")).fetchall()
    expected = {"rows": [[int(each) if isinstance(each, bool | int) else each for each in row]]}
    tables = [name for name in entered.systems if name != BARE]
    for number in range(_READS):
        what = f"{'first aggregate' if not number else 'aggregate'} {when}"
        _sql(entered, what, _AGGREGATE, only=tables, expected=expected)
        if BARE in entered.systems:
            _sql(entered, what, _AGGREGATE.format(t="src"), only=[BARE])


def _sql(entered: Contest, what: str, statement: str, **options: Any) -> None:
    entered.each(what, "sql", statement=statement, tables=["t"], **options)


def _source(path: Path) -> duckdb.DuckDBPyConnection:
    """The rows, in key order, in a connection that also computes the expected answers."""
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    oracle.execute(
        "COPY (SELECT 'C' || lpad((i // 2000)::VARCHAR, 8, '0') id1, (i // 20) % 100 id2, (i % 20)::INT num_cal, i k, "
        "(hash(i) % 1000000)::BIGINT amount, "
        "make_timestamp(1700000000000000 + (hash(i) % 100000000000)::BIGINT)::TIMESTAMPTZ ts, "
        f"substr(sha256(i::VARCHAR), 1, 16) txt FROM range({_ROWS}) r(i)) "
        f"TO '{path}' (FORMAT parquet, COMPRESSION zstd)"
    )
    return oracle
