"""The documents in the root folder: the README runs and prints its stated output, and paths in documents exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main
from documents import run_document

from tableformat.cli.main import app

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
AT_A_GLANCE = ROOT / "docs" / "at-a-glance.md"


@pytest.mark.parametrize("runs", [1, 2])
def test_readme_prints_what_it_says(tmp_path: Path, monkeypatch, runs: int) -> None:
    """Also if a reader pastes the README twice."""
    monkeypatch.chdir(tmp_path)
    for _ in range(runs):
        assert run_document(README) >= 2


def test_one_page_has_every_command() -> None:
    """`test_docs_pages.py` runs it."""
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    rows = re.findall(r"(?m)^\| (?:look|read|change|maintain|test readers) \| (.*) \|$", AT_A_GLANCE.read_text())
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named | {"demo"} == commands


def test_readme_is_short() -> None:
    """The purpose, two commands, a picture, a minute of code, and links; everything else is in the guide."""
    assert len(README.read_text().splitlines()) < 80


PATH = re.compile(r"`((?:tableformat|spark_ext|tests|specs|\.ci)/[^`\s]*|[A-Z]+\.md|\.[\w-]+\.yaml|pyproject\.toml)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "README.md"])
def test_every_path_that_a_document_names_exists(name: str) -> None:
    """A file that is moved is moved in the documents too."""
    text = (ROOT / name).read_text()
    named = {*PATH.findall(text), *LINK.findall(text)}
    assert named, f"{name} names no file"
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_architecture_walks_from_the_verb_to_the_catalog() -> None:
    """Both walks begin at the handle; module names are whole paths, which the test above checks."""
    walks = re.split(r"(?m)^## ", (ROOT / "ARCHITECTURE.md").read_text())[2:]
    assert [walk.partition("\n")[0] for walk in walks] == ["A blind delete", "A scan"]
    for walk in walks:
        steps = re.findall(r"(?m)^\| (\d+) \| (.*?) \|", walk)
        assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
        assert steps[0][1].startswith("`tableformat/table.py`")
        assert all(PATH.search(where) for _, where in steps)


def test_contributing_names_targets_that_make_has() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?m)^([a-z][a-z-]*):", makefile))
    assert set(re.findall(r"\bmake ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text())) <= targets


def test_the_licence_is_whole_and_goes_into_the_wheel() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])


def test_hooks_run_the_tools_of_lint() -> None:
    """The commit hooks run the same checks as `make lint`, with the tools of the same environment."""
    tools = set(re.findall(r"entry: \.venv/bin/([\w-]+)", (ROOT / ".pre-commit-config.yaml").read_text()))
    assert tools == {"ruff", "mypy", "lint-imports", "python"}
    assert [tool for tool in tools - {"python"} if f"/{tool}" not in (ROOT / "Makefile").read_text()] == []
