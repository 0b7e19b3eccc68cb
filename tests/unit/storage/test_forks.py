"""State that threads and forked children share while another thread waits for a store."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.scan import scan as scan_module
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.forks import new_lock
from tableformat.storage.loading_cache import LoadingCache

PATIENCE = 30
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def made(directory: Path, name: str) -> tf.Table:
    catalog = new_lake(directory / name)
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(pa.table({"id": [1]}, schema=SCHEMA))
    return table


@contextmanager
def waiting(of: Callable[[], Any], reached: threading.Event, go: threading.Event) -> Iterator[None]:
    """Another thread is in the middle of the work."""
    thread = threading.Thread(target=of, daemon=True)
    thread.start()
    assert reached.wait(PATIENCE)
    try:
        yield
    finally:
        go.set()
        thread.join(PATIENCE)


def status_of_child(work: Callable[[], bool]) -> int | None:
    """The exit status of a child that does the work: 0 if it returns True, None if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads.
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tf.Table]:
    """A table whose plan waits for its store until the test is over."""
    table, reached, go = made(tmp_path, "slow"), threading.Event(), threading.Event()
    plan_scan, location = scan_module.plan_scan, table.location

    def waits(view: Any, *arguments: Any, **options: Any) -> Any:
        if view.metadata.location == location:
            reached.set()
            go.wait(PATIENCE)
        return plan_scan(view, *arguments, **options)

    monkeypatch.setattr(scan_module, "plan_scan", waits)
    with waiting(lambda: table.scan().to_arrow(), reached, go):
        yield table


@pytest.mark.usefixtures("slow")
def test_unresponsive_store_does_not_block_other_tables(tmp_path: Path) -> None:
    """CP-63"""
    tables, found = [made(tmp_path, name) for name in "ab"], []
    threads = [
        threading.Thread(target=lambda table=table: found.append(table.scan().to_arrow().num_rows), daemon=True)
        for table in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [1, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.usefixtures("slow")
def test_child_forked_during_a_plan_can_scan(tmp_path: Path) -> None:
    """CP-63"""
    table = made(tmp_path, "a")
    assert status_of_child(lambda: table.scan().to_arrow().num_rows == 1) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_child_loads_values_other_threads_were_loading() -> None:
    """CP-63: and has what was loaded before."""
    cache: LoadingCache[str, str] = LoadingCache(100, len)
    cache.hold("held", "value")
    reached, go = threading.Event(), threading.Event()

    def load() -> str:
        reached.set()
        go.wait(PATIENCE)
        return "theirs"

    with waiting(lambda: cache.get_or_load("key", load), reached, go):
        assert status_of_child(lambda: (cache.held("held"), cache.get_or_load("key", str)) == ("value", "")) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_locks_of_other_threads_are_free_in_forked_child() -> None:
    """CP-63"""
    lock, cache = new_lock(), BoundedCache[str, str](10)
    cache.put("key", "value", 1)
    reached, go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock, cache._lock:
            reached.set()
            go.wait(PATIENCE)

    with waiting(hold, reached, go):
        assert status_of_child(lambda: lock.acquire(timeout=1) and cache.get("key") is None) == 0
    assert cache.get("key") == "value"
