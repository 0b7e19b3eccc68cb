"""`HtmlResult`: displays results of operations and jobs by their fields."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from tableformat.markup import figures, html

_LISTED: Final = 20
"""The number of list elements that are shown."""


class HtmlResult:
    """A result: the names and values of its fields in order, without zero and empty values."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html.fragment(_title(self), _rows(self))


def _title(result: Any) -> str:
    """`CompactResult` as `compact, dry run`."""
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(result).__name__.removesuffix("Result")).lower()
    return f"{words}, dry run: nothing was changed" if getattr(result, "dry_run", False) else words


def _rows(result: Any) -> html.Html:
    values = [(field.name, getattr(result, field.name)) for field in dataclasses.fields(result) if field.repr]
    told = [(name.replace("_", " "), _value(name, value)) for name, value in values if _is_told(name, value)]
    return html.facts(told) if told else html.quiet("nothing to do")


def _is_told(name: str, value: Any) -> bool:
    is_empty = value is None or (isinstance(value, bool | int | str | tuple | list) and not value)
    return not is_empty and name != "dry_run"


def _value(name: str, value: Any) -> object:  # noqa: PLR0911 (one a kind of value)
    match value:
        case bool():
            return "yes"
        case Enum():
            return value.value
        case int() if name.endswith("_bytes"):
            return figures.size(value)
        case int():
            return str(value) if name.endswith("_id") else figures.count(value)
        case float() if name.endswith("_seconds"):
            return figures.seconds(value)
        case tuple() | list():
            return _list(value)
        case _ if hasattr(value, "num_rows"):
            return figures.counted(value.num_rows, "row")
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _rows(value)
        case _:
            return value


def _list(values: Sequence[Any]) -> html.Html:
    shown = [html.part("<div>", html.shown(_value("", value)), "</div>") for value in values[:_LISTED]]
    left = len(values) - _LISTED
    return html.part(*shown, html.quiet(f"and {left:,} more") if left > 0 else "")
