"""Flink SQL for another process: it reads one JSON line for each statement, and writes one JSON line with its result.

    HADOOP_CLASSPATH='.estate/flink/*' .venv-flink/bin/python tests/estate/flink/session.py

It runs in an environment with PyFlink, and imports only PyFlink. The answer to `{"sql": ...}` has rows, or the number
of the job for an INSERT; `{"sql": ..., "mode": "batch"}` reads the current rows. `{"job": 0}` asks for the state of a
job, `{"cancel": 0}` cancels it. `"set"` applies to all later jobs: the environment keeps every setting, even the
savepoint that a job was restored from. The process and its jobs end when its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any


class Session:
    """Catalogs are the same in both modes."""

    def __init__(self) -> None:
        from pyflink.table import EnvironmentSettings, TableEnvironment

        self.environments = {
            "streaming": TableEnvironment.create(EnvironmentSettings.in_streaming_mode()),
            "batch": TableEnvironment.create(EnvironmentSettings.in_batch_mode()),
        }
        self.jobs: list[Any] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "cancel" in request:
            client, ended = self.jobs[request["cancel"]]
            client.cancel().result()
            with suppress(Exception):  # That it was cancelled.
                ended.result()
            return {}
        if "job" in request:
            _, ended = self.jobs[request["job"]]
            return {"running": not ended.done()} | ({"result": str(ended.result())} if ended.done() else {})
        sql: str = request["sql"]
        if sql.startswith("CREATE CATALOG"):
            for environment in self.environments.values():
                environment.execute_sql(sql)
            return {}
        environment = self.environments[request.get("mode", "streaming")]
        for name, value in request.get("set", {}).items():
            environment.get_config().set(name, value)
        result = environment.execute_sql(sql)
        if sql.startswith(("INSERT", "EXECUTE")):
            client = result.get_job_client()
            self.jobs.append((client, client.get_job_execution_result()))
            return {"job": len(self.jobs) - 1}
        with result.collect() as rows:
            return {"rows": [list(row) for row in rows]}


def main() -> None:
    """Answer requests from standard input; output of Java goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session()
    for line in sys.stdin:
        try:
            answer = session.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - Java's errors; whoever asked looks at the text
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
