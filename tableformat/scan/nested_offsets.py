"""Moves offsets of nested struct arrays down to their leaves.

A batch that is a slice of a larger one, for instance because the first row is deleted, shares its buffers and has an
offset to its first row. An Arrow reader has to add up these offsets for nested arrays. DuckDB 2.0 rejects such offsets
for a struct inside of a struct. Moving the offset down to the leaves copies no value and changes no other column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.types as pat

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def struct_offset_remover(schema: pa.Schema) -> Callable[[Rows], Rows]:
    """A function that returns rows of the schema with the same values, but without offsets of structs that contain
    structs.

    If the schema has no such column, the function returns its argument. Otherwise it computes the validity of the
    structs that have an offset, one byte for each of their rows.
    """
    indexes = [index for index, field in enumerate(schema) if _has_struct_in_struct(field.type)]

    def remove(rows: Rows) -> Rows:
        for index in indexes:
            column = rows.column(index)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if any(chunk.offset for chunk in chunks):
                moved = [_without_offset(chunk) for chunk in chunks]
                new = pa.chunked_array(moved, column.type) if isinstance(column, pa.ChunkedArray) else moved[0]
                rows = rows.set_column(index, rows.schema.field(index), new)
        return rows

    return remove if indexes else lambda rows: rows


def _has_struct_in_struct(data_type: pa.DataType) -> bool:
    return pat.is_struct(data_type) and any(pat.is_struct(child.type) for child in data_type)


def _without_offset(array: pa.Array) -> pa.Array:
    """The same values; `field` returns a child with the parent's offset added to its own."""
    if not pat.is_struct(array.type):
        return array
    children = [_without_offset(array.field(index)) for index in range(array.type.num_fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
