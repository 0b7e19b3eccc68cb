"""Evaluates a filter on column statistics of a set of rows. The result is the residual filter for each row.

The same evaluation serves partition values, the partition summaries of a manifest, the metrics of a data file and the
statistics of a row group: all of them become `ColumnStatistics`. The residual is `Always(False)` if no row can match,
`Always(True)` if every row must match, and otherwise the part of the filter that is not decided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tableformat.filters.bound_filter import (
    FALSE,
    TRUE,
    AllOf,
    Always,
    BoundFilter,
    Comparison,
    Operator,
    all_of,
    any_of,
)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The possible values of a column. Unknown statistics exclude nothing."""

    may_be_null: bool = True
    may_be_nan: bool = True
    """For float columns, whose bounds say nothing about NaN."""
    may_have_values: bool = True
    """Whether other values than null and NaN may occur."""
    lower: Any = None
    """Less than or equal to every value except NaN; None if unknown. Internal representation, like the filter's
    literals."""
    upper: Any = None
    """Greater than or equal to every value except NaN; None if unknown."""


UNKNOWN: Final = ColumnStatistics()

Decide = Callable[[Comparison], BoundFilter]
"""TRUE, FALSE, or the comparison itself if the statistics do not decide it."""


def decide(leaf: Comparison, statistics: ColumnStatistics) -> BoundFilter:
    """The residual of a comparison, given the statistics of its column."""
    if not may_match(leaf, statistics):
        return FALSE
    return TRUE if must_match(leaf, statistics) else leaf


def residual(bound: BoundFilter, decide_leaf: Decide) -> BoundFilter:
    """The residual for each row; the same object if nothing was decided."""
    if isinstance(bound, Always):
        return bound
    if isinstance(bound, Comparison):
        return decide_leaf(bound)
    is_and = isinstance(bound, AllOf)
    decisive = FALSE if is_and else TRUE
    terms: list[BoundFilter] = []
    has_changed = False
    for term in bound.terms:
        left = residual(term, decide_leaf)
        if left is decisive:
            return decisive
        has_changed = has_changed or left is not term
        terms.append(left)
    if not has_changed:
        return bound
    return all_of(terms) if is_and else any_of(terms)


def must_match(leaf: Comparison, statistics: ColumnStatistics) -> bool:
    """Whether every row matches: no value is null, for which comparisons are unknown, and no value matches the
    opposite."""
    asks_for_null = leaf.operator in (Operator.IS_NULL, Operator.NOT_NULL)
    may_be_unknown = leaf.is_nullable and statistics.may_be_null and not asks_for_null
    return not may_be_unknown and not may_match(leaf.negated(), statistics)


def may_match(leaf: Comparison, statistics: ColumnStatistics) -> bool:
    """Whether some row may match."""
    if leaf.operator is Operator.IS_NULL:
        return leaf.is_nullable and statistics.may_be_null
    may_be_nan = leaf.is_float and statistics.may_be_nan
    if leaf.operator is Operator.NOT_NULL:
        return statistics.may_have_values or may_be_nan
    if may_be_nan and nan_matches(leaf):
        return True
    return statistics.may_have_values and _value_may_match(leaf, statistics)


def nan_matches(leaf: Comparison) -> bool:
    """Whether NaN matches the comparison. It is greater than every number."""
    operator = leaf.operator
    if operator in (Operator.IS_NAN, Operator.NOT_NAN):
        return operator is Operator.IS_NAN
    return operator in (Operator.NOT_EQUAL, Operator.NOT_IN, Operator.GREATER, Operator.GREATER_OR_EQUAL)


def _value_may_match(leaf: Comparison, statistics: ColumnStatistics) -> bool:
    """Whether a value between the bounds, neither null nor NaN, may match the comparison."""
    operator, lower, upper = leaf.operator, statistics.lower, statistics.upper
    if operator in (Operator.IS_NAN, Operator.NOT_NAN):
        return operator is Operator.NOT_NAN
    if operator in (Operator.IN, Operator.NOT_IN):
        return _set_may_match(leaf, lower, upper)
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return _prefix_may_match(leaf, lower, upper)
    return _COMPARES[operator](leaf.value, lower, upper)


_COMPARES: Final[dict[Operator, Callable[[Any, Any, Any], bool]]] = {
    Operator.EQUAL: lambda value, lower, upper: (lower is None or lower <= value) and (upper is None or value <= upper),
    Operator.NOT_EQUAL: lambda value, lower, upper: lower is None or upper is None or not lower == value == upper,
    Operator.LESS: lambda value, lower, _: lower is None or lower < value,
    Operator.LESS_OR_EQUAL: lambda value, lower, _: lower is None or lower <= value,
    Operator.GREATER: lambda value, _, upper: upper is None or upper > value,
    Operator.GREATER_OR_EQUAL: lambda value, _, upper: upper is None or upper >= value,
}


def _set_may_match(leaf: Comparison, lower: Any, upper: Any) -> bool:
    """The literals are sorted, so a set of any size costs two binary searches."""
    values = leaf.values
    if leaf.operator is Operator.NOT_IN:
        # Only a column with a single value decides the comparison.
        return lower is None or upper is None or lower != upper or lower not in values
    first = 0 if lower is None else bisect_left(values, lower)
    after_last = len(values) if upper is None else bisect_right(values, upper)
    return first < after_last


def _prefix_may_match(leaf: Comparison, lower: Any, upper: Any) -> bool:
    prefix = leaf.value
    length = len(prefix)
    if leaf.operator is Operator.STARTS_WITH:
        return (lower is None or lower[:length] <= prefix) and (upper is None or upper[:length] >= prefix)
    # If two values begin with the prefix, every value between them begins with it too.
    return lower is None or upper is None or lower[:length] != prefix or upper[:length] != prefix
