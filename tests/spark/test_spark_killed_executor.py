"""An executor that is killed while it runs a task of a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TASK = """
import os
import time


def sleep_at_first(task, directory):
    number = len(os.listdir(directory))
    with open(f"{directory}/{number}", "w") as file:
        file.write(f"{os.getpid()} {executor_of(os.getpid())}")
    if number == 0:
        time.sleep(600)
    return task * 2


def executor_of(pid):
    while True:
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{pid}/comm") as file:
            if file.read().strip() == "java":
                return pid
"""
_SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
from sleeping_task import sleep_at_first
from tableformat.maintenance.running.spark_runner import SparkRunner
from tableformat.maintenance.running.tasks import Work

directory = Path(sys.argv[1])
builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
builder = builder.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]).config("spark.log.level", "OFF")
spark = builder.getOrCreate()


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill():
    started = directory / "0"
    while not started.exists() or len(started.read_text().split()) < 2:
        time.sleep(0.05)
    worker, executor = map(int, started.read_text().split())
    os.kill(executor, signal.SIGKILL)
    killed = time.monotonic()
    while is_alive(worker) and time.monotonic() - killed < 60:
        time.sleep(0.05)
    print("worker ended", not is_alive(worker), flush=True)


killer = threading.Thread(target=kill)
killer.start()
print(list(SparkRunner(spark).run(Work(sleep_at_first, str(directory), print), [21], at_once=1)))
killer.join()
spark.stop()
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the executor's process in /proc")
def test_killed_executor_stops_its_workers_and_task_is_retried(java: None, tmp_path: Path) -> None:
    """MT-61"""
    (tmp_path / "sleeping_task.py").write_text(_TASK)
    (tmp_path / "starts").mkdir()
    paths = [str(tmp_path), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "starts")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[(0, 42)]", "worker ended True"]
