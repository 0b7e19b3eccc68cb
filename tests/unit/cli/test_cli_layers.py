"""The command line: `layers` as text, JSON and a drawing."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_lake import TABLE, Lake, make_lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "lake")


def test_layers(lake: Lake, tmp_path: Path) -> None:
    run = lake.run("layers", TABLE)
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout.startswith(f"{TABLE} by id1: ")
    assert max(map(len, lake.run("layers", TABLE, columns=60).stdout.splitlines())) <= 60
    assert "1 equality delete file" not in lake.run("layers", TABLE, "--tag", "first").stdout
    document = lake.json("layers", TABLE, "--column", "id2", "--even")
    assert (document["column"], document["to_scale"], document["svg"]) == ("id2", False, None)
    assert {file["kind"] for file in document["files"]} == {"data", "range", "equality"}
    drawing = tmp_path / "layers.svg"
    assert lake.run("layers", TABLE, "-o", drawing).stdout == ""
    assert drawing.read_text().startswith("<svg")
    assert lake.json("layers", TABLE, "--svg", drawing)["svg"] == str(drawing)
    assert lake.run("layers", TABLE, "-o", tmp_path / "layers.png").status == 2
    assert lake.error("layers", TABLE, "--column", "id3")["type"] == "UnknownColumnError"
