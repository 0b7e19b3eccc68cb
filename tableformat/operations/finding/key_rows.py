"""Rows by their keys: portions of a stream with their spans, and the bounds by which files are chosen."""

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

PORTION_ROWS: Final = 500_000
"""Rows looked up together. Each portion reads the files whose bounds meet its own."""
_LITERAL: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_signed_integer)


def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, put together to tables of about `PORTION_ROWS`; none without a row."""
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


def within_bounds(column: pa.ChunkedArray, name: str) -> BooleanExpression | None:
    """The range of the first key column that the rows lie in; key columns have no nulls. None where it cannot be
    stated."""
    if isinstance(column.type, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(column.type):
        return None
    bounds = pc.min_max(column)
    return And(
        GreaterThanOrEqual(term=Reference(name), value=literal(bounds["min"].as_py())),
        LessThanOrEqual(term=Reference(name), value=literal(bounds["max"].as_py())),
    )


def among_values(rows: pa.Table) -> BooleanExpression:
    """That each column has one of its values in the rows, which are few and have no nulls; columns whose values have no
    literal of their own are left out."""
    where: BooleanExpression = AlwaysTrue()
    for name in rows.column_names:
        column = rows.column(name)
        if any(check(column.type) for check in _LITERAL):
            values = {literal(value) for value in pc.unique(column).to_pylist()}
            where = And(where, In(term=Reference(name), values=values))
    return where
