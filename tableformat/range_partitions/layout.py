"""Range partitions and Iceberg's partition spec: the transform for a step, and whether files align (RP-7)."""

from __future__ import annotations

from typing import Final

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)

from tableformat.keys.families import KeyFamily, family_of
from tableformat.range_partitions.cuts import Range
from tableformat.range_partitions.defined import DefinedPartitions, first_value
from tableformat.range_partitions.steps import Duration, Steps

_UNIT_OF: Final = {HourTransform: "hour", DayTransform: "day", MonthTransform: "month", YearTransform: "year"}
_COARSER: Final = {
    "hour": ("hour", "day", "week", "month", "year"),
    "day": ("day", "week", "month", "year"),
    "month": ("month", "year"),
    "year": ("year",),
}
"""For each unit of a transform, the units of steps whose borders are also borders of the transform."""


def partition_field_of(defined: DefinedPartitions, given: PartitionSpec) -> str | None:
    """RP-7: the partition field that is added to the fields of a new table, as text. None if no transform creates one
    partition for each range, or if a field of the range column is given."""
    if len(defined.key) > 1 or any(field.source_id == defined.key.field_ids[0] for field in given.fields):
        return None
    column = '"' + defined.key.names[0].replace('"', '""') + '"'
    steps = defined.steps
    if steps is None:
        return column if defined.bounds and all(map(_is_point, defined.bounds)) else None
    unit, count = steps.duration.unit, steps.duration.count
    if unit is None:
        if steps.origin % count:
            return None
        return column if count == 1 else f"truncate({count}, {column})"
    if unit not in _UNIT_OF.values() or count != 1 or steps.zone != "UTC":
        return None
    return f"{unit}({column})" if Steps(steps.column_type, steps.duration, 0, "UTC").is_border(steps.origin) else None


def is_aligned(defined: DefinedPartitions, spec: PartitionSpec) -> bool:
    """RP-7: whether all rows in one partition of the spec are always in the same range partition or gap."""
    if _is_one_partition(defined):
        return True
    if len(defined.key) > 1:
        return False
    return any(field.source_id == defined.key.field_ids[0] and _aligns(defined, field) for field in spec.fields)


def _is_one_partition(defined: DefinedPartitions) -> bool:
    """Whether all accepted rows are in one range partition."""
    takes_others = defined.has_default or defined.on_demand is not None
    return len(defined.bounds) == 1 and not defined.splits and defined.steps is None and not takes_others


def _aligns(defined: DefinedPartitions, field: PartitionField) -> bool:  # noqa: PLR0911 (one reason each)
    if isinstance(field.transform, IdentityTransform):
        return True
    if family_of(defined.key.types[0]) is not KeyFamily.INTEGER:
        return False
    finer = _steps_of(defined, field)
    cuts = [*(cut for bound in defined.bounds for cut in (bound.lower, bound.upper)), *defined.splits]
    if finer is None or any(cut.after and not cut.is_open for cut in cuts):
        return False
    if not all(cut.is_open or finer.is_border(first_value(cut)) for cut in cuts):
        return False
    steps = defined.steps
    if steps is None:
        return True
    if not finer.is_border(steps.origin) or steps.zone != "UTC":
        return False
    if finer.duration.unit is None:
        return steps.duration.count % finer.duration.count == 0
    return steps.duration.unit in _COARSER[finer.duration.unit]


def _steps_of(defined: DefinedPartitions, field: PartitionField) -> Steps | None:
    """The borders of a transform, as steps."""
    transform, column_type = field.transform, defined.key.types[0]
    if isinstance(transform, TruncateTransform):
        return Steps(column_type, Duration(transform._width, None), 0, "UTC")
    unit = _UNIT_OF.get(type(transform))
    return None if unit is None else Steps(column_type, Duration(1, unit), 0, "UTC")


def _is_point(bound: Range) -> bool:
    """Whether the bound contains one value."""
    lower, upper = bound.lower, bound.upper
    return bool(lower.values) and lower.values == upper.values and not lower.after and upper.after
