"""The moving window: which steps are added ahead, and which partitions are old (RP-11)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from pyiceberg.types import DateType, IntegerType, LongType, PrimitiveType, TimestamptzNanoType, TimestamptzType

from tableformat.errors import InvalidArgumentError
from tableformat.range_partitions.alteration import step_range, without
from tableformat.range_partitions.cuts import Range, cut_at
from tableformat.range_partitions.defined import DefinedPartitions, first_value
from tableformat.range_partitions.steps import Steps

_ZONED = (TimestamptzType, TimestamptzNanoType)


def now_of(defined: DefinedPartitions, now: Any) -> int:
    """The current time of a window as a value of the range column, by default from the system clock. Raises
    InvalidArgumentError for a column of numbers without `now`, and for a table without a window."""
    if defined.steps is None or not defined.window.is_set:
        raise InvalidArgumentError(
            "the table has no window. Pass a step to create_table(range_partitions=...), and retain= or ahead=."
        )
    column_type = defined.key.types[0]
    if now is None:
        now = _clock(column_type)
    if isinstance(column_type, DateType) and isinstance(now, datetime):
        now = now.date()
    return first_value(cut_at(defined.key, now, after=False, side="now"))


def has_clock(defined: DefinedPartitions) -> bool:
    """Whether the range column has timestamps or dates, so that the current time is known."""
    return not isinstance(defined.key.types[0], IntegerType | LongType)


def _clock(column_type: PrimitiveType) -> datetime:
    if isinstance(column_type, IntegerType | LongType):
        raise InvalidArgumentError(f"a column of {column_type} does not represent time: pass now=.")
    now = datetime.now(UTC)
    return now if isinstance(column_type, _ZONED) else now.replace(tzinfo=None)


def steps_ahead(defined: DefinedPartitions, now: int) -> list[Range]:
    """The current step and the `ahead` steps after it, except existing parts. Empty if nothing is added ahead."""
    steps = _steps(defined)
    if not defined.window.ahead:
        return []
    current = int(steps.ordinals(np.array([now]))[0])
    return without(step_range(defined, current, current + defined.window.ahead), defined.bounds)


def old_partitions(defined: DefinedPartitions, now: int) -> list[Range]:
    """RP-11: whole partitions whose upper end is at or before now minus `retain`, oldest first, at most `max_drops`.
    Protected partitions and the newest `keep_latest` ones are excluded."""
    window = defined.window
    if window.retain is None:
        return []
    horizon = _steps(defined).less(now, window.retain)
    partitions = list(defined.partitions())
    droppable = partitions[: len(partitions) - window.keep_latest]
    old = [
        each
        for each in droppable
        if not each.upper.is_open
        and first_value(each.upper) + each.upper.after <= horizon
        and not any(each.meets(protected) for protected in window.protect)
    ]
    return old[: window.max_drops]


def _steps(defined: DefinedPartitions) -> Steps:
    assert defined.steps is not None, "checked earlier"
    return defined.steps
