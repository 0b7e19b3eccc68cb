"""Queries an Iceberg table with ClickHouse in this process (`chdb`): JSON from standard input, JSON to standard output.

It runs with the Python of a separate environment, see `tests/integration/test_gate_clickhouse.py`.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    # chdb takes files below its working directory only.
    os.chdir("/")
    import chdb

    request = json.load(sys.stdin)
    directory, _, metadata_file = request["location"].removeprefix("file://").rpartition("/metadata/")
    table = f"icebergLocal('{directory}', SETTINGS iceberg_metadata_file_path='metadata/{metadata_file}')"
    answers = {}
    for name, sql in request["queries"].items():
        try:
            text = str(chdb.query(sql.format(table=table), "JSONCompactEachRow"))
            answers[name] = {"rows": [json.loads(line) for line in text.splitlines() if line]}
        except RuntimeError as error:
            answers[name] = {"error": str(error)}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
