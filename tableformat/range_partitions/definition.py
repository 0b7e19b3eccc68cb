"""Checks a definition from a user and binds it to a schema. Errors name both conflicting parts (RP-2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pyiceberg.schema import Schema

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnknownColumnError
from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.range_partitions.cuts import END, START, Cut, Range, cut_at, range_text
from tableformat.range_partitions.defined import DefinedPartitions, OnDemand, Window, first_value
from tableformat.range_partitions.model import RangePartitions, as_bound
from tableformat.range_partitions.steps import Steps, check_age, parse_duration, steps_of


def define(given: RangePartitions, schema: Schema) -> DefinedPartitions:
    """RP-2: bind the range partitions to a schema with field ids.

    Raises InvalidArgumentError, UnknownColumnError or InvalidKeyError for an invalid definition, and names both
    conflicting parts. Examples are overlapping bounds, an empty or inverted bound, a split outside of every bound, a
    nullable or floating point column, and a default partition on demand.
    """
    if not isinstance(given, RangePartitions):
        raise InvalidArgumentError(f"range_partitions must be RangePartitions(...), not {shown(given)}.")
    key = range_columns(schema, given.on)
    steps = _steps(given, key)
    bounds = _bounds(given, key)
    check_disjoint(key, bounds)
    splits = [cut_at(key, split, after=False, side="split") for split in given.splits]
    for cut, split in zip(splits, given.splits, strict=True):
        if not any(bound.lower < cut < bound.upper for bound in bounds):
            raise InvalidArgumentError(
                f"split {split!r} is outside of all bounds: {ranges_text(key, bounds) or 'none'}."
            )
    if steps is not None:
        check_closed(key, bounds)
    undivided = DefinedPartitions(
        key=key,
        bounds=(),
        steps=steps,
        on_demand=_on_demand(given, key, steps),
        has_default=given.default,
        window=_window(given, key, steps),
    )
    return undivided.with_ranges(bounds, splits)


def range_columns(schema: Schema, names: Sequence[str]) -> KeyColumns:
    """The range columns, which must be required, top-level and not floating point."""
    known = {field.name: field for field in schema.fields}
    for name in names:
        if name not in known:
            raise UnknownColumnError(name, known, where="on= of range_partitions")
    if not names:
        raise InvalidKeyError("range_partitions: on=[] is empty. Pass the range columns.")
    for name in names:
        if not known[name].required:
            raise InvalidArgumentError(
                f"range column {name!r} is nullable, but a range of keys cannot contain nulls. Make the column "
                "required, or part of the key."
            )
    key = KeyColumns.of(schema, [known[name].field_id for name in names])
    check_families(key)
    return key


def check_families(key: KeyColumns) -> None:
    for name, key_type in zip(key.names, key.types, strict=True):
        if family_of(key_type) is KeyFamily.FLOAT:
            raise InvalidArgumentError(
                f"range column {name!r} is {key_type}: engines disagree about the order of -0.0 and NaN. Choose "
                "another column."
            )


def range_of(key: KeyColumns, given: Any) -> Range:
    """A caller's bound as a range. Raises InvalidArgumentError if it is empty or inverted."""
    bound = as_bound(given)
    lower = START if bound.lower is None else cut_at(key, bound.lower, after=not bound.lower_inclusive, side="lower")
    upper = END if bound.upper is None else cut_at(key, bound.upper, after=bound.upper_inclusive, side="upper")
    found = Range(lower, upper)
    if lower >= upper:
        kind = (
            "empty"
            if lower == upper or lower.values == upper.values
            else "inverted: its lower end is greater than its upper end"
        )
        raise InvalidArgumentError(f"bound {range_text(key, found)} is {kind}.")
    return found


def check_disjoint(key: KeyColumns, bounds: Sequence[Range]) -> None:
    """Raise InvalidArgumentError if two of the sorted `bounds` overlap."""
    for one, other in pairwise(bounds):
        if one.meets(other):
            raise InvalidArgumentError(
                f"bounds {range_text(key, one)} and {range_text(key, other)} overlap: a row belongs to one partition."
            )


def check_closed(key: KeyColumns, bounds: Sequence[Range]) -> None:
    """RP-4: raise InvalidArgumentError for an open bound with steps, which would have infinitely many partitions."""
    for each in bounds:
        if each.lower.is_open or each.upper.is_open:
            raise InvalidArgumentError(
                f"bound {range_text(key, each)} is open, so a step would divide it into infinitely many partitions. "
                "Close the bound; on_demand=True or a window adds steps later."
            )


def ranges_text(key: KeyColumns, ranges: Sequence[Range]) -> str:
    """Up to three ranges as text, for messages."""
    shown = ", ".join(range_text(key, each) for each in ranges[:3])
    return shown if len(ranges) <= 3 else f"{shown} and {len(ranges) - 3} more"


def _bounds(given: RangePartitions, key: KeyColumns) -> list[Range]:
    """RP-2: the existing ranges, sorted. Raises InvalidArgumentError for a step without a range to divide."""
    if given.bounds is not None:
        return sorted(range_of(key, each) for each in given.bounds)
    if given.on_demand or given.default or given.ahead:
        return []
    if given.step is not None:
        raise InvalidArgumentError(
            f"step={given.step!r} needs ranges to divide. Pass bounds=, on_demand=True or ahead=. With bounds=[], "
            "the table starts without a range and rejects every row."
        )
    return [Range(START, END)]


def _steps(given: RangePartitions, key: KeyColumns) -> Steps | None:
    if given.step is None:
        for name, value in (("origin", given.origin), ("retain", given.retain), ("ahead", given.ahead or None)):
            if value is not None:
                raise InvalidArgumentError(f"{name}={shown(value)} requires steps: also pass step=.")
        if given.time_zone != "UTC":
            raise InvalidArgumentError(f"time_zone={given.time_zone!r} requires steps: also pass step=.")
        return None
    if len(key) != 1:
        raise InvalidArgumentError(f"step={given.step!r} needs one range column, not {', '.join(key.names)}.")
    origin: Cut | None = None
    if given.origin is not None:
        origin = cut_at(key, given.origin, after=False, side="origin")
    return steps_of(
        key.types[0],
        parse_duration(given.step, option="step"),
        origin=None if origin is None else first_value(origin),
        zone=given.time_zone,
        column=key.names[0],
    )


def _on_demand(given: RangePartitions, key: KeyColumns, steps: Steps | None) -> OnDemand | None:
    if not given.on_demand:
        if given.on_demand_limits is not None:
            raise InvalidArgumentError("on_demand_limits requires on_demand=True: also pass that.")
        return None
    if given.default:
        raise InvalidArgumentError(
            "default=True and on_demand=True cannot be combined: the default partition accepts the rows for which "
            "on_demand would add a step."
        )
    if steps is None:
        raise InvalidArgumentError("on_demand=True adds steps: also pass step=.")
    limits = None if given.on_demand_limits is None else range_of(key, given.on_demand_limits)
    return OnDemand(limits=limits, max_new_per_commit=_whole("max_new_per_commit", given.max_new_per_commit, least=1))


def _window(given: RangePartitions, key: KeyColumns, steps: Steps | None) -> Window:
    retain = None if given.retain is None else parse_duration(given.retain, option="retain")
    if retain is not None and steps is not None:
        check_age(steps.column_type, retain, column=key.names[0])
    return Window(
        retain=retain,
        ahead=_whole("ahead", given.ahead, least=0),
        keep_latest=_whole("keep_latest", given.keep_latest, least=0),
        protect=tuple(sorted(range_of(key, each) for each in given.protect)),
        max_drops=None if given.max_drops is None else _whole("max_drops", given.max_drops, least=1),
    )


def _whole(name: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} must be a whole number of at least {least}, not {shown(value)}.")
    return value
