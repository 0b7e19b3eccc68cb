"""Renders rows of a query or a scan as a grid that fits the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

import pyarrow as pa
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from tableformat.display import text
from tableformat.display.grid import QUIET_STYLE, Column, grid

_CELL_WIDTH: Final = 40
"""Maximum width of a cell if not everything fits the screen."""
_GAP: Final = 2
_ELIDED: Final = "..."


@dataclass(frozen=True, slots=True)
class Rows:
    """A result to print: names, types as text, and rows."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    are_numbers: tuple[bool, ...]
    cells: tuple[tuple[str | None, ...], ...]
    """Row by row; None is null."""

    @classmethod
    def of(cls, table: pa.Table, types: Sequence[str] | None = None) -> Rows:
        """The rows of an Arrow table; `types` replace the names of the Arrow types."""
        columns = [
            [None if value is None else text.cell(value) for value in python_values(column)] for column in table.columns
        ]
        return cls(
            names=tuple(table.column_names),
            types=tuple(types or (str(field.type) for field in table.schema)),
            are_numbers=tuple(_is_number(field.type) for field in table.schema),
            cells=tuple(zip(*columns, strict=True)) if columns else (),
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many columns as fit. Middle columns are left out first, and a line gives the number of shown columns."""
        width = options.max_width
        widths = [self._width(position) for position in range(len(self.names))]
        shown = self._that_fit([min(column, _CELL_WIDTH) for column in widths], width)
        if len(shown) == len(self.names) and sum(widths) + _GAP * (len(widths) - 1) <= width:
            limit = None
        else:
            limit = _CELL_WIDTH
        yield self._grid(shown, limit)
        if len(shown) < len(self.names):
            yield Text(
                f"{len(shown)} of {len(self.names)} columns fit the screen; select fewer columns, or use --csv.",
                QUIET_STYLE,
            )

    def _grid(self, shown: Sequence[int], limit: int | None) -> Grid:
        after = _break(shown) if len(shown) < len(self.names) else -1
        columns, rows = [], [list[Text]() for _ in self.cells]
        for place, position in enumerate(shown):
            header = Text(_cut(self.names[position], limit)).append(
                f"\n{_cut(self.types[position], limit)}", style=f"not bold {QUIET_STYLE}"
            )
            columns.append(Column(header, is_number=self.are_numbers[position]))
            for row, cells in zip(rows, self.cells, strict=True):
                row.append(_cell(cells[position], limit))
            if place == after:
                columns.append(Column(_ELIDED))
                for row in rows:
                    row.append(Text(_ELIDED, QUIET_STYLE))
        return grid(columns, rows)

    def _width(self, position: int) -> int:
        cells = (len(row[position] or text.NULL) for row in self.cells)
        return max(len(self.names[position]), len(self.types[position]), *cells, 1)

    @staticmethod
    def _that_fit(widths: Sequence[int], width: int) -> list[int]:
        """Positions of the columns to show: all, or the first and last ones around a gap."""
        count = len(widths)
        if sum(widths) + _GAP * (count - 1) <= width:
            return list(range(count))
        # First, last, second, last but one, and so on: the columns that fit are a prefix of this order.
        order = [position // 2 if position % 2 == 0 else count - 1 - position // 2 for position in range(count)]
        taken = accumulate((widths[position] + _GAP for position in order), initial=len(_ELIDED))
        fitting = sum(1 for total in list(taken)[1:] if total <= width)
        return sorted(order[: max(fitting, 1)])


def python_values(column: pa.ChunkedArray) -> list[Any]:
    """The column's values. Maps are dictionaries, nanoseconds are truncated to microseconds, and times outside of
    Python's range (years 1 to 9999) are Arrow's text."""
    column_type = column.type
    if pa.types.is_timestamp(column_type) and column_type.unit == "ns":
        column = column.cast(pa.timestamp("us", column_type.tz), safe=False)
    if pa.types.is_time64(column_type) and column_type.unit == "ns":
        column = column.cast(pa.time64("us"), safe=False)
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        values = column.cast(pa.string()).to_pylist()
    return values


def _is_number(column_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(column_type) or types.is_floating(column_type) or types.is_decimal(column_type))


def _break(shown: Sequence[int]) -> int:
    """Position of the displayed column after which columns are left out."""
    gaps = [place for place, (one, other) in enumerate(pairwise(shown)) if other != one + 1]
    return gaps[0] if gaps else len(shown) - 1


def _cell(value: str | None, limit: int | None) -> Text:
    return Text(text.NULL, QUIET_STYLE) if value is None else Text(_cut(value, limit))


def _cut(value: str, limit: int | None) -> str:
    return value if limit is None or len(value) <= limit else value[: limit - 1] + "…"
