"""Evaluates the comparisons of a filter on the statistics of many files at once: the array form of `pruning`.

`pruning.may_match` and `pruning.must_match` define the result. A property test compares both implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import DoubleType, FloatType, IcebergType

from tableformat.filters.bound_columns import BoundColumn, bound_column, comparable_literal, literal_array
from tableformat.filters.bound_filter import Comparison, Operator
from tableformat.filters.pruning import nan_matches
from tableformat.keys.byte_search import search_bytes
from tableformat.metadata.columns.data_columns import DataColumns

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsColumns:
    """`ColumnStatistics` of one column in n files."""

    may_be_null: Flags
    may_be_nan: Flags
    may_have_values: Flags
    lower: BoundColumn
    upper: BoundColumn

    @property
    def is_odd(self) -> Flags:
        """Files for which these columns say nothing, because a bound is not a value of the type."""
        return self.lower.is_odd | self.upper.is_odd


_Statistics: TypeAlias = dict[tuple[int, IcebergType], StatisticsColumns | None]
_of_files: Final[WeakKeyDictionary[DataColumns, _Statistics]] = WeakKeyDictionary()
"""Cached, because scans of a table evaluate the same columns repeatedly."""


def statistics_columns(files: DataColumns, field_id: int, column_type: IcebergType) -> StatisticsColumns | None:
    """The statistics of a column in the files' metrics; missing metrics are unknown. None for a type whose bounds are
    not ordered here."""
    known = _of_files.setdefault(files, {})
    key = field_id, column_type
    if key not in known:
        known[key] = _statistics_columns(files, field_id, column_type)
    return known[key]


def _statistics_columns(files: DataColumns, field_id: int, column_type: IcebergType) -> StatisticsColumns | None:
    lower = bound_column(files.metric("lower_bounds", field_id).values, column_type, is_upper=False)
    upper = bound_column(files.metric("upper_bounds", field_id).values, column_type, is_upper=True)
    if lower is None or upper is None:
        return None
    nulls, values = files.null_counts(field_id), files.value_counts(field_id)
    nans = files.metric("nan_value_counts", field_id)
    null_count, nan_count, value_count = (
        np.asarray(pc.fill_null(metric.values, 0)) for metric in (nulls, nans, values)
    )
    may_have_values = ~nulls.is_known | ~values.is_known | (value_count > null_count + nan_count)
    may_be_nan = np.zeros(len(files), np.bool_)
    if isinstance(column_type, (FloatType, DoubleType)):
        may_be_nan = ~nans.is_known | (nan_count > 0)
    return StatisticsColumns(~nulls.is_known | (null_count > 0), may_be_nan, may_have_values, lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A comparison of a filter, with its literals in the form of the bounds."""

    leaf: Comparison
    literals: Sequence[Any] | npt.NDArray[Any] | pa.LargeBinaryArray
    """Numbers or byte strings; a sorted array for several literals."""

    @staticmethod
    def of(leaf: Comparison) -> Question:
        column_type = leaf.field.field_type
        literals = [comparable_literal(value, column_type) for value in leaf.values]
        if leaf.operator not in (Operator.IN, Operator.NOT_IN):
            return Question(leaf, literals)
        return Question(leaf, literal_array(literals, column_type))

    def negated(self) -> Question:
        """The comparison that is true if this one is false."""
        return Question(self.leaf.negated(), self.literals)


def must_match(question: Question, statistics: StatisticsColumns) -> Flags:
    """The files in which every row matches."""
    leaf = question.leaf
    asks_for_null = leaf.operator in (Operator.IS_NULL, Operator.NOT_NULL)
    must = ~may_match(question.negated(), statistics)
    return must if asks_for_null or not leaf.is_nullable else must & ~statistics.may_be_null


def may_match(question: Question, statistics: StatisticsColumns) -> Flags:
    """The files in which some row may match."""
    leaf = question.leaf
    if leaf.operator is Operator.IS_NULL:
        return statistics.may_be_null if leaf.is_nullable else np.zeros_like(statistics.may_be_null)
    may_be_nan = statistics.may_be_nan if leaf.is_float else np.zeros_like(statistics.may_be_nan)
    if leaf.operator is Operator.NOT_NULL:
        return statistics.may_have_values | may_be_nan
    by_value = statistics.may_have_values & _value_may_match(question, statistics.lower, statistics.upper)
    return by_value | may_be_nan if nan_matches(leaf) else by_value


def _value_may_match(question: Question, lower: BoundColumn, upper: BoundColumn) -> Flags:
    operator, literals = question.leaf.operator, question.literals
    if operator in (Operator.IS_NAN, Operator.NOT_NAN):
        return np.full(len(lower.is_known), operator is Operator.NOT_NAN)
    if operator is Operator.IN:
        return literals_before(literals, lower, right=False, unknown=0) < literals_before(
            literals, upper, right=True, unknown=len(literals)
        )
    if operator is Operator.NOT_IN:
        # Only a column with a single value decides the comparison.
        is_one = _is_one_value(lower, upper)
        first = literals_before(literals, lower, right=False, unknown=0)
        is_listed: Flags = first < literals_before(literals, lower, right=True, unknown=0)
        return ~(is_one & is_listed)
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        return _prefix_may_match(literals[0], lower, upper, is_negated=operator is Operator.NOT_STARTS_WITH)
    return _COMPARES[operator](literals[0], lower, upper)


def _prefix_may_match(prefix: bytes, lower: BoundColumn, upper: BoundColumn, *, is_negated: bool) -> Flags:
    lower_begins: Flags = np.array(pc.starts_with(lower.values, pattern=prefix))
    if is_negated:
        # If two values begin with the prefix, every value between them begins with it too.
        upper_begins: Flags = np.array(pc.starts_with(upper.values, pattern=prefix))
        upper_begins &= lower_begins & lower.is_known & upper.is_known
        return ~upper_begins
    lower_begins |= _is(lower, "less_equal", prefix)
    return lower_begins & _is(upper, "greater_equal", prefix)


def _is(bound: BoundColumn, comparison: str, literal: Any) -> Flags:
    """True if the comparison of bound and literal holds, or the bound is unknown."""
    if isinstance(bound.values, np.ndarray):
        compared: Flags = getattr(np, comparison)(bound.values, literal)
    else:
        compared = np.asarray(getattr(pc, comparison)(bound.values, pa.scalar(literal, pa.large_binary())))
    return compared | ~bound.is_known


def _is_one_value(lower: BoundColumn, upper: BoundColumn) -> Flags:
    if isinstance(lower.values, np.ndarray):
        same: Flags = lower.values == upper.values
    else:
        same = np.asarray(pc.equal(lower.values, upper.values))
    return same & lower.is_known & upper.is_known


def literals_before(literals: Any, bound: BoundColumn, *, right: bool, unknown: int) -> npt.NDArray[np.int64]:
    """For each file the number of sorted literals below its bound, with `right` below or equal; `unknown` without a
    bound."""
    if isinstance(bound.values, np.ndarray):
        found = np.searchsorted(literals, bound.values, side="right" if right else "left")
    else:
        found = search_bytes(literals, bound.values, right=right)
    return np.where(bound.is_known, found, unknown)


def _is_other_value(literal: Any, lower: BoundColumn, upper: BoundColumn) -> Flags:
    if isinstance(lower.values, np.ndarray):
        same: Flags = lower.values == literal
    else:
        same = np.asarray(pc.equal(lower.values, pa.scalar(literal, pa.large_binary())))
    return ~(_is_one_value(lower, upper) & same)


_COMPARES: Final[dict[Operator, Callable[[Any, BoundColumn, BoundColumn], Flags]]] = {
    Operator.EQUAL: lambda value, lower, upper: _is(lower, "less_equal", value) & _is(upper, "greater_equal", value),
    Operator.NOT_EQUAL: _is_other_value,
    Operator.LESS: lambda value, lower, _: _is(lower, "less", value),
    Operator.LESS_OR_EQUAL: lambda value, lower, _: _is(lower, "less_equal", value),
    Operator.GREATER: lambda value, _, upper: _is(upper, "greater", value),
    Operator.GREATER_OR_EQUAL: lambda value, _, upper: _is(upper, "greater_equal", value),
}
