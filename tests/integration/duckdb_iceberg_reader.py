"""Answers queries over one Iceberg table with DuckDB's own Iceberg extension; runs in `.venv-duckdb-iceberg`.

Standard input: a JSON object with `table`, the SQL table function to read from, and `queries`, a map from name to SQL
text with `{table}` as its placeholder. Standard output: a JSON object, a map from name to `{"rows": [...]}` or
`{"error": "..."}`.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """A connection with the two extensions loaded from their packages."""
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        spec = find_spec(f"duckdb_extension_{name}")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"duckdb-extension-{name} is not installed")
        extensions = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
        connection.load_extension(str(extensions / f"{name}.duckdb_extension"))
    return connection


def answer(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, object]:
    try:
        return {"rows": [list(row) for row in connection.execute(sql).fetchall()]}
    except duckdb.Error as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    request = json.load(sys.stdin)
    connection = connect()
    answers = {name: answer(connection, sql.format(table=request["table"])) for name, sql in request["queries"].items()}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
