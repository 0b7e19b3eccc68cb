"""The commit queue of one table in a PostgreSQL catalog: order of writers, crashes, hanging writers, and commits
without the queue."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from many_writers import TABLE, Lake
from postgres_server import postgres_uri
from sqlalchemy import Engine, create_engine, text

import tableformat as tf
from tableformat.commit.postgres_queue import PostgresQueue

UUID_OF_TABLE = UUID(int=1)


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    with postgres_uri() as made:
        yield made


@pytest.fixture
def engine(uri: str) -> Iterator[Engine]:
    made = create_engine(uri)
    yield made
    made.dispose()


def waiting_count(engine: Engine) -> int:
    with engine.connect() as connection:
        count = connection.execute(text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))
        return int(count.scalar_one())


def until_waiting(engine: Engine, count: int) -> None:
    deadline = time.monotonic() + 60
    while waiting_count(engine) != count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_writers_are_served_in_queue_order(engine: Engine) -> None:
    """CP-32."""
    queue = PostgresQueue(engine, UUID_OF_TABLE)
    first = queue.take()
    first.wait(60)
    served: list[int] = []

    def serve(number: int) -> None:
        place = queue.take()
        place.wait(60)
        served.append(number)
        place.give_back()

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(3)]
    for number, thread in enumerate(threads):
        thread.start()
        until_waiting(engine, number + 1)
    other = PostgresQueue(engine, UUID(int=2)).take()
    other.wait(60)
    other.give_back()
    assert served == []
    first.give_back()
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2]


def hold_for_ever(uri: str, taken: object) -> None:
    PostgresQueue(create_engine(uri), UUID_OF_TABLE).take().wait(60)
    taken.set()  # type: ignore[attr-defined]
    time.sleep(600)


def test_killed_writer_releases_its_turn(uri: str, engine: Engine) -> None:
    """CP-32: kill -9 of the process whose turn it is."""
    spawn = multiprocessing.get_context("spawn")
    taken = spawn.Event()
    process = spawn.Process(target=hold_for_ever, args=(uri, taken))
    process.start()
    assert taken.wait(60)
    process.kill()
    process.join()
    place = PostgresQueue(engine, UUID_OF_TABLE).take()
    started = time.monotonic()
    place.wait(60)
    assert time.monotonic() - started < 30
    place.give_back()


def test_hanging_writer_is_passed_after_the_timeout(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """CP-32."""
    queue = PostgresQueue(engine, UUID_OF_TABLE)
    hanging, next_one = queue.take(), queue.take()
    hanging.wait(60)
    with caplog.at_level(logging.WARNING, logger="tableformat"):
        next_one.wait(0.05)
    assert [record.getMessage() for record in caplog.records] == [
        "waited 0.05 s for each earlier writer; committing without the lock"
    ]
    next_one.give_back()
    hanging.give_back()
    next_one.wait(60)
    next_one.give_back()


def test_long_queue_is_waited_for_while_it_advances(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """CP-32: the patience is with each writer before."""
    queue = PostgresQueue(engine, UUID_OF_TABLE)

    def serve(_number: int) -> None:
        place = queue.take()
        place.wait(2.5)  # Shorter than all turns together, and long for one, on a busy machine as well.
        time.sleep(0.7)
        place.give_back()

    with caplog.at_level(logging.WARNING, logger="tableformat"), ThreadPoolExecutor(5) as pool:
        list(pool.map(serve, range(5)))
    assert caplog.records == []


def test_forked_child_does_not_release_the_turn(engine: Engine) -> None:
    place = PostgresQueue(engine, UUID_OF_TABLE).take()
    place.wait(60)
    child = os.fork()
    if child == 0:
        place.give_back()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    behind = PostgresQueue(engine, UUID_OF_TABLE).take()
    started = time.monotonic()
    behind.wait(0.05)
    assert time.monotonic() - started >= 0.05
    behind.give_back()
    place.give_back()


def test_forked_child_uses_its_own_connection(engine: Engine) -> None:
    """Two processes on one connection would share a turn, and closing the connection would end both turns."""
    queue = PostgresQueue(engine, UUID_OF_TABLE)
    warm = queue.take()
    warm.wait(60)
    warm.give_back()
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(to_child)
        place = queue.take()
        place.wait(60)
        os.write(to_parent, b"turn")
        os.read(from_parent, 1)
        place.give_back()
        os._exit(0)
    assert os.read(from_child, 4) == b"turn"
    behind = queue.take()
    started = time.monotonic()
    behind.wait(0.05)
    assert time.monotonic() - started >= 0.05
    os.write(to_child, b".")
    assert os.waitpid(child, 0)[1] == 0
    after = queue.take()
    after.wait(60)
    after.give_back()


def test_interrupted_waiter_leaves_the_queue(engine: Engine) -> None:
    queue = PostgresQueue(engine, UUID_OF_TABLE)
    first = queue.take()
    first.wait(60)

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            queue.take().wait(60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    until_waiting(engine, 0)
    first.give_back()
    last = queue.take()
    last.wait(60)
    last.give_back()


def test_queue_connections_close_with_the_catalog(uri: str, engine: Engine) -> None:
    mine = create_engine(f"{uri}{'&' if '?' in uri else '?'}application_name=queueing")
    named = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'queueing'"

    def count() -> int:
        with engine.connect() as connection:
            return int(connection.execute(text(named)).scalar_one())

    place = PostgresQueue(mine, UUID_OF_TABLE).take()
    place.wait(60)
    place.give_back()
    assert count() == 1
    mine.dispose()
    deadline = time.monotonic() + 60
    while count():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def lake(uri: str, tmp_path: Path) -> Lake:
    made = Lake(f"c{tmp_path.name}", {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path / 'lake'}"})
    made.create()
    return made


def append(table: tf.Table, number: int) -> int:
    return table.append(pa.table({"g": [number], "k": [number], "v": ["x"]})).attempts


def test_more_threads_than_connections_commit_at_the_first_attempt(lake: Lake) -> None:
    """CP-32: waiting threads leave the catalog's connections to the thread whose turn it is."""
    with lake.open() as catalog, ThreadPoolExecutor(12) as pool:
        tables = [catalog.load_table(TABLE) for _ in range(24)]
        attempts = list(pool.map(append, tables, range(24)))
        assert set(attempts) == {1}
        assert catalog.load_table(TABLE).scan().count() == 24


def test_writers_commit_without_advisory_locks(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-32: such as other databases that speak PostgreSQL's language."""
    monkeypatch.setattr("tableformat.commit.postgres_queue._LOCK", "pg_lock_of_another_kind")
    with lake.open() as catalog, caplog.at_level(logging.WARNING, logger="tableformat"):
        assert append(catalog.load_table(TABLE), 1) == 1
        assert catalog.load_table(TABLE).scan().count() == 1
    assert "commit queue is unavailable" in caplog.text
