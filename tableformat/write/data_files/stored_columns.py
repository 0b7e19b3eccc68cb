"""The columns of a table that a data file stores.

Source: Iceberg table specification, "Primitive Types": values of an `unknown` column are null and not stored; those of
`geometry` and `geography` are annotated in Parquet, and their bounds are points.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import GeographyType, GeometryType

from tableformat.errors import UnsupportedFeatureError


def refuse_unwritten_types(schema: Schema) -> None:
    """FM-22: UnsupportedFeatureError naming a column of a type that data files would not have as Iceberg says."""
    for field in index_by_id(schema).values():
        if isinstance(field.field_type, GeometryType | GeographyType):
            raise UnsupportedFeatureError(
                f"column {schema.find_column_name(field.field_id)!r} is a {field.field_type}, and this library writes "
                "no data files with it. Nothing was changed. Keep it as binary, in the form WKB, or write with "
                "another engine."
            )


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """FM-22: the schema without columns of type `unknown`, which Arrow calls null; the same object when there are none.

    UnsupportedFeatureError for one inside a struct, list or map.
    """
    for field in schema:
        if any(pa.types.is_null(child.type) for child in _inner_fields(field)):
            raise UnsupportedFeatureError(
                f"column {field.name!r} has a field of type unknown inside it, which cannot be left out of a data "
                "file. Give the field a type first."
            )
    stored = [field for field in schema if not pa.types.is_null(field.type)]
    return schema if len(stored) == len(schema) else pa.schema(stored, metadata=schema.metadata)


def stored_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of `schema`, their `stored_schema`."""
    return rows if len(schema) == rows.num_columns else rows.select(schema.names)


def _inner_fields(field: pa.Field) -> Iterator[pa.Field]:
    for index in range(field.type.num_fields):
        child = field.type.field(index)
        yield child
        yield from _inner_fields(child)
