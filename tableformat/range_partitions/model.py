"""Definitions by users: `RangePartitions`, `bound` and `list_partitions`. Plain data, bound to a schema later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError

Values: TypeAlias = Any
"""One value, or a tuple of leading values of the range columns. None is an open end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One existing range; `bound()` creates it."""

    lower: Values = None
    upper: Values = None
    lower_inclusive: bool = True
    upper_inclusive: bool = False


BoundLike: TypeAlias = Bound | tuple[Values, Values]
"""A pair is half-open: `[lower, upper)`."""


def bound(
    lower: Values = None, upper: Values = None, *, lower_inclusive: bool = True, upper_inclusive: bool = False
) -> Bound:
    """A range, given by its ends, both either included or excluded. None is an open end.

    >>> bound(2011, 2015, upper_inclusive=True).upper
    2015
    """
    return Bound(lower=lower, upper=upper, lower_inclusive=lower_inclusive, upper_inclusive=upper_inclusive)


def point(value: Values) -> Bound:
    """RP-2: the range of the rows with one value."""
    return Bound(lower=value, upper=value, upper_inclusive=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePartitions:
    """The existing ranges of the key space, including empty ones. They are checked when a table is created with them.

    >>> from datetime import datetime
    >>> RangePartitions(on=["ts"], bounds=[(datetime(2024, 1, 1), datetime(2024, 4, 1))], step="1 day").step
    '1 day'
    """

    on: Sequence[str]
    """The range columns, most significant first: required, top-level, not floating point."""
    bounds: Sequence[BoundLike] | None = None
    """The existing ranges. By default, there is one unbounded range. With `[]`, every row is rejected.

    Steps with on_demand or with a window, and a default partition, start without a range.
    """
    splits: Sequence[Values] = ()
    """Borders at which bounds are divided into partitions, in addition to steps."""
    step: str | int | None = None
    """`"1 day"`, in hours, days, weeks, months or years, or a whole number. Bounds are divided at its multiples."""
    origin: Values = None
    """A border of steps. The default is zero, or midnight of 1970-01-01 in `time_zone`."""
    time_zone: str = "UTC"
    """The zone for days, weeks, months and years of a column with a time zone."""
    on_demand: bool = False
    """Whether rows in a missing step create it, in the commit that adds the rows."""
    on_demand_limits: BoundLike | None = None
    """The range in which steps may be created on demand."""
    max_new_per_commit: int = 100
    default: bool = False
    """Whether an additional partition accepts rows that no bound covers."""
    retain: str | int | None = None
    """A window drops partitions whose end is at least this long ago."""
    ahead: int = 0
    """Number of steps after the current one that a window adds."""
    keep_latest: int = 0
    """Number of newest partitions that a window never drops."""
    protect: Sequence[BoundLike] = ()
    """A window never drops partitions that overlap one of these ranges."""
    max_drops: int | None = None
    """Maximum number of partitions that one advance of a window drops, oldest first."""

    def __post_init__(self) -> None:
        if isinstance(self.on, str):
            raise InvalidArgumentError(f"on must be a list of columns: on=[{self.on!r}].")


def list_partitions(column: str, values: Sequence[Values], *, default: bool = False) -> RangePartitions:
    """One partition for each value of a column.

    >>> list_partitions("region", ["Asia", "Europe"]).on
    ['region']
    """
    if isinstance(values, str):
        raise InvalidArgumentError(f"values must be a list: [{values!r}].")
    return RangePartitions(on=[column], bounds=[point(value) for value in values], default=default)


def as_bound(given: Any) -> Bound:
    """Convert a pair or a Bound to a Bound. Raises InvalidArgumentError for any other value."""
    if isinstance(given, Bound):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Bound(lower=given[0], upper=given[1])
    raise InvalidArgumentError(f"a bound must be a pair (lower, upper), half-open, or bound(...), not {shown(given)}.")
