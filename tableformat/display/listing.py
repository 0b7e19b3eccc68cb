"""Renders the tables of a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from tableformat.display import text
from tableformat.display.grid import Column, grid

if TYPE_CHECKING:
    from tableformat.display.summary import TableSummary


def render_names(identifiers: Sequence[str]) -> RenderableType:
    """One identifier on each line and nothing else, for shell loops."""
    return Text("\n".join(identifiers))


def render_summaries(summaries: Sequence[TableSummary]) -> RenderableType:
    """One table on each line, with its figures."""
    columns = [
        Column("table", wraps=True),
        Column("rows", is_number=True),
        Column("files", is_number=True),
        Column("size", is_number=True),
        Column("deletes", is_number=True),
        Column("committed at"),
    ]
    return grid(columns, [_row(summary) for summary in summaries])


def _row(summary: TableSummary) -> list[str]:
    snapshot = summary.snapshot
    is_exact = summary.live_row_count is not None
    return [
        summary.name,
        text.count(summary.record_count) if is_exact else f"<= {text.count(summary.record_count)}",
        text.count(summary.data_file_count),
        text.size(summary.data_bytes),
        text.count(sum(kind.file_count for kind in summary.delete_files)),
        snapshot.committed_at if snapshot else "never",
    ]
