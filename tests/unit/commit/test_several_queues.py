"""Commits to several tables wait in the queue of each table, always in the same order."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from commit_tables import FAST_RETRIES
from new_lakes import new_lake

import tableformat as tf
from tableformat.commit.commit_queue import IS_SUPPORTED, CommitQueue
from tableformat.commit.several_queues import QueueOfSeveral

pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="this system has no locks of open files")
ORDERS, LINES = UUID(int=1), UUID(int=2)
PATIENCE_SECONDS = 60


def queue(path: Path, *tables: UUID) -> QueueOfSeveral:
    return QueueOfSeveral([CommitQueue(str(path / "queue"), table) for table in tables])


def test_writers_with_opposite_table_orders_do_not_deadlock(tmp_path: Path) -> None:
    """CP-79: they would pass each other by only after a minute."""
    started = time.monotonic()
    turns: list[int] = []
    inside = threading.Lock()

    def write(number: int) -> None:
        names = (ORDERS, LINES) if number % 2 else (LINES, ORDERS)
        for _ in range(20):
            place = queue(tmp_path, *names).take()
            place.wait(PATIENCE_SECONDS)
            assert inside.acquire(blocking=False), "two writers have the turn"
            turns.append(number)
            inside.release()
            place.give_back()

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, range(4)))
    assert len(turns) == 80
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert not queue(tmp_path, ORDERS, LINES).is_busy()


def test_single_table_writer_is_waited_for(tmp_path: Path) -> None:
    """CP-79: and its queue is the last one taken, or the first."""
    for table in (ORDERS, LINES):
        alone = CommitQueue(str(tmp_path / "queue"), table).take()
        assert queue(tmp_path, ORDERS, LINES).is_busy()
        threading.Timer(0.2, alone.give_back).start()
        started = time.monotonic()
        place = queue(tmp_path, LINES, ORDERS).take()
        place.wait(PATIENCE_SECONDS)
        assert time.monotonic() - started >= 0.15
        place.give_back()


def test_tables_sharing_a_queue_take_one_ticket(tmp_path: Path) -> None:
    """CP-79: a second ticket would wait for the first one."""
    started = time.monotonic()
    place = queue(tmp_path, ORDERS, ORDERS).take()
    place.wait(PATIENCE_SECONDS)
    assert time.monotonic() - started < PATIENCE_SECONDS / 2
    place.give_back()


def test_writers_with_opposite_orders_commit_all_batches(tmp_path: Path) -> None:
    """CP-74, CP-79: each has its own connection, and both tables have every batch."""
    names = ("db.orders", "db.lines")
    schema = pa.schema([pa.field("batch", pa.string(), nullable=False)])
    with new_lake(tmp_path / "lake") as catalog:
        for name in names:
            catalog.create_table(name, schema, key=["batch"], properties=FAST_RETRIES)

    def write(order: tuple[str, ...]) -> list[str]:
        batches = [str(uuid.uuid4()) for _ in range(8)]
        with tf.open_catalog(str(tmp_path / "lake")) as catalog:
            for batch in batches:
                with catalog.transaction() as tx:
                    for name in order:
                        tx.table(name).append(pa.table({"batch": [batch]}, schema=schema))
        return batches

    with ThreadPoolExecutor(2) as writers:
        written = sorted(batch for batches in writers.map(write, (names, names[::-1])) for batch in batches)
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        for name in names:
            assert sorted(catalog.load_table(name).scan().to_arrow()["batch"].to_pylist()) == written
