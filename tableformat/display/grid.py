"""The one look of all tables: no frame, a rule under the header, two spaces between columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table as Grid
from rich.text import Text

HEADER_STYLE = "bold"
QUIET_STYLE = "dim"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid."""

    header: str | Text
    is_number: bool = False
    """Right-aligned and never wrapped."""
    wraps: bool = False
    """Gives way when the terminal is narrow; other columns keep their width."""
    style: str = ""


def grid(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], *, title: str | None = None) -> Grid:
    """A table of text cells; nothing in a cell is read as markup."""
    table = Grid(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        header_style=HEADER_STYLE,
        title=Text(title, style=HEADER_STYLE) if title else None,
        title_justify="left",
    )
    for column in columns:
        table.add_column(
            Text(column.header) if isinstance(column.header, str) else column.header,
            justify="right" if column.is_number else "left",
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",
            style=column.style,
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def facts(rows: Iterable[tuple[str, str | Text]]) -> Grid:
    """Names at the left and what they are at the right."""
    table = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style=QUIET_STYLE, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), value if isinstance(value, Text) else Text(value))
    return table
