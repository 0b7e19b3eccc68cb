"""The thread of upkeep: its pause after failures, its rounds beside forks, and what is counted (MT-86)."""

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
from tableformat.maintenance.upkeep.background import Background


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
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


def kept(background: Background, table: tf.Table, branch: str = "main") -> int:
    """Ask for upkeep and wait for it; the failures so far."""
    background.notify(another_handle(table).iceberg, branch)
    assert background.wait(30)
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
    assert (metrics.merged_data_file_count, metrics.added_data_file_count) == (4, 1)


class Held:
    """A round that reports progress whenever it is told to, until it is over."""

    def __init__(self, what: str = "files") -> None:
        self.what = what
        self.begun, self.over = threading.Event(), threading.Event()
        self.count = 0

    def __call__(self, *_arguments: Any, progress: Any, **_options: Any) -> Iterator[rounds.UpkeepResult]:
        self.count += 1
        self.begun.set()
        while not self.over.wait(0.002):
            progress(0, 1, self.what)
        yield from ()


def test_waiting_is_for_the_round_that_runs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: and for what waits behind it; one thread does both."""
    held = Held()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(30)
    assert not background.wait(0)
    background.notify(another_handle(table).iceberg, "other")
    assert not background.wait(0.01)
    assert held.count == 1
    held.over.set()
    assert background.wait(30)
    assert held.count == 2


def test_no_round_runs_while_a_thread_forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: what is cancelled begins anew when the last has forked; and a fork more is ended than was begun."""
    held = Held()
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.go_on()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(30)
    held.begun.clear()
    background.stop_for_a_fork()
    background.stop_for_a_fork()
    assert not background.wait(0), "it waits"
    background.go_on()
    assert not held.begun.wait(0.02)
    background.go_on()
    assert held.begun.wait(30)
    held.over.set()
    assert background.wait(30)
    assert (held.count, table.maintenance.upkeep_metrics.failure_count) == (2, 0)


def test_a_fork_waits_for_a_removal_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: it is not cancelled."""
    held = Held(UNNEEDED_FILES)
    monkeypatch.setattr(background_module, "rounds_asked_for", held)
    table, background = table_of(tmp_path, "background"), Background()
    background.notify(another_handle(table).iceberg, "main")
    assert held.begun.wait(30)
    timer = threading.Timer(0.02, held.over.set)
    timer.start()
    background.stop_for_a_fork()
    assert held.over.is_set()
    background.go_on()
    assert background.wait(30)
    assert held.count == 1


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
    """MT-86: what waits is given up; a thread that waited for it would keep the process from ending."""
    table, background = table_of(tmp_path, "background"), Background()
    background.stop_for_a_fork()
    background.notify(another_handle(table).iceberg, "main")
    waiter = threading.Thread(target=background.wait, daemon=True)
    waiter.start()
    assert not background.wait(0.05)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "main_thread", threading.Thread)
        waiter.join(10)
    assert not waiter.is_alive()
    background.go_on()
    assert background.wait(30)
