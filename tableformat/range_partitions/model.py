"""What users write: `RangePartitions`, `bound` and `list_partitions`, plain data that is bound to a schema later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError

Values: TypeAlias = Any
"""One value, or a tuple of leading values of the range columns; None is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One range that exists; `bound()` makes it."""

    lower: Values = None
    upper: Values = None
    lower_inclusive: bool = True
    upper_inclusive: bool = False


BoundLike: TypeAlias = Bound | tuple[Values, Values]
"""A pair is half-open: `[lower, upper)`."""


def bound(
    lower: Values = None, upper: Values = None, *, lower_inclusive: bool = True, upper_inclusive: bool = False
) -> Bound:
    """RP-2: a range by its ends, each of them part of it or not. None is open.

    >>> bound(2011, 2015, upper_inclusive=True).upper
    2015
    """
    return Bound(lower=lower, upper=upper, lower_inclusive=lower_inclusive, upper_inclusive=upper_inclusive)


def point(value: Values) -> Bound:
    """RP-2: the range of the rows with one value."""
    return Bound(lower=value, upper=value, upper_inclusive=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePartitions:
    """Which ranges of the key space exist, empty ones included. Checked when a table is created with it.

    >>> from datetime import datetime
    >>> RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1), datetime(2024, 4, 1))], step="1 day").step
    '1 day'
    """

    on: Sequence[str]
    """The range columns, most significant first: required, top-level, not floating point."""
    bounds: Sequence[BoundLike] | None = None
    """The ranges that exist. By default one unbounded range; `[]` is no range, which rejects every row.

    A step, on demand or with a window, and a default partition start without a range.
    """
    splits: Sequence[Values] = ()
    """Where bounds are cut into partitions, besides their steps."""
    step: str | int | None = None
    """`"1 day"`, in hours, days, weeks, months or years, or a whole number: bounds are cut at its multiples."""
    origin: Values = None
    """A border of steps; by default zero, or midnight of 1970-01-01 in `time_zone`."""
    time_zone: str = "UTC"
    """Of days, weeks, months and years of a column with a time zone."""
    on_demand: bool = False
    """Rows in a missing step add it, in the commit that adds the rows."""
    on_demand_limits: BoundLike | None = None
    """Where that may happen."""
    max_new_per_commit: int = 100
    default: bool = False
    """One more partition takes what no bound covers."""
    retain: str | int | None = None
    """A window drops partitions that end at or before now less this."""
    ahead: int = 0
    """Steps after the current one that a window adds."""
    keep_latest: int = 0
    """The newest so many partitions are never dropped by a window."""
    protect: Sequence[BoundLike] = ()
    """Partitions that meet one of these are never dropped by a window."""
    max_drops: int | None = None
    """Partitions that one advance of a window drops, the oldest first."""

    def __post_init__(self) -> None:
        if isinstance(self.on, str):
            raise InvalidArgumentError(f"on takes a list of columns: on=[{self.on!r}].")


def list_partitions(column: str, values: Sequence[Values], *, default: bool = False) -> RangePartitions:
    """RP-2: one partition for each value of a column.

    >>> list_partitions("region", ["Asia", "Europe"]).on
    ['region']
    """
    if isinstance(values, str):
        raise InvalidArgumentError(f"values are a list: [{values!r}].")
    return RangePartitions(on=[column], bounds=[point(value) for value in values], default=default)


def as_bound(given: Any) -> Bound:
    """A pair or a Bound as a Bound. InvalidArgumentError for anything else."""
    if isinstance(given, Bound):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Bound(lower=given[0], upper=given[1])
    raise InvalidArgumentError(f"a bound is a pair (lower, upper), half-open, or bound(...), not {shown(given)}.")
