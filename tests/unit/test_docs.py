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
def test_readme_prints_the_documented_output(tmp_path: Path, monkeypatch, runs: int) -> None:
    """Also if a reader pastes the README twice."""
    monkeypatch.chdir(tmp_path)
    for _ in range(runs):
        assert run_document(README) >= 2


def test_overview_page_lists_every_command() -> None:
    """`test_docs_pages.py` runs it."""
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    rows = re.findall(r"(?m)^\| (?:look|read|change|maintain|test readers) \| (.*) \|$", AT_A_GLANCE.read_text())
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named | {"demo"} == commands


PATH = re.compile(r"`((?:tableformat|spark_ext|tests|specs|\.ci)/[^`\s]*|[A-Z]+\.md|\.[\w-]+\.yaml|pyproject\.toml)`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "README.md"])
def test_paths_in_documents_exist(name: str) -> None:
    """A file that is moved is moved in the documents too."""
    text = (ROOT / name).read_text()
    named = {*PATH.findall(text), *LINK.findall(text)}
    assert named, f"{name} names no file"
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_licence_is_complete_and_packaged() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
