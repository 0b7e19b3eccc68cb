"""Two servers on one lake are killed and started again, beside a writer, an expiry and clients that read and write."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from served_lakes import orders, own_rows, replace_message, rows, sorted_rows
from soak_figures import count, soak_seed

import tableformat as tf

SECONDS = 60 * float(os.environ.get("SOAK_SERVED_MINUTES", "0"))
GONE = (ConnectionError, OSError)
"""The server was killed."""


class Served:
    """A server in a process of its own."""

    def __init__(self, lake: Path) -> None:
        self._command = [sys.executable, "-m", "tableformat", "serve", str(lake), "--port", "0", "--freshness", "0s"]
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r" at (http://\S+?)\. ", line):
                self.url = found[1]
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


@contextmanager
def two_servers(lake: Path) -> Iterator[list[Served]]:
    servers = [Served(lake), Served(lake)]
    for server in servers:
        server.start()
    try:
        yield servers
    finally:
        for server in servers:
            server.kill()


@pytest.mark.skipif(not SECONDS, reason="minutes, not seconds: SOAK_SERVED_MINUTES is not set (make soak)")
def test_killed_servers_lose_no_row_and_serve_only_real_snapshots(tmp_path: Path) -> None:
    """SV-1 to SV-10: each read equals a state that was the head at some moment of the request."""
    chance = random.Random(int(soak_seed() or random.SystemRandom().randrange(10**9)))
    table = orders(tmp_path, **{"tableformat.serve.staged-max-age-ms": "2000"})
    states: list[tuple[float, Any]] = [(0.0, own_rows(table))]
    """Each state of the table, with the time before which it was committed."""
    lock, ends, faults = threading.Lock(), time.monotonic() + SECONDS, []

    def write() -> None:
        own = tf.open_catalog(str(tmp_path / "lake")).load_table("db.orders")
        number = 1_000
        while time.monotonic() < ends and not faults:
            with lock:
                number += 1
                replace_message(own, number % 1_050)
                states.append((time.monotonic(), own_rows(own)))
            if number % 20 == 0:
                own.maintenance.expire_snapshots(retain_last=3)
            time.sleep(0.02)

    def read(server: Served) -> None:
        while time.monotonic() < ends and not faults:
            began, first = time.monotonic(), len(states) - 1
            try:
                client = load_catalog("served", type="rest", uri=server.url)
                seen = sorted_rows(client.load_table("db.orders").scan().to_arrow())
            except GONE:
                continue
            with lock:
                possible = [state for _, state in states[first:]]
            if seen not in possible:
                faults.append((began, seen))
            count("served reads")

    with two_servers(tmp_path / "lake") as servers:
        threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(each,)) for each in servers)]
        for thread in threads:
            thread.start()
        while time.monotonic() < ends and not faults:
            time.sleep(chance.uniform(0.5, 3))
            server = chance.choice(servers)
            server.kill()
            server.start()
            count("killed servers")
            with lock:
                client = load_catalog("served", type="rest", uri=server.url)
                client.load_table("db.orders").append(rows(("client", chance.randrange(10**9), "appended")))
                states.append((time.monotonic(), own_rows(table)))
        for thread in threads:
            thread.join()
        assert faults == []
        for server in servers:
            client = load_catalog("served", type="rest", uri=server.url)
            assert sorted_rows(client.load_table("db.orders").scan().to_arrow()) == own_rows(table)
    assert [each for each in table.maintenance.verify(deep=True).findings if each.severity.value == "error"] == []
