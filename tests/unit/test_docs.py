"""The README's Python runs, top to bottom, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import typer.main

from tableformat.cli.main import app

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_readme_prints_what_it_says(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README.read_text())
    assert blocks, "the README has no Python in it"
    names: dict[str, object] = {}
    checked = 0
    for block in blocks:
        for part in re.split(r"(?m)(?<=\n)(?=# )", block):
            # A part begins with the comment that states what the part before it printed last.
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(part, str(README), "exec"), names)
            following = block[block.index(part) + len(part) :]
            stated = re.match(r"# (.*)\n", following)
            if stated and output.getvalue():
                assert stated[1] == output.getvalue().rstrip("\n").split("\n")[-1]
                checked += 1
    assert checked >= 8


def test_readme_names_every_command() -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    rows = re.findall(r"(?m)^\| (?:look|read|change|maintain) \| (.*) \|$", README.read_text())
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named | {"demo"} == commands
