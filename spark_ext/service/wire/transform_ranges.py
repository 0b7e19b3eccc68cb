"""Convert comparisons of a transform of a column to comparisons of the column itself, if the result is exact.

    system.years(ts) = 47               ts >= 2017-01-01 AND ts < 2018-01-01
    system.truncate(3, code) = 'abc'    code STARTS WITH 'abc'

Bounds then rule out files, partitioned or not, and a DELETE can be blind. Other comparisons are evaluated on partition
values only (`partition_predicates.py`): buckets have no order, and truncating the lowest whole numbers overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any, Final, TypeAlias

from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    IsNull,
    LessThan,
    NotNull,
    Or,
    Reference,
    StartsWith,
)
from pyiceberg.types import DateType, IcebergType, StringType, TimestampType, TimestamptzType

_EPOCH: Final = datetime(1970, 1, 1)
_MAX_RANGES: Final = 100
"""The maximum number of values of an IN that becomes an OR of ranges."""

Predicate: TypeAlias = Callable[..., BooleanExpression]
_LESS: Final[Predicate] = LessThan
_FROM: Final[Predicate] = GreaterThanOrEqual
_EQUAL: Final[Predicate] = EqualTo
_BEGINS: Final[Predicate] = StartsWith
_IS_NULL: Final[Predicate] = IsNull
_IS_NOT_NULL: Final[Predicate] = NotNull
Days = Callable[[Any], date]
_FIRST_DAYS: Final[dict[str, Days]] = {
    "years": lambda years: date(1970 + years, 1, 1),
    "months": lambda months: date(1970 + months // 12, months % 12 + 1, 1),
    "days": lambda day: day,
}
_NEXT: Final[dict[str, Callable[[Any], Any]]] = {"days": lambda day: day + timedelta(days=1)}
_OVER_RANGE: Final[dict[str, Callable[[Reference, Any, Any], BooleanExpression]]] = {
    "=": lambda column, start, end: And(_FROM(column, start), _LESS(column, end)),
    "<>": lambda column, start, end: Or(_LESS(column, start), _FROM(column, end)),
    "<": lambda column, start, _: _LESS(column, start),
    "<=": lambda column, _, end: _LESS(column, end),
    ">": lambda column, _, end: _FROM(column, end),
    ">=": lambda column, start, _: _FROM(column, start),
}
"""The comparison with a transform, for the column values from `start` (included) to `end` (excluded)."""


def column_ranges(
    operator: str, transform: str, width: int | None, column: Reference, source: IcebergType, values: Sequence[Any]
) -> BooleanExpression | None:
    """SP-46: a filter on the column of type `source` that matches the same rows, also under NOT. None if no such filter
    exists.

    `values` are the literals, in the transform's type. Raises OverflowError or ValueError if a bound has no Python
    value.
    """
    if transform == "truncate":
        return _prefix(operator, width, column, source, values)
    if transform not in {*_FIRST_DAYS, "hours"} or not isinstance(source, (DateType, TimestampType, TimestamptzType)):
        return None
    if operator == "IS_NULL":
        return _IS_NULL(column)
    if operator == "IS_NOT_NULL":
        return _IS_NOT_NULL(column)
    if operator == "IN":
        within = [_compared("=", transform, column, source, value) for value in values[:_MAX_RANGES]]
        is_short = 0 < len(values) <= _MAX_RANGES and None not in within
        return reduce(Or, [each for each in within if each is not None]) if is_short else None
    return _compared(operator, transform, column, source, values[0])


def _compared(
    operator: str, transform: str, column: Reference, source: IcebergType, value: Any
) -> BooleanExpression | None:
    made = _OVER_RANGE.get(operator)
    if made is None:
        return None
    following = _NEXT.get(transform, lambda number: number + 1)
    return made(column, _border(transform, source, value), _border(transform, source, following(value)))


def _border(transform: str, source: IcebergType, value: Any) -> date | datetime:
    """The first value of the column whose transform is `value`."""
    if transform == "hours":
        moment = _EPOCH + timedelta(hours=value)
    else:
        day = _FIRST_DAYS[transform](value)
        if isinstance(source, DateType):
            return day
        moment = datetime(day.year, day.month, day.day)
    return moment.replace(tzinfo=UTC) if isinstance(source, TimestamptzType) else moment


def _prefix(
    operator: str, width: int | None, column: Reference, source: IcebergType, values: Sequence[Any]
) -> BooleanExpression | None:
    """A comparison with a truncated string as a filter. None for a text longer than the width: it matches no row, and
    no filter is false for values and unknown for nulls."""
    if operator != "=" or width is None or not isinstance(source, StringType) or len(values[0]) > width:
        return None
    return _BEGINS(column, values[0]) if len(values[0]) == width else _EQUAL(column, values[0])
