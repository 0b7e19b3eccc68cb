"""Applies a bound filter to rows.

Arrow's kernels are called in a way that gives the semantics of `bound_filter`. They differ for comparisons with NaN,
and for `is_in` with nulls, NaN and zeros of either sign. Columns are found by name, so the batch has to be in the
schema to which the filter was bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tableformat.filters.bound_filter import (
    AllOf,
    Always,
    AnyOf,
    BoundFilter,
    Comparison,
    Operator,
)

_KERNELS: Final[dict[Operator, Callable[[Any, Any], Any]]] = {
    Operator.EQUAL: pc.equal,
    Operator.NOT_EQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.LESS_OR_EQUAL: pc.less_equal,
    Operator.GREATER: pc.greater,
    Operator.GREATER_OR_EQUAL: pc.greater_equal,
}
_UNARY: Final[dict[Operator, Callable[[Any], Any]]] = {
    Operator.IS_NULL: pc.is_null,
    Operator.NOT_NULL: pc.is_valid,
    Operator.IS_NAN: pc.is_nan,
    Operator.NOT_NAN: lambda column: pc.invert(pc.is_nan(column)),
}
_NAN_MATCHES: Final = (Operator.GREATER, Operator.GREATER_OR_EQUAL)
"""Comparisons with a number that NaN, the greatest float, matches, and that Arrow's kernels evaluate to false for
NaN."""


def matching_rows(bound: BoundFilter, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray | pa.ChunkedArray | bool:
    """A mask of the matching rows, true only if the filter is true: null means no. A bool if all rows have the same
    result."""
    if isinstance(bound, Always):
        return bound.answer
    if isinstance(bound, Comparison):
        return _compare(bound, _column(bound, batch))
    combine = pc.and_kleene if isinstance(bound, AllOf) else pc.or_kleene
    assert isinstance(bound, (AllOf, AnyOf))
    mask = matching_rows(bound.terms[0], batch)
    for term in bound.terms[1:]:
        mask = combine(mask, matching_rows(term, batch))
    return mask


def filter_rows(bound: BoundFilter, batch: Any) -> Any:
    """The batch or table with only the matching rows; the same object if all rows match."""
    mask = matching_rows(bound, batch)
    if isinstance(mask, bool):
        return batch if mask else batch.slice(0, 0)
    return batch.filter(mask, null_selection_behavior="drop")


def _column(leaf: Comparison, batch: pa.RecordBatch | pa.Table) -> Any:
    column = batch.column(leaf.path[0])
    if len(leaf.path) > 1:
        column = pc.struct_field(column, list(leaf.path[1:]))
    # pyarrow's own extension types, such as UUID, are not `pa.ExtensionType`.
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    return column.storage


def _compare(leaf: Comparison, column: Any) -> Any:
    operator = leaf.operator
    unary = _UNARY.get(operator)
    if unary is not None:
        return unary(column)
    if operator in (Operator.IN, Operator.NOT_IN):
        return _is_in(leaf, column)
    if operator in (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH):
        begins = pc.starts_with(column, leaf.value)
        return begins if operator is Operator.STARTS_WITH else pc.invert(begins)
    mask = _KERNELS[operator](column, pa.scalar(leaf.value, type=column.type))
    return pc.or_kleene(mask, pc.is_nan(column)) if leaf.is_float and operator in _NAN_MATCHES else mask


def _is_in(leaf: Comparison, column: Any) -> Any:
    values = list(leaf.values)
    if leaf.is_float and 0.0 in values:
        # The hash table of is_in distinguishes the two zeros.
        values += [0.0, -0.0]
    found = pc.is_in(column, value_set=pa.array(values, type=column.type))
    is_wanted = found if leaf.operator is Operator.IN else pc.invert(found)
    return pc.and_kleene(pc.is_valid(column), is_wanted)
