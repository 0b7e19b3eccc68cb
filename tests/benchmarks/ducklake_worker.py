"""Runs in an environment with DuckLake: `python ducklake_worker.py <directory> <data file>...`.

Loads the data files into a DuckLake table. Then it answers each JSON object, one per line, with a JSON object on one
line.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import duckdb


def connect(directory: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    spec = find_spec("duckdb_extension_ducklake")
    assert spec is not None
    assert spec.origin is not None
    extensions = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
    connection.load_extension(str(extensions / "ducklake.duckdb_extension"))
    connection.execute("PRAGMA threads=2")
    connection.execute(f"ATTACH 'ducklake:{directory}/catalog.ducklake' AS lake (DATA_PATH '{directory}/data/')")
    return connection


def replace(connection: duckdb.DuckDBPyConnection, rows: str) -> dict[str, float]:
    """Delete the messages that occur in the rows, insert the rows; reading the rows is not timed."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE incoming AS FROM read_parquet('{rows}')")
    started, cpu_started = time.perf_counter(), time.process_time()
    connection.execute("BEGIN")
    connection.execute("DELETE FROM lake.calendars WHERE (id1, id2) IN (SELECT DISTINCT id1, id2 FROM incoming)")
    connection.execute("INSERT INTO lake.calendars FROM incoming")
    connection.execute("COMMIT")
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_started}


def delete_partner(connection: duckdb.DuckDBPyConnection, partner: str) -> dict[str, float]:
    started, cpu_started = time.perf_counter(), time.process_time()
    connection.execute("DELETE FROM lake.calendars WHERE id1 = ?", [partner])
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_started}


def count(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    row = connection.execute("SELECT count(*) FROM lake.calendars").fetchone()
    assert row is not None
    return {"count": row[0]}


def aggregate(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    started, cpu_started = time.perf_counter(), time.process_time()
    row = connection.execute("SELECT count(*), sum(amount) FROM lake.calendars").fetchone()
    assert row is not None
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_started, "count": row[0]}


def read(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    started, cpu_started = time.perf_counter(), time.process_time()
    count = connection.execute("FROM lake.calendars").to_arrow_table().num_rows
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu_started, "count": count}


def main() -> None:
    directory, *data_files = sys.argv[1:]
    connection = connect(Path(directory))
    listed = ", ".join(f"'{path}'" for path in data_files)
    connection.execute(f"CREATE TABLE lake.calendars AS FROM read_parquet([{listed}])")
    for line in sys.stdin:
        request = json.loads(line)
        answer: object = {}
        if request["verb"] == "replace":
            answer = replace(connection, request["rows"])
        elif request["verb"] == "delete_partner":
            answer = delete_partner(connection, request["partner"])
        elif request["verb"] == "count":
            answer = count(connection)
        elif request["verb"] == "aggregate":
            answer = aggregate(connection)
        elif request["verb"] == "read":
            answer = read(connection)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
