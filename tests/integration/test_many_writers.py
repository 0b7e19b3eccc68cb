"""Processes that write to one table concurrently: nothing is lost or duplicated, and the history is serializable. With
`SOAK_WRITERS_MINUTES=2` and `-s` it prints the figures of `notes/reliability.md`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from many_writers import TABLE, Call, Lake, Run, run_writers, to_arrow
from postgres_server import postgres_uri
from replayed_history import ACT, ReplayedHistory
from soak_figures import count, soak_seed

import tableformat as tf
from tableformat.testing.replay import check_feed

SOAK_SECONDS = float(os.environ.get("SOAK_WRITERS_MINUTES", "0")) * 60
WRITERS = 8 if SOAK_SECONDS else 2
SECONDS = SOAK_SECONDS or 1.5
ENOUGH = 3
"""If the writers average this many commits, a writer without any was starved; a machine under load makes fewer."""

pytestmark = pytest.mark.slow


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.long), "postgresql"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    if request.param == "sqlite":
        made = Lake(str(tmp_path / "lake"))
        made.create()
        yield made
        return
    with postgres_uri() as uri:
        made = Lake("shared", {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path / 'lake'}"})
        made.create()
        yield made


def test_history_of_many_writers_is_serializable(lake: Lake, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """CP-1, CP-3, CP-14: every snapshot has the rows of the model, and each acknowledged commit is there once."""
    run = run_writers(lake, tmp_path / "out", writers=WRITERS, seconds=SECONDS, seed=int(soak_seed("1") or 1))
    count("commits", len(run.committed()))
    print(f"\n{run.report(request.node.name)}")
    with lake.open() as catalog:
        table = catalog.load_table(TABLE)
        check_history(run, table)
        check_feed(table.view)
        assert table.verify(deep=True).is_clean
    for name, calls in run.calls.items() if len(run.committed()) >= ENOUGH * WRITERS else ():
        assert any(call.is_timed and call.outcome == "committed" for call in calls), f"{name} committed nothing"


def check_history(run: Run, table: tf.Table) -> None:
    """Finish the replay that the keeper began, and check the calls of all writers."""
    assert run.history is not None
    run.history.advance(table)
    run.history.check_calls(call for calls in run.calls.values() for call in calls)


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    lake = Lake(str(tmp_path / "lake"))
    lake.create()
    return tf.open_catalog(lake.name).load_table(TABLE)


def noted(value: str, verb: str, rows: list[list[object]]) -> dict[str, str]:
    return {ACT: json.dumps({"value": value, "verbs": [{"verb": verb, "rows": rows}], "batch": {}, "seen": 0})}


def test_replay_detects_a_lost_row(table: tf.Table) -> None:
    """The check can fail: a snapshot that differs from its description."""
    table.append(to_arrow([[0, 1, "a"]]), snapshot_properties=noted("w0-1", "append", [[0, 1, "a"], [0, 2, "b"]]))
    with pytest.raises(AssertionError, match="missing"):
        ReplayedHistory().advance(table)


def test_replay_detects_a_missing_acknowledged_commit(table: tf.Table) -> None:
    table.append(to_arrow([[0, 1, "a"]]), snapshot_properties=noted("w0-1", "append", [[0, 1, "a"]]))
    history = ReplayedHistory()
    history.advance(table)
    there = Call("w0-1", "committed", 0.0, snapshot_id=table.snapshot_id)
    history.check_calls([there])
    with pytest.raises(AssertionError):
        history.check_calls([there, Call("w0-2", "committed", 0.0, snapshot_id=7)])
    with pytest.raises(AssertionError):
        history.check_calls([])
