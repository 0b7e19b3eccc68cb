"""Engines that are connected to a server over one lake: `make test-served`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import tableformat as tf
from tableformat.server.running import Server

ROOT: Final = Path(__file__).parents[2]
_CLIENT: Final = Path(__file__).parent / "sql_client.py"
_JAR: Final = ROOT / "build/corpus-spark/iceberg-spark-runtime-4.0_2.13-1.11.0.jar"
_PYTHONS: Final = {
    "duckdb": ROOT / ".venv-duckdb-iceberg/bin/python",
    "spark": ROOT / ".venv-iceberg-spark/bin/python",
    "trino": ROOT / ".venv-trino/bin/python",
    "flink": ROOT / ".venv-flink/bin/python",
}


class EngineError(Exception):
    """A statement that the engine refused."""


@dataclass
class Engine:
    """One engine in a process of its own."""

    name: str
    process: subprocess.Popen[str]

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(statement) + "\n")
        self.process.stdin.flush()
        answer = self._line()
        if "error" in answer:
            raise EngineError(f"{self.name}: {statement}: {answer['error']}")
        return [tuple(row) for row in answer["rows"]]

    def _line(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise EngineError(f"{self.name} ended")


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tf.Catalog:
    catalog = tf.open_catalog(str(tmp_path_factory.mktemp("served") / "lake"))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture(scope="session")
def server(lake: tf.Catalog) -> Iterator[Server]:
    with tf.serve(lake, freshness_seconds=0) as running:
        yield running


@contextmanager
def engine_process(name: str, url: str, **variables: str) -> Iterator[Engine]:
    """An engine that is connected to the server at the address."""
    if not _PYTHONS[name].exists():
        pytest.skip(f"{name} is not there: `make test-served` installs it")
    if name == "trino" and not os.environ.get("TRINO_JAVA_HOME"):
        pytest.skip("Trino needs Java 24 or newer: TRINO_JAVA_HOME is not set")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests/integration"),
        "ICEBERG_SPARK_JAR": str(_JAR),
        "TRINO_HOME": str(ROOT / "build/trino"),
        "HADOOP_CLASSPATH": str(ROOT / ".estate/flink/*"),
        "FLINK_LOG_DIR": str(ROOT / "build"),
        **variables,
    }
    command = [_PYTHONS[name], _CLIENT, name, url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        running = Engine(name, process)
        assert "ready" in running._line()
        yield running


@pytest.fixture(scope="session", params=["duckdb", "spark", "trino", "flink"])
def engine(request: pytest.FixtureRequest, server: Server) -> Iterator[Engine]:
    with engine_process(request.param, server.url) as running:
        yield running
