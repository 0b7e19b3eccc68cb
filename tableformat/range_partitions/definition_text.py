"""Range partitions as named texts, as table properties of a statement and the command line have them.

on = year   bounds = [2011, 2016), [2020, 2021)   splits = 2013   step = 1   default = true
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError
from tableformat.range_partitions.model import RangePartitions
from tableformat.range_partitions.range_text import parse_end, parse_ends, parse_range, parse_ranges

_BOOLEANS: Final = {"true": True, "false": False}


def range_partitions_of_text(texts: Mapping[str, str], schema: Schema, *, where: str) -> RangePartitions:
    """RP-23: what the texts say; the names are the property's (RP-1), and `on` lists the range columns.

    UnknownOptionError, `where` says of what, UnknownColumnError, or InvalidArgumentError naming the text.
    """
    unknown = next((name for name in texts if name not in _PARSERS and name != "on"), None)
    if unknown is not None:
        raise UnknownOptionError(unknown, ("on", *_PARSERS), where=where)
    on = [name.strip() for name in texts.get("on", "").split(",")]
    if not all(on):
        raise InvalidArgumentError(f"{where}: 'on' lists the range columns, such as 'year' or 'region, day'.")
    known = [field.name for field in schema.fields]
    for name in on:
        if name not in known:
            raise UnknownColumnError(name, known, where=where)
    given = {name: text for name, text in texts.items() if name != "on"}
    arguments = {_PARSERS[name][0]: _PARSERS[name][1](text, on, schema) for name, text in given.items()}
    return RangePartitions(on=on, **arguments)


def _plain(text: str, on: Sequence[str], schema: Schema) -> str:
    del on, schema
    return text


def _whole(text: str, on: Sequence[str], schema: Schema) -> int:
    del on, schema
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is no whole number.") from error


def _flag(text: str, on: Sequence[str], schema: Schema) -> bool:
    del on, schema
    if text.lower() not in _BOOLEANS:
        raise InvalidArgumentError(f"{text!r} is neither true nor false.")
    return _BOOLEANS[text.lower()]


def _duration(text: str, on: Sequence[str], schema: Schema) -> str | int:
    del on, schema
    return int(text) if text.strip().lstrip("-").isdecimal() else text


_PARSERS: Final[dict[str, tuple[str, Callable[[str, Sequence[str], Schema], Any]]]] = {
    "bounds": ("bounds", parse_ranges),
    "splits": ("splits", parse_ends),
    "step": ("step", _duration),
    "origin": ("origin", parse_end),
    "time-zone": ("time_zone", _plain),
    "on-demand": ("on_demand", _flag),
    "limits": ("on_demand_limits", parse_range),
    "max-new-per-commit": ("max_new_per_commit", _whole),
    "default": ("default", _flag),
    "retain": ("retain", _duration),
    "ahead": ("ahead", _whole),
    "keep-latest": ("keep_latest", _whole),
    "protect": ("protect", parse_ranges),
    "max-drops": ("max_drops", _whole),
}
"""The entries of the property: the argument of `RangePartitions`, and what reads its text."""
