"""The Python process behind a catalog: message frames, failures, and which process outlives which."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from tableformat import Catalog, Table, open_catalog
from tableformat.commit.commit_queue import QueuesCommits

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def sidecar_pids(spark: SparkSession) -> list[int]:
    """Processes that the JVM started for the catalog `lake`."""
    jvm = spark._jvm
    assert jvm is not None
    children = jvm.java.lang.ProcessHandle.current().children().iterator()
    found = []
    while children.hasNext():
        pid = children.next().pid()
        if b"spark_ext.sidecar" in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.append(pid)
    return found


class Process:
    """A sidecar spoken to without Spark."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, number: int, method: str, arguments: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        header = json.dumps({"id": number, "method": method, "arguments": arguments, "parts": []}).encode()
        self.process.stdin.write(struct.pack(">i", len(header)) + header)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = struct.unpack(">i", self.process.stdout.read(4))[0]
        header: dict[str, Any] = json.loads(self.process.stdout.read(length))
        for part in header["parts"]:
            self.process.stdout.read(part)
        return header

    def start(self, **options: str) -> dict[str, Any]:
        self.send(0, "start", {"name": "lake", "options": options})
        return self.receive()


@contextmanager
def running(*code: str) -> Iterator[Process]:
    command = [sys.executable, *(code or ("-m", "spark_ext.sidecar"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield Process(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_concurrent_requests_are_answered_before_end_of_input(tmp_path: Path) -> None:
    with open_catalog(str(tmp_path)) as catalog:
        catalog.create_namespace("db")
    with running() as sidecar:
        assert "result" in sidecar.start(warehouse=str(tmp_path))
        for number in range(1, 101):
            sidecar.send(number, "list_tables", {"namespace": ["db"] if number % 2 else ["nowhere"]})
        answers = {answer["id"]: answer for answer in (sidecar.receive() for _ in range(100))}
        assert sorted(answers) == list(range(1, 101))
        assert answers[1]["result"] == []
        assert answers[2]["error"]["type"] == "NamespaceNotFoundError"
        assert answers[2]["error"]["condition"] == "TABLEFORMAT_NAMESPACE_NOT_FOUND"


def test_prints_do_not_corrupt_message_frames(tmp_path: Path) -> None:
    code = "import spark_ext.sidecar as s, os; old = s.serve\n"
    code += "def serve(connection):\n    print('stray'); os.write(1, b'stray'); old(connection)\n"
    code += "s.serve = serve; s.main()"
    with running("-c", code) as sidecar:
        assert "pid" in sidecar.start(warehouse=str(tmp_path))["result"]


def test_unexpected_error_does_not_stop_the_process(tmp_path: Path) -> None:
    with running() as sidecar:
        sidecar.start(warehouse=str(tmp_path))
        sidecar.send(1, "list_tables", {})
        assert sidecar.receive()["error"]["condition"] == "TABLEFORMAT_INTERNAL_ERROR"
        sidecar.send(2, "list_namespaces", {"namespace": []})
        assert sidecar.receive()["result"] == []


def test_killed_process_is_restarted_by_the_next_call(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    table = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    table.append(pa.table({"id": [1, 2, 3]}, schema=SCHEMA))
    frame = spark.table(f"lake.{namespace}.t").where("id > 1")
    pids = sidecar_pids(spark)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    table.append(pa.table({"id": [4]}, schema=SCHEMA))
    table.delete_prefix({"id": 2})
    assert sorted(row.id for row in frame.collect()) in ([2, 3], [3, 4])
    assert sorted(row.id for row in spark.table(f"lake.{namespace}.t").collect()) == [1, 3, 4]
    assert not set(sidecar_pids(spark)) & set(pids)


def test_statements_of_many_threads_share_the_process(spark: SparkSession, lake: Catalog, namespace: str) -> None:
    for number in range(4):
        table = lake.create_table((namespace, f"t{number}"), SCHEMA, key=["id"])
        table.append(pa.table({"id": range(number + 1)}, schema=SCHEMA))

    def count(number: int) -> int:
        return spark.newSession().table(f"lake.{namespace}.t{number % 4}").where("id >= 0").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(8))) == [1, 2, 3, 4, 1, 2, 3, 4]


def without_rows(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 0), path)


@pytest.mark.parametrize("damage", [Path.unlink, without_rows])
def test_damaged_delete_file_fails_the_query_and_is_named(
    spark: SparkSession, lake: Catalog, namespace: str, damage: Callable[[Path], None]
) -> None:
    """DA-8: a delete file that cannot be read never means no deletes."""
    table = lake.create_table((namespace, "t"), SCHEMA)
    table.append(pa.table({"id": [1, 2, 3]}, schema=SCHEMA))
    table.delete("id = 2", mode="equality")
    path = Path(table.inspect.delete_files()["file_path"].to_pylist()[0].removeprefix("file://"))
    damage(path)
    if spark.version < "4":
        # Spark 3.5 shows errors of tasks as they are.
        with pytest.raises(Py4JJavaError, match=path.name):
            spark.table(f"lake.{namespace}.t").collect()
        return
    with pytest.raises(AnalysisException, match=path.name) as caught:
        spark.table(f"lake.{namespace}.t").collect()
    assert caught.value.getCondition() == "TABLEFORMAT_CORRUPT_FILE"


def test_python_error_has_sql_state_and_no_java_trace(spark: SparkSession, namespace: str) -> None:
    spark.sql(f"CREATE TABLE lake.{namespace}.t (a INT, PRIMARY KEY (a))")
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"ALTER TABLE lake.{namespace}.t ALTER COLUMN a DROP NOT NULL")
    assert caught.value.getSqlState() == "22023"
    assert dict(caught.value.getMessageParameters()) == {
        "message": "column 'a' belongs to the key and must be NOT NULL."
    }


# -- statements that are interrupted


@contextmanager
def first_in_queue(table: Table) -> Iterator[None]:
    """Others that commit to the table wait until the end of the block."""
    catalog = table.catalog.iceberg
    assert isinstance(catalog, QueuesCommits)
    queue = catalog.commit_queue(table.metadata.table_uuid)
    assert queue is not None
    place = queue.take()
    try:
        yield
    finally:
        place.give_back()


def waits_for_its_turn(table: Table) -> bool:
    """Whether another writer waits behind the first in the queue: the next ticket is not the second."""
    catalog = table.catalog.iceberg
    assert isinstance(catalog, QueuesCommits)
    place = catalog.commit_queue(table.metadata.table_uuid).take()
    number = place._number
    place.give_back()
    return number > 1


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


STATEMENTS = {
    "procedure": "CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
    "blind delete": "DELETE FROM lake.{name} WHERE id = 1",
    "insert": "INSERT INTO lake.{name} VALUES (9)",
    "property": "ALTER TABLE lake.{name} SET TBLPROPERTIES ('a' = 'b')",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_interrupted_statement_does_not_commit(
    spark: SparkSession, lake: Catalog, namespace: str, statement: str
) -> None:
    """MT-62: it did once it was its turn, seconds after the statement had ended."""
    table = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    table.append(pa.table({"id": [1, 2, 3]}, schema=SCHEMA))
    before = table.refresh().iceberg.metadata_location
    jvm = spark._jvm
    assert jvm is not None
    threads: Queue[Any] = Queue()

    def run() -> str:
        threads.put(jvm.java.lang.Thread.currentThread())
        try:
            spark.sql(STATEMENTS[statement].format(name=table.name))
        except Exception as error:  # noqa: BLE001  what Spark makes of it differs between versions
            return str(error)
        finally:
            jvm.java.lang.Thread.interrupted()
        return "done"

    with ThreadPoolExecutor(1) as pool, first_in_queue(table):
        outcome = pool.submit(run)
        thread = threads.get()
        wait_until(lambda: waits_for_its_turn(table))
        thread.interrupt()
        assert "interrupted" in outcome.result(timeout=60)
    wait_until(lambda: not waits_for_its_turn(table))
    time.sleep(0.3)
    assert table.refresh().iceberg.metadata_location == before
    spark.sql(STATEMENTS[statement].format(name=table.name))
    assert table.refresh().iceberg.metadata_location != before


def test_stream_stopped_during_commit_is_not_failed(
    spark: SparkSession, lake: Catalog, namespace: str, tmp_path: Path
) -> None:
    """SS-11: it ended as one that failed. The next run commits the micro-batch, once."""
    table = lake.create_table((namespace, "t"), SCHEMA, key=["id"])
    table.append(pa.table({"id": [1]}, schema=SCHEMA))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "rows.json").write_text('{"id": 2}\n{"id": 3}\n')

    def start() -> StreamingQuery:
        stream = spark.readStream.schema("id long").json(str(tmp_path / "source"))
        writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).toTable(f"lake.{table.name}")

    with first_in_queue(table):
        query = start()
        wait_until(lambda: waits_for_its_turn(table))
        query.stop()
        assert query.exception() is None
        assert not query.isActive
    wait_until(lambda: not waits_for_its_turn(table))
    time.sleep(0.3)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]
    start().awaitTermination()
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
