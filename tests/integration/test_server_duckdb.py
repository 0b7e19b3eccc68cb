"""DuckDB's own Iceberg extension reads and writes tables through the server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from duckdb_iceberg_env import environment_python, is_complete
from served_lakes import orders, own_rows, replace_message

import tableformat as tf

pytestmark = pytest.mark.skipif(not is_complete(), reason="`make test` installs the Iceberg extension of DuckDB")

_CLIENT = Path(__file__).parent / "duckdb_iceberg_server.py"


def ask(url: str, *statements: str) -> list[list[list[object]]]:
    """The rows of each statement, run in one connection that attaches the server."""
    done = subprocess.run(
        [environment_python(), _CLIENT, url],
        input=json.dumps(statements),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[list[object]]] = json.loads(done.stdout)
    return answers


@pytest.mark.parametrize("version", [2, 3])
def test_duckdb_reads_and_writes_with_pending_deletes(tmp_path: Path, version: int) -> None:
    """DuckDB refuses to insert into sorted tables, unless it may ignore the sort order."""
    table = orders(tmp_path, version, partitioned=True)
    replace_message(table, 1)
    everything = 'SELECT customer, "order", note FROM served.db.orders ORDER BY ALL'
    with tf.serve(tf.open_catalog(str(tmp_path / "lake")), freshness_seconds=0) as server:
        (rows,) = ask(server.url, everything)
        assert [tuple(row) for row in rows] == own_rows(table)
        *_, rows = ask(
            server.url,
            "SET unsafe_iceberg_ignore_sort_order = true",
            'DELETE FROM served.db.orders WHERE "order" = 11',
            "INSERT INTO served.db.orders VALUES ('Q', 5, 'from DuckDB')",
            "UPDATE served.db.orders SET note = 'changed' WHERE customer = 'B'",
            everything,
        )
        changed = own_rows(table)
        assert [tuple(row) for row in rows] == changed
        assert ("Q", 5, "from DuckDB") in changed
        assert ("B", 3, "changed") in changed
        assert not any(row[1] == 11 for row in changed)
        replace_message(table, 12)
        (rows,) = ask(server.url, everything)
        assert [tuple(row) for row in rows] == own_rows(table)
