"""`erase`, and `verify --erased`: the question, the certificate, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_lake import TABLE, Lake, calendar_rows

import tableformat as tf
from tableformat.cli import erase as command


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    with tf.open_catalog(str(lake.directory)) as catalog:
        catalog.create_namespace("db")
        for name in (TABLE, "db.more"):
            table = catalog.create_table(name, calendar_rows("A").schema, key=["id1", "id2"])
            table.append(calendar_rows("A", "B", "C"))
    return lake


def answer(monkeypatch: pytest.MonkeyPatch, answers: list[bool]) -> list[str]:
    """Answer the questions, and return them."""
    asked: list[str] = []

    def ask(question: str, *_: Any) -> None:
        asked.append(question)
        if not answers.pop(0):
            raise SystemExit(1)

    monkeypatch.setattr(command, "ask", ask)
    monkeypatch.setattr(command, "require_terminal", lambda _: None)
    return asked


def count(lake: Lake, name: str = TABLE) -> int:
    with tf.open_catalog(str(lake.directory)) as catalog:
        return catalog.load_table(name).scan().count()


def test_a_dry_run_states_the_rows(lake: Lake) -> None:
    document = lake.json("erase", TABLE, "id1=A", "--dry-run")
    assert (document["dry_run"], document["tables"][0]["erased_rows_count"]) == (True, 4)
    assert count(lake) == 12


def test_erase_asks_and_writes_the_certificate(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-111, MT-119: for several tables together."""
    file = tmp_path / "certificate.json"
    asked = answer(monkeypatch, [False, True])
    call = ("erase", TABLE, "id1=A", "--also", "db.more", "--certificate", str(file))
    assert lake.run(*call).status == 1
    assert asked == [f"Erase 8 rows of {TABLE}, db.more from all snapshots? They cannot be brought back."]
    assert not file.exists()
    page = lake.run(*call).stdout
    assert "Everything was read again: nothing of it is left." in page
    assert (count(lake), count(lake, "db.more")) == (8, 8)
    assert json.loads(file.read_text())["is_complete"]
    assert lake.run("verify", TABLE, "--erased", str(file)).status == 0
    with tf.open_catalog(str(lake.directory)) as catalog:
        catalog.load_table(TABLE).append(calendar_rows("A"))
    found = lake.run("verify", TABLE, "--erased", str(file))
    assert found.status == 1
    assert "erased-rows" in found.stdout
    assert "exists already" in lake.run(*call, "--yes").stderr


def test_an_incomplete_erasure_ends_with_status_1(lake: Lake) -> None:
    with tf.open_catalog(str(lake.directory)) as catalog:
        catalog.load_table(TABLE).create_tag("before-A")
    run = lake.run("erase", TABLE, "--where", "id1 = 'A'", "--yes")
    assert run.status == 1
    assert "The erasure is not complete." in run.stdout
    assert "branch or tag" in run.stdout


def test_invalid_erase_calls_are_rejected(lake: Lake) -> None:
    assert "give COLUMN=VALUE or --where" in lake.run("erase", TABLE, "--yes").stderr
    assert "give COLUMN=VALUE or --where" in lake.run("erase", TABLE, "id1=A", "--where", "id2 = 1", "--yes").stderr
    assert "--yes" in lake.run("erase", TABLE, "id1=A").stderr
    assert "no certificate" in lake.error("verify", TABLE, "--erased", __file__)["message"]
