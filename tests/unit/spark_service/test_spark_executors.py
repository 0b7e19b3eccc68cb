"""Where the process behind a catalog runs the tasks that rewrite files."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from spark_ext.service import executors
from spark_ext.service.executors import JvmRunner, LargeOnExecutors
from spark_ext.service.session import Session
from tableformat.deletes.positions import PositionSet
from tableformat.errors import InvalidArgumentError, TaskFailedError
from tableformat.maintenance.running.executors import LOCAL, task_runner
from tableformat.maintenance.running.spark_runner import pickled_answer
from tableformat.maintenance.running.tasks import Work
from tableformat.operations.options import CommitOptions
from tableformat.operations.staging.carried_rows import Carry, carry_here
from tableformat.operations.staging.draft import Draft

IDS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])


class AnsweringJvm:
    """Runs tasks in this process; with `error`, each task fails with Spark's error."""

    def __init__(self, error: str | None = None) -> None:
        self._error = error

    def run_task(self, shared: bytes, task: bytes) -> Future[bytes]:
        answer: Future[bytes] = Future()
        if self._error is None:
            answer.set_result(pickled_answer(shared, task))
        else:
            answer.set_exception(RuntimeError(self._error))
        return answer


def times(task: int, factor: int) -> int:
    if task < 0:
        raise InvalidArgumentError("no negative numbers")
    return task * factor


WORK = Work(times, 3, discard=lambda _: None)


def test_tasks_return_their_results() -> None:
    """MT-100"""
    runner = task_runner(JvmRunner(AnsweringJvm(), "upkeep-executor-bytes"))
    assert dict(runner.run(WORK, [1, 2, 3], at_once=1)) == {0: 3, 1: 6, 2: 9}


def test_task_process_ends_with_its_executor() -> None:
    """MT-100: an executor that was killed leaves no process behind; its pipe is closed."""
    with subprocess.Popen(
        [sys.executable, "-m", "spark_ext.executor_task"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part in (pickle.dumps((wait_for, None)), pickle.dumps(60)):
            process.stdin.write(struct.pack(">i", len(part)) + part)
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 0.2)[0] == [], "it works as long as its input is open"
        process.stdin.close()
        assert process.wait(timeout=20) != 0


def wait_for(seconds: int, _context: None) -> None:
    time.sleep(seconds)


def test_library_error_is_returned_unchanged() -> None:
    with pytest.raises(InvalidArgumentError, match="no negative numbers"):
        list(JvmRunner(AnsweringJvm(), "upkeep-executor-bytes").run(WORK, [-1], at_once=1))


def test_spark_error_raises_task_failed() -> None:
    with pytest.raises(TaskFailedError):
        list(JvmRunner(AnsweringJvm("no module"), "upkeep-executor-bytes").run(WORK, [1], at_once=1))


def test_small_work_runs_locally(tmp_path: Path) -> None:
    """MT-100"""
    runner = JvmRunner(AnsweringJvm(), "upkeep-executor-bytes")
    choice = LargeOnExecutors(runner, 100)
    assert (choice(99), choice(100)) == (LOCAL, runner)
    session = Session.open("lake", {"warehouse": str(tmp_path)}, jvm=AnsweringJvm())
    assert session.upkeep_executor == LOCAL
    options = {"warehouse": str(tmp_path), "upkeep-executor-bytes": "100"}
    assert isinstance(Session.open("lake", options, jvm=AnsweringJvm()).upkeep_executor, LargeOnExecutors)


def test_jobs_of_large_tables_run_on_executors_of_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """PR-29: by default only if an executor has the library; otherwise on the driver, with a warning."""
    monkeypatch.setattr(executors, "_BYTES_ON_CLUSTERS", 100)
    tf.open_catalog(str(tmp_path)).write("db.t", pa.table({"id": [1]}), key=["id"])
    for jvm, master, expected in (
        (AnsweringJvm(), "spark://host:7077", JvmRunner),
        (AnsweringJvm(), "local-cluster[2,1,1024]", JvmRunner),
        (AnsweringJvm(), "local[2]", str),
        (AnsweringJvm("no module named spark_ext"), "yarn", str),
    ):
        session = Session.open("lake", {"warehouse": str(tmp_path)}, jvm=jvm, master=master)
        assert isinstance(executors.executor_of(session.load(("db", "t"))), expected)
        assert isinstance(session.upkeep_executor, str) == (master == "local[2]")
    assert "no module named spark_ext" in caplog.text
    assert "Install tableformat" in caplog.text
    options = {"warehouse": str(tmp_path), "job-executor-bytes": "1000000000"}
    large_only = Session.open("lake", options, jvm=AnsweringJvm(), master="yarn")
    assert executors.executor_of(large_only.load(("db", "t"))) == LOCAL


@pytest.mark.parametrize(
    "option",
    ["upkeep-executor-bytes", "copy-on-write-executor-bytes", "scan-executor-bytes", "job-executor-bytes"],
)
def test_upkeep_executor_bytes_must_be_a_number(tmp_path: Path, option: str) -> None:
    """MT-100, SP-86"""
    with pytest.raises(InvalidArgumentError, match=f"'{option}' must be a number of bytes, not '64 MB'"):
        Session.open("lake", {"warehouse": str(tmp_path), option: "64 MB"})


@pytest.mark.parametrize("version", ["2", "3"])
def test_copy_on_write_tasks_keep_rows_and_ids(tmp_path: Path, version: str) -> None:
    """SP-86: they are the rows, and have the ids, that the driver writes; a task that fails leaves no file."""
    catalog = new_lake(tmp_path)
    properties = {"format-version": version, "write.delete.mode": "copy-on-write"}
    tables = []
    for name in ("here", "there", "failed"):
        table = catalog.create_table(f"db.{name}", IDS, key=["id"], properties=properties)
        for first in (0, 10, 20):
            table.append(pa.table({"id": range(first, first + 10), "v": range(10)}))
        table.delete_prefix({"id": 12})
        tables.append(table)
    here, there, failed = tables
    jvms = {"there": AnsweringJvm(), "failed": AnsweringJvm("no module")}
    choices = {name: LargeOnExecutors(JvmRunner(jvm, "the-option"), 1) for name, jvm in jvms.items()}

    def delete(table: tf.Table, carry: Carry) -> None:
        draft = Draft(table.iceberg, "main", carry=carry)
        with draft.removing_files_on_failure():
            draft.begin_verb()
            draft.delete_positions_in([(task, PositionSet.from_array(np.array([3, 5]))) for task in draft.plan()])
            draft.commit(CommitOptions(), started=0.0)

    delete(here, carry_here)
    delete(there, choices["there"].carry)
    columns = ["id", "v", *(["_row_id", "_last_updated_sequence_number"] if version == "3" else [])]
    rows = [sorted(table.refresh().scan(columns=columns).to_arrow().to_pylist(), key=str) for table in (here, there)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 30 - 1 - 6
    assert there.inspect.delete_files().num_rows == here.inspect.delete_files().num_rows
    files = sorted(Path(tmp_path).rglob("*.parquet"))
    with pytest.raises(TaskFailedError):
        delete(failed, choices["failed"].carry)
    assert sorted(Path(tmp_path).rglob("*.parquet")) == files
    assert failed.refresh().scan().count() == 29
