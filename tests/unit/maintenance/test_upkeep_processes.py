"""Background upkeep in a process that forks or ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from maintenance_tables import another_handle, keyed_table, rows

import tableformat as tf
from tableformat.maintenance.expiry import expired_files
from tableformat.maintenance.upkeep import background as background_module
from tableformat.maintenance.upkeep import rounds
from tableformat.maintenance.upkeep.background import BACKGROUND
from tableformat.storage.loading_cache import LoadingCache


def table_of(directory: Path, more: Mapping[str, str] | None = None) -> tf.Table:
    eager = {"tableformat.upkeep.files-per-level": "4", "tableformat.upkeep.write-amplification": "1000"}
    return keyed_table(directory, properties={**eager, **(more or {}), "tableformat.upkeep": "off"})


def append_often(table: tf.Table, count: int) -> None:
    for number in range(count):
        table.append(rows("a", [number]))


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_forked_child_does_not_inherit_held_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: the round is cancelled for the fork and starts again; no failure is counted."""
    table = table_of(tmp_path)
    append_often(table, 8)
    table.set_properties({"tableformat.upkeep": "background"})
    cache: LoadingCache[str, int] = LoadingCache(100, lambda _: 1)
    loading = threading.Event()
    begun: list[str] = []

    def reading(iceberg: Any, branch: str, *, executor: Any, progress: Any) -> Iterator[rounds.UpkeepResult]:
        begun.append(branch)
        for number in range(20 if len(begun) == 1 else 1):
            cache.get_or_load(str(number), lambda: (loading.set(), time.sleep(0.05), 1)[-1])
            progress(number, 20, "files")
        yield from rounds.rounds_asked_for(iceberg, branch, executor=executor, progress=progress)

    monkeypatch.setattr(background_module, "rounds_asked_for", reading)
    BACKGROUND.notify(another_handle(table).iceberg, "main")
    assert loading.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        for number in range(20):
            cache.get_or_load(str(number), lambda: 1)
        os._exit(0 if BACKGROUND.wait(0) and table.scan().count() == 8 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert BACKGROUND.wait(60)
    assert begun == ["main", "main"]
    metrics = table.maintenance.upkeep_metrics
    assert (metrics.merged_data_files_count, metrics.failure_count) == (8, 0)
    assert sorted(table.refresh().scan().to_arrow()["id2"].to_pylist()) == list(range(8))


def test_fork_waits_for_file_removal(tmp_path: Path) -> None:
    """MT-86: no other process would finish it."""
    table = table_of(tmp_path, {"tableformat.history.max-snapshots": "3"})
    append_often(table, 40)
    table.set_properties({"tableformat.upkeep": "background"})
    removing = threading.Event()
    remove = expired_files._remove

    def slowly(owned: Any, file: Any) -> bool:
        removing.set()
        time.sleep(0.005)
        return remove(owned, file)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expired_files, "_remove", slowly)
        BACKGROUND.notify(another_handle(table).iceberg, "main")
        assert removing.wait(60)
        BACKGROUND.stop_for_a_fork()
        try:
            assert table.maintenance.upkeep_metrics.expired_snapshots_count > 0
        finally:
            BACKGROUND.go_on()
        assert BACKGROUND.wait(60)
    assert table.maintenance.remove_orphan_files(allow_recent=True, older_than=timedelta(0)).orphan_file_locations == ()


def test_expired_files_are_removed_before_process_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-86: otherwise they would stay as orphans for ever."""
    table = table_of(tmp_path, {"tableformat.history.max-snapshots": "3"})
    append_often(table, 40)
    table.set_properties({"tableformat.upkeep": "background"})
    expire = rounds.expire_snapshots

    def ending(*arguments: Any, **keywords: Any) -> Any:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(threading, "main_thread", threading.Thread)
            return expire(*arguments, **keywords)

    monkeypatch.setattr(rounds, "expire_snapshots", ending)
    BACKGROUND.notify(another_handle(table).iceberg, "main")
    assert BACKGROUND.wait(60)
    assert len(table.refresh().metadata.snapshots) < 40
    listed = table.maintenance.remove_orphan_files(allow_recent=True, older_than=timedelta(0))
    assert (listed.orphan_file_locations, listed.recent_files_count) == ((), 0)
