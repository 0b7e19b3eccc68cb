"""Runs the code blocks of a document: Python as one program, then shell commands on the lake that it created."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
from pathlib import Path
from typing import Final

from typer.testing import CliRunner

from tableformat.cli.main import app

BLOCK: Final = re.compile(r"```(python|console)\n(.*?)```|<!-- setup\n(.*?)-->", re.DOTALL)
"""A block that is shown, or a set-up that is not."""
SHOWN_BY: Final = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
"""The method by which a notebook shows a value."""


def run_document(path: Path) -> int:
    """Run every block in the current directory, in order. How many stated outputs were compared.

    In Python a line `# text` after what prints states the last line that was printed; a command begins with `$`.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    checked = 0
    for kind, shown, setup in BLOCK.findall(path.read_text()):
        if kind == "console":
            checked += run_commands(shown)
        else:
            checked += run_python(shown or setup, names, path)
    return checked


def run_python(block: str, names: dict[str, object], path: Path) -> int:
    checked = 0
    for part in re.split(r"(?m)(?<=\n)(?=# )", block):
        # A part begins with the comment that states what the part before it printed last.
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(part, str(path), "exec", dont_inherit=True), names)
        following = block[block.index(part) + len(part) :]
        stated = re.match(r"# (.*)\n", following)
        if stated and output.getvalue():
            printed = output.getvalue().rstrip("\n").split("\n")[-1]
            assert printed == stated[1], f"{path.name} states {stated[1]!r}, and printed is {printed!r}"
            checked += 1
    return checked


def run_notebook(path: Path) -> int:
    """Run the code of a notebook in the current directory, in order. How many stored outputs were compared: what was
    printed is the same text, what was shown is of the same kinds, since snapshot ids and times differ."""
    names: dict[str, object] = {}
    checked = 0
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed, shown = run_cell("".join(cell["source"]), names, str(path))
        outputs = cell["outputs"]
        stored = "".join(line for each in outputs if each["output_type"] == "stream" for line in each["text"])
        assert printed == stored, f"{path.name} states {stored!r}, and printed is {printed!r}"
        for each in outputs:
            for kind in each.get("data", {}):
                assert kind == "text/plain" or getattr(shown, SHOWN_BY[kind])(), f"{path.name}: {kind} of {shown!r}"
        checked += len(outputs)
    return checked


def run_cell(source: str, names: dict[str, object], path: str) -> tuple[str, object]:
    """The output of the code, and the value of its last line if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(tree, path, "exec"), names)
        value = eval(compile(ast.Expression(last.value), path, "eval"), names) if last is not None else None
    return output.getvalue(), value


def run_commands(block: str) -> int:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    for command in commands:
        _, *arguments = shlex.split(command)
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, f"{command}: {result.output}"
    return len(commands)
