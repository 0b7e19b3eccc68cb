"""The program of a system's process: `python -m report.systems.answering MODULE CLASS DIRECTORY [option...]`.

A request is one line of JSON, `{"verb": ..., "rows": a Parquet file, ...}`. Its answer is one line too, `{"wall",
"cpu", "answer"}` or `{"error"}`. Reading the input rows and checking the request are not timed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from report.digests import digest
from report.systems.adapter import CommitLostError

_PATIENCE = 200


def main() -> None:
    module, name, directory, *options = sys.argv[1:]
    # Output of the libraries goes to the log, not into the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    adapter = getattr(importlib.import_module(f"report.systems.{module}"), name)(Path(directory), *options)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = answered(adapter, request)
        except Exception as error:  # noqa: BLE001 - the process that asked decides
            lines = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {lines[0][:200]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def answered(adapter: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Ask the adapter, and time it."""
    verb = request.pop("verb")
    if verb in adapter.lacks:
        return {"lacks": adapter.lacks[verb]}
    for name in ("rows", "keys"):
        if isinstance(request.get(name), str):
            request[name] = pq.read_table(request[name])
    gc.collect()
    if verb == "replace_many":
        return replaced_many(adapter, **request)
    clock = getattr(adapter, "cpu_seconds", time.process_time)
    cpu, started = clock(), time.perf_counter()
    value = getattr(adapter, verb)(**request)
    took = {"wall": time.perf_counter() - started, "cpu": clock() - cpu}
    return {**took, "answer": digest(value) if isinstance(value, pa.Table) else value}


def replaced_many(adapter: Any, paths: list[str]) -> dict[str, Any]:
    """One commit after another, each tried until it is committed; the answer counts the commits that were lost."""
    batches = [pq.read_table(path) for path in paths]
    lost = 0
    cpu, started = time.process_time(), time.perf_counter()
    for batch in batches:
        for _ in range(_PATIENCE):
            try:
                adapter.replace(batch)
                break
            except CommitLostError:
                lost += 1
        else:
            raise CommitLostError(f"a commit was lost {_PATIENCE} times")
    return {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu, "answer": {"lost": lost}}


if __name__ == "__main__":
    main()
