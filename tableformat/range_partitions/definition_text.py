"""Range partitions as named texts, as table properties of a statement and the command line have them.

on = year   bounds = [2011, 2016), [2020, 2021)   splits = 2013   step = 1   default = true
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError
from tableformat.range_partitions.cuts import Cut, Range, values_text
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.model import RangePartitions
from tableformat.range_partitions.range_text import (
    names_text,
    parse_end,
    parse_ends,
    parse_names,
    parse_range,
    parse_ranges,
)
from tableformat.range_partitions.steps import steps_of

_BOOLEANS: Final = {"true": True, "false": False}


def range_partitions_of_text(texts: Mapping[str, str], schema: Schema, *, where: str) -> RangePartitions:
    """RP-23: the range partitions in these texts. The names are those in the property (RP-1), and `on` lists the range
    columns.

    Raises UnknownOptionError, whose location is `where`, UnknownColumnError, or InvalidArgumentError, which names the
    text.
    """
    unknown = next((name for name in texts if name not in _PARSERS and name != "on"), None)
    if unknown is not None:
        raise UnknownOptionError(unknown, ("on", *_PARSERS), where=where)
    on = parse_names(texts.get("on", ""))
    if not on or not all(on):
        raise InvalidArgumentError(f"{where}: 'on' must list the range columns, such as 'year' or 'region, day'.")
    known = [field.name for field in schema.fields]
    for name in on:
        if name not in known:
            raise UnknownColumnError(name, known, where=where)
    given = {name: text for name, text in texts.items() if name != "on"}
    arguments = {_PARSERS[name][0]: _PARSERS[name][1](text, on, schema) for name, text in given.items()}
    return RangePartitions(on=on, **arguments)


def texts_of_range_partitions(defined: DefinedPartitions) -> dict[str, str]:
    """RP-23: the texts that define these range partitions. Settings with a default value are omitted.

    `splits` are before values only, so a bound with a split after a value becomes two touching bounds.
    """
    behind = [split for split in defined.splits if split.after]
    bounds = [piece for bound in defined.bounds for piece in _pieces(bound, behind)]
    texts = {"on": names_text(defined.key.names), "bounds": _ranges_text(defined, bounds)}
    if splits := [split for split in defined.splits if not split.after]:
        texts["splits"] = ", ".join(values_text(defined.key, split.values) for split in splits)
    return texts | _steps_texts(defined) | _window_texts(defined)


def _pieces(bound: Range, splits: Sequence[Cut]) -> list[Range]:
    cuts = [bound.lower, *(split for split in splits if bound.lower < split < bound.upper), bound.upper]
    return [Range(lower, upper) for lower, upper in pairwise(cuts)]


def _ranges_text(defined: DefinedPartitions, ranges: Sequence[Range]) -> str:
    return ", ".join(map(defined.text, ranges))


def _steps_texts(defined: DefinedPartitions) -> dict[str, str]:
    texts: dict[str, str] = {}
    steps, on_demand = defined.steps, defined.on_demand
    if steps is not None:
        texts["step"] = str(steps.duration.text)
        usual = steps_of(steps.column_type, steps.duration, origin=None, zone=steps.zone, column=defined.key.names[0])
        if steps.origin != usual.origin:
            texts["origin"] = values_text(defined.key, [steps.origin])
        if steps.zone != "UTC":
            texts["time-zone"] = steps.zone
    if on_demand is not None:
        texts |= {"on-demand": "true", "max-new-per-commit": str(on_demand.max_new_per_commit)}
        if on_demand.limits is not None:
            texts["limits"] = defined.text(on_demand.limits)
    return texts


def _window_texts(defined: DefinedPartitions) -> dict[str, str]:
    window = defined.window
    texts = {"default": "true"} if defined.has_default else {}
    if window.retain is not None:
        texts["retain"] = str(window.retain.text)
    numbers = {"ahead": window.ahead, "keep-latest": window.keep_latest, "max-drops": window.max_drops}
    texts |= {name: str(number) for name, number in numbers.items() if number}
    if window.protect:
        texts["protect"] = _ranges_text(defined, window.protect)
    return texts


def _plain(text: str, on: Sequence[str], schema: Schema) -> str:
    del on, schema
    return text


def _whole(text: str, on: Sequence[str], schema: Schema) -> int:
    del on, schema
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{text!r} is not a whole number.") from error


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
"""The entries of the property, each with the argument of `RangePartitions` and the parser of its text."""
