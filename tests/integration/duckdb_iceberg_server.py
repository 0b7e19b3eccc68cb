"""Runs SQL in DuckDB's own Iceberg extension against a REST catalog; runs in `.venv-duckdb-iceberg`.

Argument: the address of the catalog, which is attached as `served`. Standard input: a JSON list of statements. Standard
output: a JSON list with the rows of each.
"""

from __future__ import annotations

import json
import sys

from duckdb_iceberg_reader import connect


def main() -> None:
    connection = connect()
    connection.execute(f"ATTACH '' AS served (TYPE ICEBERG, ENDPOINT '{sys.argv[1]}', AUTHORIZATION_TYPE 'none')")
    json.dump([connection.execute(statement).fetchall() for statement in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
