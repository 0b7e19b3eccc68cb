"""The guide: the blocks of every page run and print the stated output, and every page is in the table of contents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import BLOCK, run_document, run_notebook

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
OF_SPARK = {"stream.md", "tasks/change-data.md"}
"""Pages that tests/spark/test_docs_spark.py runs."""
OF_TOOLS = {"tasks/tools.md"}
"""Pages that tests/integration/test_tools.py runs."""
WITH_CODE = sorted(name for name, path in PAGES.items() if BLOCK.search(path.read_text()))


@pytest.mark.parametrize("name", sorted(set(WITH_CODE) - OF_SPARK - OF_TOOLS))
def test_pages_print_the_documented_output(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_document(PAGES[name]) >= 1


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_show_their_stored_output(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_notebook(path) >= 1


def test_pages_and_table_of_contents_agree() -> None:
    """The specification is added when the guide is built."""
    listed = re.findall(r"(?m)^ +- ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text())
    generated = {"reference/cli.md"}
    assert sorted(listed) == sorted({*PAGES, *generated})


def test_non_runnable_blocks_are_marked() -> None:
    """A block without a language is output or a form; a Python block that does not run is not allowed here."""
    fences = {fence for path in PAGES.values() for fence in re.findall(r"(?m)^```(\w+)", path.read_text())}
    assert fences <= {"python", "console"}


def test_links_point_to_existing_pages() -> None:
    """`mkdocs build` checks them too, including anchors; this is the quick check."""
    generated = {DOCS / "reference" / "cli.md"}
    pictures = set(re.findall(r'"(pictures/[\w-]+\.svg)"', (DOCS / "hooks" / "generated_pages.py").read_text()))
    for path in PAGES.values():
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text()):
            found = (path.parent / target).resolve()
            of_specs = ROOT / "specs" / found.relative_to(DOCS).as_posix().removeprefix("specification/")
            is_there = found in generated or found.is_file() or found.relative_to(DOCS).as_posix() in pictures
            assert is_there or of_specs.is_file(), f"{path.name}: {target}"
