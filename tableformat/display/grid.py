"""The style of all tables: no frame, a line under the header, two spaces between columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
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
    """May wrap on a narrow terminal; other columns keep their width."""
    style: str = ""


def grid(columns: Sequence[Column], rows: Iterable[Sequence[str | Text]], *, title: str | None = None) -> Grid:
    """A table of text cells. Markup in cells is not interpreted."""
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
        texts = (cell if isinstance(cell, Text) else Text(cell) for cell in row)
        table.add_row(*(_Wrapped(cell) if column.wraps else cell for column, cell in zip(columns, texts, strict=True)))
    return table


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """Lines that wrap on a narrow screen: after the last slash of a path, so that a file's name stays whole, then at
    word ends, then anywhere. Continuation lines have the same indent."""

    text: Text

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.split("\n", allow_blank=True):
            indent = len(line.plain) - len(line.plain.lstrip())
            yield from (
                Padding(part, (0, 0, 0, indent))
                for part in _broken_after_slash(line[indent:], options.max_width - indent)
            )

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text)


def _broken_after_slash(line: Text, width: int) -> Sequence[Text]:
    slash = line.plain.rfind("/") + 1
    ends_in_path = slash > line.plain.rfind(" ") + 1
    if line.cell_len <= width or not ends_in_path or line[slash:].cell_len > width:
        return [line]
    return list(line.divide([slash]))


def facts(rows: Iterable[tuple[str, str | Text]]) -> Grid:
    """Two-column table of names and values."""
    table = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style=QUIET_STYLE, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), value if isinstance(value, Text) else Text(value))
    return table
