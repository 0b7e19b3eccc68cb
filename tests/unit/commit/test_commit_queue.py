"""The commit queue of one table: order of writers, crashes, hanging writers, and commits without the queue."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import threading
import time
from pathlib import Path
from uuid import UUID

import pytest
from commit_tables import FAST_RETRIES, FaultyCatalog, append, data_file, live, new_table
from pyiceberg.exceptions import CommitFailedException

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit import commit_queue
from tableformat.commit.commit_queue import IS_SUPPORTED, CommitQueue, CommitTurn
from tableformat.commit.transaction import commit_change

needs_locks = pytest.mark.skipif(not IS_SUPPORTED, reason="this system has no locks of open files")
TABLE = UUID(int=1)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "catalog.db-queue")


@needs_locks
def test_tickets_are_served_in_order(path: str) -> None:
    """CP-26."""
    queue = CommitQueue(path, TABLE)
    tickets = [queue.take() for _ in range(4)]
    served: list[int] = []

    def serve(number: int) -> None:
        tickets[number].wait(60)
        served.append(number)
        tickets[number].give_back()

    waiting = [threading.Thread(target=serve, args=(number,)) for number in (3, 1, 2, 0)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert served == [0, 1, 2, 3]
    assert not queue.is_busy()


@needs_locks
def test_queues_of_different_tables_are_independent(path: str) -> None:
    ticket = CommitQueue(path, TABLE).take()
    other = CommitQueue(path, UUID(int=2))
    assert (CommitQueue(path, TABLE).is_busy(), other.is_busy()) == (True, False)
    mine = other.take()
    mine.wait(60)
    mine.give_back()
    ticket.give_back()


def hold_for_ever(path: str, taken: object) -> None:
    CommitQueue(path, TABLE).take()
    taken.set()  # type: ignore[attr-defined]
    time.sleep(600)


@needs_locks
def test_killed_process_releases_its_ticket(path: str) -> None:
    """CP-26: kill -9 at the front of the queue."""
    spawn = multiprocessing.get_context("spawn")
    taken = spawn.Event()
    process = spawn.Process(target=hold_for_ever, args=(path, taken))
    process.start()
    assert taken.wait(60)
    queue = CommitQueue(path, TABLE)
    assert queue.is_busy()
    process.kill()
    process.join()
    assert not queue.is_busy()


@needs_locks
def test_forked_child_does_not_hold_the_ticket(path: str) -> None:
    queue = CommitQueue(path, TABLE)
    ticket = queue.take()
    child = os.fork()
    if child == 0:
        ticket.give_back()
        os._exit(0 if queue.is_busy() else 1)
    assert os.waitpid(child, 0)[1] == 0
    ticket.give_back()
    assert not queue.is_busy()


@needs_locks
def test_hanging_writer_at_the_front_is_passed_once(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """CP-26: the next ones do not wait for it again."""
    queue = CommitQueue(path, TABLE)
    hanging = queue.take()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            ticket = queue.take()
            ticket.wait(0.05)
            ticket.give_back()
    assert [record.getMessage() for record in caplog.records] == [
        "a writer has held the commit lock for more than 0.05 s; committing without waiting for it"
    ]
    hanging.give_back()


@needs_locks
@pytest.mark.parametrize("content", [b"\xff" * 64, b"abc", b""])
def test_damaged_queue_file_loses_only_the_order(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    queue = CommitQueue(path, TABLE)
    first, second = queue.take(), queue.take()
    first.wait(60)
    first.give_back()
    second.wait(60)
    second.give_back()


@needs_locks
def test_new_writer_joins_the_queue_of_waiting_writers(tmp_path: Path) -> None:
    """CP-26: and commits when it is its turn, at the first attempt."""
    catalog = EmbeddedCatalog.at(tmp_path / "lake")
    table = new_table(catalog, properties={"commit.retry.max-wait-ms": "60000"})
    queue = catalog.commit_queue(table.metadata.table_uuid)
    assert queue is not None
    before = queue.take()
    threading.Timer(0.3, before.give_back).start()
    started = time.monotonic()
    outcome = commit_change(table, append(data_file(table, "a.parquet")))
    assert (outcome.attempts, time.monotonic() - started >= 0.25) == (1, True)
    assert not queue.is_busy()


@pytest.mark.parametrize("queued", [True, False])
def test_lost_race_is_retried_with_and_without_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queued: bool
) -> None:
    """CP-26: no queue, as on systems without such locks: the random waits of every other catalog."""
    monkeypatch.setattr("tableformat.catalogs.embedded_catalog.IS_SUPPORTED", queued and IS_SUPPORTED)
    catalog = FaultyCatalog.at(tmp_path / "lake")
    table = new_table(catalog, properties=FAST_RETRIES)
    lost = iter([CommitFailedException("lost"), CommitFailedException("lost")])

    def lose_twice() -> None:
        if (error := next(lost, None)) is not None:
            raise error

    catalog.before = lose_twice
    outcome = commit_change(table, append(data_file(table, "a.parquet")))
    assert (outcome.attempts, live(outcome.table)) == (3, {"a.parquet": 1})
    assert (tmp_path / "lake" / "catalog.db-queue").exists() == (queued and IS_SUPPORTED)


@needs_locks
def test_file_system_without_locks_disables_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """CP-26: some network file systems."""

    def no_locks(*_arguments: object) -> tuple[int, int]:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(commit_queue, "_fcntl", no_locks)
    catalog = FaultyCatalog.at(tmp_path / "lake")
    table = new_table(catalog, properties=FAST_RETRIES)
    lost = iter([CommitFailedException("lost")])

    def lose_once() -> None:
        if (error := next(lost, None)) is not None:
            raise error

    catalog.before = lose_once
    assert commit_change(table, append(data_file(table, "a.parquet"))).attempts == 2
    assert "wait random times instead: [Errno 37] No locks available" in caplog.text


@needs_locks
@pytest.mark.parametrize("table", [TABLE, UUID(int=2)])
def test_released_ticket_is_free_despite_forked_process(path: str, table: UUID) -> None:
    """A process that was forked while the ticket was held keeps the file open, and the lock belongs to the open
    file."""
    queue = CommitQueue(path, table)
    tickets = [queue.take(), queue.take()]
    copies = [os.dup(ticket._descriptor) for ticket in tickets]
    for ticket in tickets:
        ticket.give_back()
    assert not queue.is_busy()
    for copy in copies:
        os.close(copy)


@needs_locks
def test_only_the_hanging_writer_is_passed(path: str) -> None:
    """CP-26: a new writer waits for the writers that are queued behind the one that hangs."""
    queue = CommitQueue(path, TABLE)
    hanging, patient, last = queue.take(), queue.take(), queue.take()
    patient.wait(0.02)
    assert (patient.is_first(), last.is_first()) == (True, False)
    late = queue.take()
    assert not late.is_first()
    for ticket in (patient, last, late):
        ticket.give_back()
    assert not queue.is_busy(), "who hangs is not counted any more"
    hanging.give_back()


def test_retry_pauses_only_after_a_race_lost_in_turn() -> None:
    """CP-26: a writer outside of the queue won it."""
    turn = CommitTurn(None, patience_seconds=1, pause_seconds=0.5)
    assert turn.pause_seconds(1) == 0.0
    pauses = [turn.pause_seconds(attempt) for attempt in (2, 3) for _ in range(50)]
    assert all(0 <= pause <= 0.5 for pause in pauses)
    assert min(pauses[:50]) < 0.25 < max(pauses[:50])
