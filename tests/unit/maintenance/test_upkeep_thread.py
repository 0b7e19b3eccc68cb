"""The upkeep thread: when it starts, pauses and ends, its rounds during forks, and its metrics (MT-86)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import another_handle, keyed_table, rows

import tableformat as tf
from tableformat.maintenance.expiry.expired_files import UNNEEDED_FILES
from tableformat.maintenance.upkeep import background as background_module
from tableformat.maintenance.upkeep import rounds
from tableformat.maintenance.upkeep.background import BACKGROUND, Background

PATIENCE = 15
"""A timeout in seconds for events that happen at once unless something is broken."""


def table_of(directory: Path, mode: str) -> tf.Table:
    eager = {"tableformat.upkeep.files-per-level": "4", "tableformat.upkeep.write-amplification": "1000"}
    table: tf.Table = keyed_table(directory, properties={**eager, "tableformat.upkeep": mode})
    return table


def append_often(table: tf.Table, count: int) -> None:
    for number in range(count):
        table.append(rows("a", [number]))


class Clock:
    """Stands in for the module `time`, in the thread of upkeep alone."""

    def __init__(self) -> None:
        self.now = 0.0
        self.looked_at = threading.Event()

    def monotonic(self) -> float:
        self.looked_at.set()
        return self.now

    def move(self, seconds: float) -> None:
        """Advance the clock after the thread has read its current time once more."""
        self.looked_at.clear()
        assert self.looked_at.wait(PATIENCE)
        self.now += seconds


def kept(background: Background, table: tf.Table, branch: str = "main") -> int:
    """Ask for upkeep and wait for it; the failures so far."""
    background.notify(another_handle(table).iceberg, branch)
    assert background.wait(PATIENCE)
    return table.maintenance.upkeep_metrics.failure_count


def test_after_failures_in_a_row_the_pause_doubles_up_to_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-86: 1 s, 2 s, 4 s ...; and 1 s again after a success."""
    table = table_of(tmp_path, "background")
    clock, is_broken = Clock(), True

    def asked_for(*_arguments: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        if is_broken:
            raise OSError("no space left")
        yield from ()

    monkeypatch.setattr(background_module, "rounds_asked_for", asked_for)
    monkeypatch.setattr(background_module, "time", clock)
    background = Background()
    for count, pause in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 1):
        assert kept(background, table) == count
        clock.now += pause - 0.5
        assert kept(background, table) == count, "too early"
        clock.now += 0.5
    assert table.maintenance.upkeep_metrics.last_failure == "OSError: no space left"
    is_broken = False
    assert kept(background, table) == 8
    is_broken = True
    assert kept(background, table) == 9
    clock.now += 1
    assert kept(background, table) == 10
    clock.now += 60


def test_each_time_that_another_process_is_at_it_is_counted(tmp_path: Path) -> None:
    """MT-86"""
    table = table_of(tmp_path, "background")
    ticket = table.iceberg.catalog.upkeep_queue(table.metadata.table_uuid).take_if_free()
    background = Background()
    for count in (1, 2):
        kept(background, table)
        assert table.maintenance.upkeep_metrics.skipped_count == count
    ticket.give_back()


def test_what_a_writer_does_after_its_commit_is_counted(tmp_path: Path) -> None:
    """MT-83"""
    table = table_of(tmp_path, "writer")
    append_often(table, 4)
    metrics = table.maintenance.upkeep_metrics
    assert (metrics.merged_data_files_count, metrics.added_data_files_count) == (4, 1)


class Recorded:
    """Rounds that do nothing, and the threads that they ran in."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def __call__(self, *_arguments: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        self.threads.append(threading.current_thread())
        yield from ()


@pytest.mark.parametrize(("mode", "count"), [("writer", 2), ("background", 2), ("off", 8)])
def test_no_round_begins_where_none_is_due_or_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, count: int
) -> None:
    """MT-83: a commit costs nothing more then."""
    recorded = Recorded()
    monkeypatch.setattr(rounds, "rounds_asked_for", recorded)
    monkeypatch.setattr(background_module, "rounds_asked_for", recorded)
    append_often(table_of(tmp_path, mode), count)
    assert BACKGROUND.wait(PATIENCE)
    assert recorded.threads == []


class Held:
    """A round that keeps reporting progress until the test ends it."""

    def __init__(self, what: str = "files") -> None:
        self.what = what
        self.begun, self.told, self.over = threading.Event(), threading.Event(), threading.Event()
        self.count = 0

    def __call__(self, *_arguments: Any, progress: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        self.count += 1
        self.begun.set()
        while not self.over.wait(0.002):
            self.told.set()
            progress(0, 1, self.what)
        yield from ()

    def tell(self) -> None:
        """Wait until the round has reported progress once more and continued."""
        for _ in range(2):
            self.told.clear()
            assert self.told.wait(PATIENCE)


def test_waiting_is_for_the_round_that_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: and for what waits behind it; one thread does both."""
    held = Held()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    assert not background.wait(0)
    background.notify(another_handle(table).iceberg, "other")
    assert not background.wait(0.01)
    assert held.count == 1
    held.over.set()
    assert background.wait(PATIENCE)
    assert held.count == 2


def test_no_round_runs_while_a_thread_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MT-86: a cancelled round starts again when the last fork has ended; and ending more forks than began does no
    harm."""
    held = Held()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.go_on()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    held.begun.clear()
    background.stop_for_a_fork()
    background.stop_for_a_fork()
    assert not background.wait(0), "it waits"
    background.go_on()
    assert not held.begun.wait(0.02)
    background.go_on()
    assert held.begun.wait(PATIENCE)
    held.over.set()
    assert background.wait(PATIENCE)
    assert (held.count, table.maintenance.upkeep_metrics.failure_count, caplog.messages) == (2, 0, [])


def test_what_waits_for_a_fork_is_done_however_long_that_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: the thread does not end as an idle one does."""
    recorded, clock = Recorded(), Clock()
    monkeypatch.setattr(background_module, "rounds_asked_for", recorded)
    monkeypatch.setattr(background_module, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(background_module, "time", clock)
    table, background = table_of(tmp_path, "background"), Background()
    background.stop_for_a_fork()
    background.notify(another_handle(table).iceberg, "main")
    assert not background.wait(0.01)
    clock.now += 60
    assert not background.wait(0.02)
    background.go_on()
    assert background.wait(PATIENCE)
    assert len(recorded.threads) == 1


def test_a_fork_waits_for_a_removal_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: it is not cancelled."""
    held = Held(UNNEEDED_FILES)
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    timer = threading.Timer(0.02, held.over.set)
    timer.start()
    background.stop_for_a_fork()
    assert held.over.is_set()
    background.go_on()
    assert background.wait(PATIENCE)
    assert held.count == 1


def test_a_fork_goes_on_beside_a_removal_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MT-86: and a warning is logged."""
    held = Held(UNNEEDED_FILES)
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    monkeypatch.setattr(background_module, "_FORK_PATIENCE_SECONDS", 0.01)
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    background.stop_for_a_fork()
    assert not held.over.is_set()
    assert caplog.messages == ["a fork waited 0.01 s for the upkeep of a table, and continues"]
    held.tell()
    background.go_on()
    held.over.set()
    assert background.wait(PATIENCE)
    assert held.count == 1


def test_a_round_that_forks_does_not_wait_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MT-86: an executor may start processes."""
    background = Background()

    def forking(*_arguments: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        background.stop_for_a_fork()
        background.go_on()
        yield from ()

    monkeypatch.setattr(background_module, "rounds_asked_for", forking)
    monkeypatch.setattr(background_module, "_FORK_PATIENCE_SECONDS", 0.01)
    assert (kept(background, table_of(tmp_path, "background")), caplog.messages) == (0, [])


def test_one_thread_does_what_comes_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: then it ends, and another thread is started for later commits. The interpreter waits for both."""
    recorded, clock = Recorded(), Clock()
    monkeypatch.setattr(background_module, "rounds_asked_for", recorded)
    monkeypatch.setattr(background_module, "time", clock)
    table, background = table_of(tmp_path, "background"), Background()
    kept(background, table)
    clock.move(0.75)
    kept(background, table)
    clock.move(1.0)
    recorded.threads[0].join(PATIENCE)
    assert not recorded.threads[0].is_alive()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "is_alive", lambda _: True)  # A thread that ends lives for a moment more.
        kept(background, table)
    first, second, third = recorded.threads
    assert first is second is not third
    assert (first.daemon, third.daemon) == (False, False)


def test_the_thread_is_woken_for_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: also for work that waited until a fork was over, before the thread checks by itself."""
    recorded = Recorded()
    monkeypatch.setattr(background_module, "rounds_asked_for", recorded)
    monkeypatch.setattr(background_module, "_LOOK_SECONDS", 2 * PATIENCE)
    monkeypatch.setattr(background_module, "time", Clock())
    table, background = table_of(tmp_path, "background"), Background()
    kept(background, table)
    time.sleep(0.02)  # It is idle by now.
    background.notify(another_handle(table).iceberg, "main")
    assert background.wait(PATIENCE)
    background.stop_for_a_fork()
    background.notify(another_handle(table).iceberg, "main")
    assert not background.wait(0.02)
    background.go_on()
    assert background.wait(PATIENCE)
    assert len(set(recorded.threads)) == 1
    monkeypatch.undo()
    assert kept(background, table) == 0


def test_an_exit_in_a_round_is_a_failure_of_that_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: raised by a custom executor, for example. The rounds queued behind it run; no caller waits for ever."""
    held, table, background = Held(), table_of(tmp_path, "background"), Background()
    other = table_of(tmp_path / "other", "background")

    def exiting(*arguments: Any, **options: Any) -> Iterator[rounds.UpkeepResult]:
        yield from held(*arguments, **options)
        if held.count == 1:
            raise SystemExit("enough")

    monkeypatch.setattr(background_module, "rounds_asked_for", exiting)
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    background.notify(another_handle(other).iceberg, "main")
    held.over.set()
    assert background.wait(PATIENCE)
    assert (held.count, table.maintenance.upkeep_metrics.last_failure) == (2, "SystemExit: enough")


def test_a_thread_whose_start_was_cut_short_is_started_with_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-86: by Ctrl-C in a notebook, which continues."""
    recorded = Recorded()
    monkeypatch.setattr(background_module, "rounds_asked_for", recorded)
    table, background = table_of(tmp_path, "background"), Background()

    def interrupted(_thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.notify(another_handle(table).iceberg, "main")
    background.notify(another_handle(table).iceberg, "main")
    assert background.wait(PATIENCE)
    assert len(recorded.threads) == 1


def test_a_round_is_cancelled_when_the_main_thread_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: at once; it does not count as a failure, and the rounds queued behind it do not start."""
    held = Held()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    monkeypatch.setattr(background_module, "time", Clock())
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    background.notify(another_handle(table).iceberg, "other")
    with monkeypatch.context() as patched:
        patched.setattr(threading, "main_thread", threading.Thread)
        assert background.wait(PATIENCE)
    assert held.count == 1
    held.over.set()
    assert (kept(background, table), held.count) == (0, 2)


def test_a_removal_of_files_goes_on_for_ten_seconds_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: of expired snapshots; what is left then are orphans."""
    held, clock = Held(UNNEEDED_FILES), Clock()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    monkeypatch.setattr(background_module, "time", clock)
    table, background = table_of(tmp_path, "background"), Background()
    clock.now = 100.0
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(PATIENCE)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "main_thread", threading.Thread)
        held.tell()
        clock.now += 10
        held.tell()
        assert not background.wait(0)
        clock.now += 0.5
        assert background.wait(PATIENCE)
    assert not held.over.is_set()


def test_what_breaks_when_the_main_thread_has_ended_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MT-86: the interpreter takes away what the round needs."""

    def broken(*_arguments: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        patched.setattr(threading, "main_thread", threading.Thread)
        yield from ()
        raise RuntimeError("cannot schedule new futures after shutdown")

    table = table_of(tmp_path, "background")
    with monkeypatch.context() as patched:
        patched.setattr(background_module, "rounds_asked_for", broken)
        assert (kept(Background(), table), caplog.messages) == (0, [])


def test_where_no_thread_can_be_started_the_next_commit_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MT-83, MT-86: what could not be done is not waited for."""
    table, background = table_of(tmp_path, "off"), Background()
    append_often(table, 8)
    table.set_properties({"tableformat.upkeep": "background"})

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            background.notify(another_handle(table).iceberg, "main")
    assert background.wait(0)
    assert kept(background, table) == 0
    assert table.refresh().inspect.data_files().num_rows < 8


def test_who_waits_goes_on_when_the_main_thread_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: waiting work is given up; a thread that waited for it would keep the process from ending."""
    table, background = table_of(tmp_path, "background"), Background()
    background.stop_for_a_fork()
    background.notify(another_handle(table).iceberg, "main")
    waiter = threading.Thread(target=background.wait, daemon=True)
    waiter.start()
    assert not background.wait(0.05)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "main_thread", threading.Thread)
        waiter.join(PATIENCE)
    assert not waiter.is_alive()
    background.go_on()
    assert background.wait(PATIENCE)
