"""Range partitions for the tasks of a write: which rows are accepted, and which rows may share a file.

    {"columns": [{"name": "ts", "uuid": false}], "taken": [cut, ...] | null, "borders": [cut, ...] | null,
     "steps": {"count": 1, "unit": "day", "origin": 0, "zone": "UTC"} | null}

A cut is `{"values": [...], "after": false}`. `taken` are the ends of the existing ranges: a row with an odd number of
them below it is accepted. `taken` is null if every row is accepted. `borders` is null if the partition spec already
separates files at the borders.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyiceberg.types import UUIDType

from tableformat.range_partitions.alteration import without
from tableformat.range_partitions.cuts import Cut, Range
from tableformat.range_partitions.defined import DefinedPartitions, unite
from tableformat.range_partitions.layout import is_aligned
from tableformat.range_partitions.steps import Steps
from tableformat.write.context import WriteContext


def range_plan(context: WriteContext) -> dict[str, Any] | None:
    """RP-7, RP-21: the plan for tasks; None if they have nothing to check."""
    defined = context.range_partitions
    if defined is None:
        return None
    taken, borders = _taken(defined), _borders(defined, context)
    if taken is None and borders is None:
        return None
    return {
        "columns": [
            {"name": name, "uuid": isinstance(column_type, UUIDType)}
            for name, column_type in zip(defined.key.names, defined.key.types, strict=True)
        ],
        "taken": None if taken is None else [_cut(cut) for each in taken for cut in (each.lower, each.upper)],
        "borders": None if borders is None else [_cut(cut) for cut in borders],
        "steps": None if borders is None or defined.steps is None else _steps(defined.steps),
    }


def is_sorted_by_place(context: WriteContext) -> bool:
    """Whether the sort order of writers also orders rows by range partition: they are sorted by the key, and the key
    begins with the range columns."""
    defined = context.range_partitions
    return defined is None or (
        context.sorts_rows and context.key_field_ids[: len(defined.key)] == defined.key.field_ids
    )


def _taken(defined: DefinedPartitions) -> Sequence[Range] | None:
    """RP-9: the accepted ranges. With partitions on demand, rows within the limits are also accepted, and the commit
    adds their steps."""
    if defined.takes_every_row:
        return None
    if defined.on_demand is None:
        return defined.bounds
    limits = defined.on_demand.limits
    return None if limits is None else unite([*defined.bounds, *without(limits, defined.bounds)])[0]


def _borders(defined: DefinedPartitions, context: WriteContext) -> list[Cut] | None:
    if is_aligned(defined, context.spec) or _is_one_place(defined):
        return None
    return sorted({cut for bound in defined.bounds for cut in (bound.lower, bound.upper)} | set(defined.splits))


def _is_one_place(defined: DefinedPartitions) -> bool:
    """Whether all accepted rows belong to one partition."""
    is_refused_elsewhere = not defined.takes_every_row and defined.on_demand is None
    return is_refused_elsewhere and len(defined.bounds) == 1 and not defined.splits and defined.steps is None


def _steps(steps: Steps) -> dict[str, Any]:
    duration = steps.duration
    return {"count": duration.count, "unit": duration.unit, "origin": steps.origin, "zone": steps.zone}


def _cut(cut: Cut) -> dict[str, Any]:
    return {"values": [_value(value) for value in cut.values], "after": cut.after}


def _value(value: Any) -> Any:
    match value:
        case UUID():
            return base64.b64encode(value.bytes).decode()
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value)
    return value
