"""Renders the result of a relocation."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from tableformat.catalogs.relocate_lake import RelocateResult
from tableformat.display import text
from tableformat.display.grid import Column, grid


def render_relocation(result: RelocateResult) -> RenderableType:
    """One table on each line, and the current location of the tables."""
    columns = [
        Column("table", wraps=True),
        Column("files rewritten", is_number=True),
        Column("copied", is_number=True),
        Column("size", is_number=True),
        Column("already present", is_number=True),
    ]
    rows = [
        [
            each.table,
            text.count(each.rewritten_files_count),
            text.count(each.copied_files_count),
            text.size(each.copied_bytes),
            text.count(each.present_files_count),
        ]
        for each in result.tables
    ]
    sentences = [Text(sentence) for sentence in _sentences(result)]
    return Group(grid(columns, rows), Text(), *sentences) if rows else Group(*sentences)


def _sentences(result: RelocateResult) -> Iterator[str]:
    tables = text.counted(len(result.tables), "table")
    if result.dry_run:
        yield f"{tables} would be relocated to {result.target}; nothing was changed."
    else:
        yield f"{tables} relocated to {result.target}."
    if result.unchanged_tables:
        yield f"Already present: {', '.join(result.unchanged_tables)}."
    if result.forgotten_tables:
        yield f"Names dropped, files kept: {', '.join(result.forgotten_tables)}."
