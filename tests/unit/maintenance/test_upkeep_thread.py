"""The upkeep thread: when it starts, pauses and ends, its rounds during forks, and its metrics (MT-86)."""

from __future__ import annotations

import threading
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


def test_upkeep_metrics_count_writer_work(tmp_path: Path) -> None:
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
def test_no_round_starts_unless_due_or_requested(
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


def test_wait_for_upkeep_includes_running_and_queued_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_rounds_are_cancelled_during_forks(
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
