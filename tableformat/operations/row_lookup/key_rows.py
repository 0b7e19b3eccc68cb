"""Rows by their keys: portions of a stream, and the bounds that select files for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
    Reference,
)
from pyiceberg.expressions.literals import literal
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.filters.literals import literal_of
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import internal_values_of

PORTION_ROWS: Final = 500_000
"""Number of rows that are looked up together. Each portion reads the files whose bounds overlap its own."""
_LITERAL: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_signed_integer)


def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, concatenated to tables of about `PORTION_ROWS`; no table without rows."""
    held: list[pa.RecordBatch] = []
    held_rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        held_rows += batch.num_rows
        if held_rows >= PORTION_ROWS:
            yield pa.Table.from_batches(held)
            held, held_rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def within_bounds(column: pa.ChunkedArray, field: NestedField) -> BooleanExpression | None:
    """A filter for the range of values in the column, which has no nulls. None if it cannot be stated.

    The bounds are internal values: Python's datetime has no nanoseconds, and a bound without them would exclude keys.
    """
    assert isinstance(field.field_type, PrimitiveType), "columns with parts have no bounds"
    if isinstance(column.type, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(column.type):
        return None
    bounds = pc.min_max(column)
    pair = pa.array([bounds["min"], bounds["max"]], column.type).cast(arrow_type_of(field.field_type))
    lowest, highest = (literal_of(each, field.field_type) for each in internal_values_of(pair, field.field_type))
    return And(
        GreaterThanOrEqual(term=Reference(field.name), value=lowest),
        LessThanOrEqual(term=Reference(field.name), value=highest),
    )


def among_values(rows: pa.Table) -> BooleanExpression:
    """A filter for rows with one of the values of each column. There must be few rows, without nulls. Columns with
    values that have no literal are left out."""
    where: BooleanExpression = AlwaysTrue()
    for name in rows.column_names:
        column = rows.column(name)
        if any(check(column.type) for check in _LITERAL):
            values = {literal(value) for value in pc.unique(column).to_pylist()}
            where = And(where, In(term=Reference(name), values=values))
    return where
