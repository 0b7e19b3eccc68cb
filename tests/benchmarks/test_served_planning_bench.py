"""Plans of `tableformat serve` over tables of very many files: latency of one key, and many planners at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from many_files import partner, table_of_many_files
from measuring import Timing, against_target, heading, show

_PLANNERS = 100
_FILES_OF_PLANNERS = 100_000
_ROUNDS = 200
_PATH = "/v1/namespaces/bench/tables/calendars"
_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    address: str
    process_id: int

    def peak_bytes(self) -> int:
        status = Path(f"/proc/{self.process_id}/status").read_text()
        return int(dict(line.split(":", 1) for line in status.splitlines())["VmHWM"].split()[0]) * 1024


@contextmanager
def served(lake: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "tableformat", "serve", str(lake), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = next(filter(None, (re.search(r" at (http://\S+?)\. ", line) for line in process.stderr)))
        try:
            yield Served(urlsplit(found[1]).netloc, process.pid)
        finally:
            process.terminate()


def asked(connection: HTTPConnection, path: str, body: dict[str, Any]) -> dict[str, Any]:
    connection.request("POST", path, json.dumps(body), _HEADERS)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status == 200, text
    return json.loads(text)


def one_key(number: int) -> dict[str, Any]:
    return {"filter": {"type": "eq", "term": "id1", "value": partner(number)}}


def planned_files(server: Served, body: dict[str, Any]) -> int:
    """The number of files of one plan, all of whose pages are fetched."""
    with closing(HTTPConnection(server.address, timeout=600)) as connection:
        return pages(connection, body)


def pages(connection: HTTPConnection, body: dict[str, Any]) -> int:
    answer = asked(connection, f"{_PATH}/plan", body)
    count = len(answer["file-scan-tasks"])
    waiting = answer.get("plan-tasks", [])
    while waiting:
        answer = asked(connection, f"{_PATH}/tasks", {"plan-task": waiting.pop()})
        count += len(answer["file-scan-tasks"])
        waiting += answer.get("plan-tasks", [])
    return count


@pytest.mark.parametrize("file_count", [100_000, int(os.environ.get("BENCH_SERVED_FILES", "1_000_000"))])
def test_plans_of_one_key(benchmark: Any, tmp_path: Path, file_count: int) -> None:
    table_of_many_files(tmp_path, file_count)
    with served(tmp_path) as server, closing(HTTPConnection(server.address, timeout=600)) as connection:

        def plan(number: int) -> float:
            started = time.perf_counter()
            assert len(asked(connection, f"{_PATH}/plan", one_key(number))["file-scan-tasks"]) == 1
            return time.perf_counter() - started

        first = plan(0)
        step = file_count // _ROUNDS
        cold = Timing([plan(number * step) for number in range(_ROUNDS)])
        warm = Timing([plan(number * step) for number in range(_ROUNDS)])
        heading(f"plans of one key on the server, {file_count:,} files, manifests clustered by key")
        show("first", f"{first * 1000:.0f} ms")
        show("other keys, once each", cold)
        show("the same keys again", warm)
        against_target("the same keys again, p50", warm.wall, 0.05, "s")
        show("peak memory of the server", f"{server.peak_bytes():,}")
        benchmark.pedantic(lambda: plan(0), rounds=1)


@pytest.mark.parametrize("is_filtered", [True, False])
def test_concurrent_planners(benchmark: Any, tmp_path: Path, is_filtered: bool) -> None:
    """Each planner has a connection of its own, and fetches all pages."""
    table_of_many_files(tmp_path, _FILES_OF_PLANNERS)
    with served(tmp_path) as server, ThreadPoolExecutor(_PLANNERS) as pool:

        def plan(number: int) -> float:
            started = time.perf_counter()
            body = one_key(number * 997) if is_filtered else {}
            assert planned_files(server, body) == (1 if is_filtered else _FILES_OF_PLANNERS)
            return time.perf_counter() - started

        started = time.perf_counter()
        timing = Timing(list(pool.map(plan, range(_PLANNERS))))
        wall = time.perf_counter() - started
        what = "one key each" if is_filtered else "all files"
        heading(f"{_PLANNERS} concurrent planners, {_FILES_OF_PLANNERS:,} files, {what}")
        show("each", timing)
        show("together", f"{wall:.1f} s")
        against_target("peak memory of the server", server.peak_bytes() / 2**30, 1, "GiB")
        benchmark.pedantic(lambda: plan(0), rounds=1)
