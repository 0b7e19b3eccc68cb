"""A standalone Spark cluster on loopback: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

START_SECONDS = 60
SPARK_HOME = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    """The processes, and where the master listens."""

    directory: Path
    master: subprocess.Popen[bytes]
    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self) -> None:
        """Start a worker with one core, and wait until the master knows it."""
        number = len(self.workers)
        log = self.directory / f"worker-{number}.log"
        self.workers.append(
            started(
                log,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "1500m", "--webui-port", "0"),
                *("--work-dir", str(self.directory / f"work-{number}"), self.url),
            )
        )
        wait_for(log, "Successfully registered with master")

    def executors(self) -> list[int]:
        """The process ids of all running executors."""
        parents = {worker.pid for worker in self.workers}
        return [pid for pid, parent in parents_of_processes() if parent in parents]


@contextmanager
def standalone_cluster(directory: Path, workers: int) -> Iterator[Cluster]:
    log = directory / "master.log"
    master = started(
        log, "org.apache.spark.deploy.master.Master", *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    )
    cluster = Cluster(directory, master, "")
    try:
        cluster.url = wait_for(log, r"Starting Spark master at (spark://\S+)")
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            process.send_signal(signal.SIGTERM)
        for process in (*cluster.workers, master):
            process.wait(timeout=START_SECONDS)


def started(log: Path, main_class: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(SPARK_HOME / "bin" / "spark-class"), main_class, *arguments]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)


def wait_for(log: Path, pattern: str) -> str:
    """The first group, or all, of the pattern in the log."""
    until = time.monotonic() + START_SECONDS
    while (found := re.search(pattern, log.read_text(errors="replace"))) is None:
        assert time.monotonic() < until, f"{pattern} is not in {log}"
        time.sleep(0.1)
    return found[found.re.groups and 1]


def parents_of_processes() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield int(entry.name), int(fields[1])
