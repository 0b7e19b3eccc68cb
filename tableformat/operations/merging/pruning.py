"""Selects the files that can hold a matching row, using the bounds of the columns that must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysFalse, And, BooleanExpression

from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.merging.sides import Sides
from tableformat.operations.row_lookup.key_rows import within_bounds
from tableformat.write.rows.conform import table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows


def bounds_of_matches(sides: Sides) -> BooleanExpression | None:
    """CP-29: a filter that is true for every target row with a matching source row; None if such a filter cannot be
    stated."""
    bounds: list[BooleanExpression] = []
    for target in sides.equal_columns:
        values = _in_target_type(sides, target)
        if values is None:
            continue
        if not len(values):
            return AlwaysFalse()
        within = within_bounds(values, sides.schema.find_field(target))
        bounds += [] if within is None else [within]
    return reduce(And, bounds) if bounds else None


def tasks_with_keys(sides: Sides, tasks: Sequence[RowTask], sequence_number: int) -> list[RowTask]:
    """The tasks whose files, according to their bounds, may hold leading key values of the source.

    `sequence_number` is newer than the sequence number of every file.
    """
    keys: dict[str, pa.ChunkedArray] = {}
    for name in sides.key:
        values = _in_target_type(sides, name, drop_nulls=False) if name in sides.equal_columns else None
        if values is None:
            break
        keys[name] = values
    if not keys:
        return list(tasks)
    fields = [sides.schema.find_field(name) for name in keys]
    on = KeyColumns.of(sides.schema, [field.field_id for field in fields])
    # In SQL, a null equals nothing.
    rows = distinct_rows(pa.table(keys).drop_null().cast(pa.schema([_stored_field(sides, name) for name in keys])))
    spans = sort_and_merge(spans_of_prefixes(on, rows)).with_sequence_number(sequence_number)
    held = classify_many(spans, [task.data_file for task in tasks])
    return [task for task, (coverage, _) in zip(tasks, held, strict=True) if coverage is not Coverage.CLEAN]


def _in_target_type(sides: Sides, target: str, *, drop_nulls: bool = True) -> pa.ChunkedArray | None:
    """The source values of an equal column, cast to the target type; None if the two types have different orders."""
    values = sides.source.column(sides.equal_columns[target])
    stored = _stored_field(sides, target).type
    if not _are_ordered_alike(values.type, stored):
        return None
    try:
        cast = values.cast(stored)
    except pa.ArrowInvalid:
        return None  # A value that the column cannot hold; DuckDB compares it in a wider type.
    return pc.drop_null(cast) if drop_nulls else cast


def _stored_field(sides: Sides, name: str) -> pa.Field:
    return table_arrow_schema(sides.schema).field(name)


def _are_ordered_alike(given: pa.DataType, stored: pa.DataType) -> bool:
    if pa.types.is_timestamp(stored):
        return bool(given == stored and stored.unit == "us")
    kinds = (pa.types.is_integer, _is_text, pa.types.is_date32, pa.types.is_decimal)
    return any(is_of_kind(given) and is_of_kind(stored) for is_of_kind in kinds)


def _is_text(data_type: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type))
