"""Display in IPython, in a notebook or at its prompt: Arrow tables and schemas that the library returned.

An Arrow type cannot be given a display of its own. IPython displays a value by a function for its type, so one function
is registered for tables and one for schemas, when the library first returns such a value to IPython. They display the
values that `displayed` marked. Others stay as they were.
"""

from __future__ import annotations

import datetime as dt
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import pyarrow as pa

from tableformat.markup import html
from tableformat.markup.figures import counted
from tableformat.markup.session_bar import ipython

_Kind = TypeVar("_Kind", bound=type)
_Value = TypeVar("_Value")
_SHOWN_CHARACTERS: Final = 60
_MARKED: Final[WeakValueDictionary[int, object]] = WeakValueDictionary()
"""Marked values by their identity, because Arrow tables have no hash."""
_METRICS: Final = "readable_metrics"


def displayed_methods(kind: _Kind) -> _Kind:
    """A class decorator: IPython displays the Arrow tables and schemas that public methods and properties return."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return displayed(function(*args, **kwargs))

        return call

    for name, member in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(member):
            setattr(kind, name, wrapped(member))
    return kind


def displayed(value: _Value) -> _Value:
    """The value unchanged. In IPython, an Arrow table or schema is displayed as a table."""
    shell = ipython()
    if shell is not None and isinstance(value, pa.Table | pa.Schema):
        for kind in (pa.Table, pa.Schema):
            _register(shell.display_formatter.formatters, kind)
        _MARKED[id(value)] = value
    return value


def _register(formatters: Any, kind: type) -> None:
    by_type = formatters["text/html"].type_printers
    if isinstance(by_type.get(kind), _HtmlOf):
        return
    by_type[kind] = _HtmlOf(by_type.get(kind))
    formatters["text/plain"].type_printers[kind] = _TextOf(formatters["text/plain"].type_printers.get(kind))


class _HtmlOf:
    """IPython's function for HTML. None lets IPython display the text alone."""

    def __init__(self, before: Callable[[Any], Any] | None) -> None:
        self._before = before

    def __call__(self, value: Any) -> Any:
        if _MARKED.get(id(value)) is value:
            return as_html(value)
        return None if self._before is None else self._before(value)


class _TextOf:
    """IPython's function for text, which prints into `printer`."""

    def __init__(self, before: Callable[[Any, Any, bool], Any] | None) -> None:
        self._before = before

    def __call__(self, value: Any, printer: Any, cycle: bool) -> None:
        if _MARKED.get(id(value)) is value:
            printer.text(as_text(value))
        elif self._before is not None:
            self._before(value, printer, cycle)
        else:
            printer.text(repr(value))


def as_html(value: pa.Table | pa.Schema) -> str:
    """An Arrow table or schema as a table of text."""
    title, columns, rows, remarks = _grid_of(value)
    numbers = [name for name in columns if isinstance(value, pa.Table) and _is_number(value, name)]
    wide = html.part('<div style="overflow-x:auto">', html.grid(columns, rows, numbers=numbers), "</div>")
    return html.fragment(title, wide, *map(html.quiet, remarks))


def as_text(value: pa.Table | pa.Schema) -> str:
    """An Arrow table or schema as aligned columns."""
    title, columns, rows, remarks = _grid_of(value)
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([title, *told, *remarks])


def _grid_of(value: pa.Table | pa.Schema) -> tuple[str, list[str], list[list[str]], list[str]]:
    """The title, the names of columns, the cells and remarks."""
    if isinstance(value, pa.Schema):
        told = [[field.name, str(field.type), "" if field.nullable else "required"] for field in value]
        return counted(len(value), "column"), ["column", "type", ""], told, []
    left_out = [field.name for field in value.schema if _is_left_out(value, field)]
    columns = [name for name in value.column_names if name not in left_out]
    some = value.select(columns).slice(0, html.LISTED_ROWS)
    cells = [[_cell(name, each) for each in some.column(name).to_pylist()] for name in columns]
    more = value.num_rows - some.num_rows
    remarks = [f"and {more:,} more"] if more else []
    remarks += [f"Columns that are not displayed: {', '.join(left_out)}"] if left_out else []
    return counted(value.num_rows, "row"), columns, [list(row) for row in zip(*cells, strict=True)], remarks


def _is_left_out(rows: pa.Table, field: pa.Field) -> bool:
    """Columns without a value, and metrics by field id if the same metrics are there by name."""
    by_id = pa.types.is_map(field.type) and pa.types.is_integer(field.type.key_type)
    is_empty = rows.num_rows > 0 and rows.column(field.name).null_count == rows.num_rows
    return is_empty or (by_id and _METRICS in rows.column_names)


def _is_number(rows: pa.Table, name: str) -> bool:
    kind = rows.schema.field(name).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _cell(name: str, value: Any) -> str:  # noqa: PLR0911 (one a kind of value)
    match value:
        case None:
            return ""
        case dt.datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S") + ("" if value.tzinfo is None else " UTC")
        case bool():
            return "yes" if value else "no"
        case int() if not name.endswith("_id"):
            return f"{value:,}"
        case dict() if name == _METRICS:
            return _shortened(", ".join(_bounds(*each) for each in value.items() if each[1]))
        case dict():
            return _shortened(", ".join(f"{key}: {_cell('', each)}" for key, each in value.items() if each is not None))
        case list() | tuple():
            return _shortened(_listed(value))
        case bytes():
            return _shortened(value.hex())
    return str(value)


def _listed(values: Sequence[Any]) -> str:
    """Elements of a list, or the entries of a map."""
    pairs = all(isinstance(each, tuple) and len(each) == 2 for each in values)
    return ", ".join(f"{each[0]}: {_cell('', each[1])}" if pairs else _cell("", each) for each in values)


def _bounds(name: str, metrics: dict[str, Any]) -> str:
    lower, upper = metrics.get("lower_bound"), metrics.get("upper_bound")
    return f"{name}: {_cell('', lower)} to {_cell('', upper)}" if lower is not None else f"{name}: no bounds"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."
