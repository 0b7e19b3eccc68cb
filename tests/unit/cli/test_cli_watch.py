"""The command line: upkeep, once and as a service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_lake import TABLE, Lake, make_lake
from maintenance_tables import rows

import tableformat as tf
from tableformat.cli import watch
from tableformat.cli.session import Session
from tableformat.errors import CommitInterruptedError, NamespaceNotFoundError, StorageError
from tableformat.maintenance.maintenance import Maintenance


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "calendars")


EAGER = {"tableformat.upkeep.files-per-level": "3", "tableformat.upkeep.write-amplification": "100"}


def test_watch_maintains_all_tables_with_upkeep_enabled(lake: Lake) -> None:
    """MT-88."""
    with tf.open_catalog(str(lake.directory)) as catalog:
        for name, properties in (("db.small", EAGER), ("db.left", {**EAGER, "tableformat.upkeep": "off"})):
            table = catalog.create_table(name, rows("a", [1]).schema, key=["id1", "id2"], properties=properties)
            for number in range(4):
                table.append(rows("a", [number]))
        done = lake.run("maintain", "--watch", "--for", "0s", "--interval", "1s")
        assert "db.small: 4 data files became 1" in done.stdout
        assert "db.left" not in done.stdout
        bad = catalog.create_table("db.bad", rows("a", [1]).schema, key=["id1", "id2"])
        with bad.iceberg.transaction() as by_another:
            by_another.set_properties({"tableformat.upkeep.files-per-level": "1"})
        done = lake.run("maintain", "--watch", "--for", "0s")
        assert done.status == 0
        assert "db.bad: table property tableformat.upkeep.files-per-level must be at least 2" in done.stderr
        assert catalog.load_table("db.small").scan().count() == 4
        assert catalog.load_table("db.left").inspect.files().num_rows == 4
        named = lake.run("maintain", "db.left", "--watch", "--for", "0s")
        assert "db.left: 4 data files became 1" in named.stdout


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), CommitInterruptedError("who knows")])
def test_ctrl_c_stops_the_watch_at_any_point(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, interrupt: BaseException
) -> None:
    """CP-51: during a commit it used to be reported as an error of the table, and the watch continued."""
    eager_table(lake, "db.small")

    def interrupted(_maintenance: Maintenance) -> None:
        raise interrupt

    monkeypatch.setattr(Maintenance, "upkeep", interrupted)
    monkeypatch.setattr(time, "sleep", of_the_watch(lambda: pytest.fail("the watch goes on")))
    done = lake.run("maintain", "--watch")
    assert (done.status, done.stderr) == (0, "")


def test_watch_continues_during_a_catalog_outage(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-101: a namespace that is dropped while it is listed, too; but a catalog that never was there is an error."""
    eager_table(lake, "db.small")
    list_tables, answers = tf.Catalog.list_tables, iter(["", "no answer"])

    def answer(catalog: tf.Catalog, namespace: Any = None) -> list[str]:
        if namespace == "left":
            raise NamespaceNotFoundError("it was dropped")
        if namespace is None and (error := next(answers, "")):
            raise StorageError(error)
        return list_tables(catalog, namespace)

    monkeypatch.setattr(tf.Catalog, "list_tables", answer)
    monkeypatch.setattr(tf.Catalog, "list_namespaces", lambda _catalog, **_options: ["db", "left"])
    turns = iter(range(3))

    def pause() -> None:
        if next(turns, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", of_the_watch(pause))
    done = lake.run("maintain", "--watch")
    assert done.status == 0
    assert "the tables cannot be listed; trying again later: no answer" in done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["db.small:"]
    answers = iter(["no answer"])
    done = lake.run("maintain", "--watch", "--for", "0s")
    assert (done.status, done.stderr) == (1, "Error: no answer\n")


def test_watch_skips_dropped_and_disabled_tables(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-101."""
    for name in ("db.gone", "db.off"):
        eager_table(lake, name)
    looked = watch.in_order_of_gain

    def late(session: Session, catalog: tf.Catalog, *arguments: Any) -> list[tf.Table]:
        tables = list(looked(session, catalog, *arguments))
        catalog.drop_table("db.gone")
        catalog.load_table("db.off").set_properties({"tableformat.upkeep": "off"})
        return tables

    monkeypatch.setattr(watch, "in_order_of_gain", late)
    done = lake.run("maintain", "--watch", "--for", "0s")
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    with lake.table("db.off") as left:
        assert left.inspect.data_files().num_rows == 4


def of_the_watch(pause: Callable[[], None]) -> Callable[[float], None]:
    """A `time.sleep` that calls `pause` in the current thread, in which the watch runs. Other threads of the process
    (of a Spark session of earlier tests, say) still sleep."""
    sleep, watching = time.sleep, threading.get_ident()

    def sleep_or_pause(seconds: float) -> None:
        if threading.get_ident() == watching:
            pause()
        else:
            sleep(seconds)

    return sleep_or_pause


def eager_table(lake: Lake, name: str) -> None:
    with tf.open_catalog(str(lake.directory)) as catalog:
        table = catalog.create_table(name, rows("a", [1]).schema, key=["id1", "id2"], properties=EAGER)
        for number in range(4):
            table.append(rows("a", [number]))


def test_upkeep_command_runs_due_work_once(lake: Lake) -> None:
    with tf.open_catalog(str(lake.directory)) as catalog:
        table = catalog.create_table("db.small", rows("a", [1]).schema, key=["id1", "id2"], properties=EAGER)
        for number in range(4):
            table.append(rows("a", [number]))
        tried = lake.json("upkeep", "db.small", "--dry-run")
        assert (tried["dry_run"], tried["merged_data_files_count"]) == (True, 4)
        assert "db.small: 4 data files became 1" in lake.run("upkeep", "db.small", "--yes").stdout
        assert table.refresh().inspect.data_files().num_rows == 1


@pytest.mark.parametrize(
    "arguments",
    [(), (TABLE, TABLE), ("--watch", "--dry-run"), ("--watch", "--only", "compact"), (TABLE, "--for", "1s", "--yes")],
)
def test_options_that_conflict_with_watch_are_rejected(lake: Lake, arguments: tuple[str, ...]) -> None:
    done = lake.run("maintain", *arguments)
    assert (done.status, done.stdout) == (2, "")
