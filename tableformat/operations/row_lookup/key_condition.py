"""Filters that blind deletes can express, and their form as spans or as keys.

A blind delete reads nothing, so it must delete exactly the matching rows. Two forms of filter allow this: some columns
pinned to values (including null), and in addition at most one column limited to an interval. A text prefix (`LIKE
'ab%'`) is an interval. An OR of such filters becomes several blind deletes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, NestedField, PrimitiveType, UnknownType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.filters.bound_filter import AllOf, Always, AnyOf, BoundFilter, Comparison, Operator
from tableformat.keys.internal_values import array_of_internal_values
from tableformat.keys.key_columns import KeyColumns

_COMBINATIONS_MAX: Final = 100_000
"""Maximum number of spans or keys of one filter. Above it, finding the rows is cheaper than writing the delete."""
_LAST_CODE_POINT: Final = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval of a column. The values are not null."""

    value: Any
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """Values of one column between two ends; None means an open end. Null is never inside."""

    column: NestedField
    lower: Bound | None
    upper: Bound | None


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """Columns pinned to values, and at most one interval. The matching rows are exactly the rows of one blind
    delete."""

    points: tuple[tuple[NestedField, tuple[Any, ...]], ...]
    interval: Interval | None

    @property
    def combination_count(self) -> int:
        return math.prod(len(values) for _, values in self.points)

    @property
    def point_field_ids(self) -> tuple[int, ...]:
        return tuple(column.field_id for column, _ in self.points)


def key_conditions(bound: BoundFilter) -> list[KeyCondition] | None:
    """The blind deletes that together match the rows of the filter; None if blind deletes cannot express it."""
    if isinstance(bound, Always):
        return [KeyCondition((), None)] if bound.answer else []
    if isinstance(bound, AnyOf):
        parts = [key_conditions(term) for term in bound.terms]
        return None if any(part is None for part in parts) else [c for part in parts for c in part or ()]
    terms = bound.terms if isinstance(bound, AllOf) else (bound,)
    columns: dict[int, _Column] = {}
    for term in terms:
        if not isinstance(term, Comparison) or len(term.path) != 1 or not _is_orderable(term):
            return None
        column = columns.setdefault(term.field.field_id, _Column(term.field))
        if not column.narrow(term):
            return None
    return _conjunction(list(columns.values()))


def spans_of(condition: KeyCondition, schema: Schema, key_field_ids: Sequence[int]) -> SpanArray:
    """The condition as spans: over the key of the table if the pinned columns and the interval are its leading columns,
    otherwise over their own list of columns."""
    on = span_columns(condition, schema, key_field_ids)
    by_id = {column.field_id: values for column, values in condition.points}
    pinned = [by_id[field_id] for field_id in on.field_ids[: len(condition.points)]]
    tuples = list(itertools.product(*pinned))
    lower, upper = _edges(condition.interval)
    lower_cuts = _cuts(on, tuples, lower, after=lower is not None and not lower.is_inclusive)
    upper_cuts = _cuts(on, tuples, upper, after=upper is None or upper.is_inclusive)
    return sort_and_merge(SpanArray(on, lower_cuts, upper_cuts, None))


def span_columns(condition: KeyCondition, schema: Schema, key_field_ids: Sequence[int]) -> KeyColumns:
    """The ordered columns that `spans_of` uses."""
    pinned = condition.point_field_ids
    limited = () if condition.interval is None else (condition.interval.column.field_id,)
    lead = tuple(key_field_ids[: len(pinned)])
    if leads_key(condition, key_field_ids):
        return KeyColumns.of(schema, tuple(key_field_ids))
    ordered = lead if set(lead) == set(pinned) else tuple(sorted(pinned))
    return KeyColumns.of(schema, (*ordered, *limited))


def leads_key(condition: KeyCondition, key_field_ids: Sequence[int]) -> bool:
    """Whether the pinned columns are the first columns of the key and the interval, if any, is on the next one."""
    pinned = condition.point_field_ids
    rest = key_field_ids[len(pinned) :]
    if set(key_field_ids[: len(pinned)]) != set(pinned) or not key_field_ids:
        return False
    return condition.interval is None or (bool(rest) and rest[0] == condition.interval.column.field_id)


def keys_of(condition: KeyCondition) -> pa.Table:
    """The condition without an interval, as the rows of an equality delete."""
    assert condition.interval is None, "an interval is not a set of keys"
    tuples = list(itertools.product(*(values for _, values in condition.points)))
    columns = zip(*tuples, strict=True) if tuples else ((),) * len(condition.points)
    return pa.table(
        {
            column.name: array_of_internal_values(values, column.field_type)
            for (column, _), values in zip(condition.points, columns, strict=True)
            if isinstance(column.field_type, PrimitiveType)
        }
    )


@dataclass(slots=True)
class _Column:
    """The limits of one column, according to the terms processed so far."""

    column: NestedField
    points: set[Any] | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    is_limited: bool = field(default=False)
    """Whether a term other than a pin limited the column. IS NOT NULL does, with both ends open."""

    def narrow(self, term: Comparison) -> bool:
        """Add a term. False if the term is neither a pin nor an end of an interval."""
        match term.operator:
            case Operator.EQUAL | Operator.IN:
                self._pin(set(term.values))
            case Operator.IS_NULL:
                self._pin({None})
            case Operator.NOT_NULL:
                self.is_limited = True
            case Operator.GREATER | Operator.GREATER_OR_EQUAL:
                self._raise_lower(Bound(term.value, term.operator is Operator.GREATER_OR_EQUAL))
            case Operator.LESS | Operator.LESS_OR_EQUAL:
                self._sink_upper(Bound(term.value, term.operator is Operator.LESS_OR_EQUAL))
            case Operator.STARTS_WITH if isinstance(term.value, str):
                self._raise_lower(Bound(term.value, is_inclusive=True))
                if (end := _end_of_prefix(term.value)) is not None:
                    self._sink_upper(Bound(end, is_inclusive=False))
            case _:
                return False
        return True

    def _pin(self, values: set[Any]) -> None:
        self.points = values if self.points is None else self.points & values

    def _raise_lower(self, bound: Bound) -> None:
        self.is_limited = True
        if self.lower is None or (bound.value, not bound.is_inclusive) > (
            self.lower.value,
            not self.lower.is_inclusive,
        ):
            self.lower = bound

    def _sink_upper(self, bound: Bound) -> None:
        self.is_limited = True
        if self.upper is None or (bound.value, bound.is_inclusive) < (self.upper.value, self.upper.is_inclusive):
            self.upper = bound

    def pinned_values(self) -> tuple[Any, ...]:
        """The pinned values inside the interval, in order, null first."""
        assert self.points is not None
        inside = {value for value in self.points if not self.is_limited or self._contains(value)}
        return tuple(sorted(inside, key=lambda value: (value is not None, value if value is not None else 0)))

    def _contains(self, value: Any) -> bool:
        if value is None:
            return False
        above = (
            self.lower is None or value > self.lower.value or (value == self.lower.value and self.lower.is_inclusive)
        )
        below = (
            self.upper is None or value < self.upper.value or (value == self.upper.value and self.upper.is_inclusive)
        )
        return above and below

    def interval(self) -> Interval | None:
        """The interval; None if no value lies between its ends."""
        lower, upper = self.lower, self.upper
        if lower is not None and upper is not None:
            closed = lower.is_inclusive and upper.is_inclusive
            if lower.value > upper.value or (lower.value == upper.value and not closed):
                return None
        return Interval(self.column, lower, upper)


def _end_of_prefix(prefix: str) -> str | None:
    """The smallest text that is larger than every text with the prefix, in the order of code points. None if such a
    text does not exist. Surrogates are not valid text and are skipped."""
    head = prefix.rstrip(_LAST_CODE_POINT)
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(0xE000 if following == 0xD800 else following)


def _conjunction(columns: list[_Column]) -> list[KeyCondition] | None:
    points = tuple((c.column, c.pinned_values()) for c in columns if c.points is not None)
    limited = [c for c in columns if c.points is None]
    if len(limited) > 1:
        return None
    if any(not values for _, values in points):
        return []
    interval = limited[0].interval() if limited else None
    if limited and interval is None:
        return []
    condition = KeyCondition(points, interval)
    return [condition] if condition.combination_count <= _COMBINATIONS_MAX else None


def _is_orderable(term: Comparison) -> bool:
    """Whether the column is primitive and not floating point. The SQL rules for NaN and -0.0 are left to the filter
    itself."""
    column_type = term.field.field_type
    return isinstance(column_type, PrimitiveType) and not isinstance(column_type, FloatType | DoubleType | UnknownType)


def _edges(interval: Interval | None) -> tuple[Bound | None, Bound | None]:
    """The ends as cuts. An open lower end lies after null, because an interval never contains null."""
    if interval is None:
        return None, None
    return interval.lower or Bound(None, is_inclusive=False), interval.upper


def _cuts(on: KeyColumns, tuples: list[tuple[Any, ...]], edge: Bound | None, *, after: bool) -> CutArray:
    """One cut for each tuple of pinned values, with the end of the interval as an additional column."""
    extended = [(*values, edge.value) for values in tuples] if edge is not None else tuples
    depth = len(extended[0])
    columns = tuple(
        array_of_internal_values(
            [values[i] for values in extended] if i < depth else [None] * len(extended), column_type
        )
        for i, column_type in enumerate(on.types)
    )
    return CutArray(on, columns, np.full(len(extended), depth, np.int8), np.full(len(extended), after, np.bool_))
