"""The columns of a table that a data file stores.

Source: Iceberg table specification, "Primitive Types": values of an `unknown` column are null and not stored. Values of
`geometry` and `geography` are annotated in Parquet, and their bounds are points.
"""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import GeographyType, GeometryType, NestedField, StructType, UnknownType

from tableformat.errors import UnsupportedFeatureError
from tableformat.parquet.array_forms import batch_as, has_required_parts


def refuse_unwritten_types(schema: Schema) -> None:
    """FM-22: raise UnsupportedFeatureError, which names every column whose type this library cannot write as Iceberg
    specifies."""
    refused = [
        f"column {schema.find_column_name(field.field_id)!r} {why}"
        for field in index_by_id(schema).values()
        if (why := _why_unwritten(field, is_nested=field not in schema.fields))
    ]
    if refused:
        raise UnsupportedFeatureError(f"{'; '.join(refused)}. Nothing was changed.")


def _why_unwritten(field: NestedField, *, is_nested: bool) -> str:
    """The reason why data files cannot have the field, with a hint; empty if they can."""
    match field.field_type:
        case GeometryType() | GeographyType():
            return (
                f"is a {field.field_type}, which this library cannot write to data files: store it as binary in WKB "
                "format, or write with another engine"
            )
        case StructType(fields=()):
            return "is a struct without fields, which Parquet does not support: add a field, or omit the column"
        case UnknownType() if is_nested:
            return (
                "is of type unknown inside another column, and cannot be omitted from a data file: give it a type, "
                "or remove it"
            )
    return ""


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """FM-22: the schema without columns of type `unknown`, null in Arrow; the same object without such columns."""
    stored = [field for field in schema if not pa.types.is_null(field.type)]
    return schema if len(stored) == len(schema) else pa.schema(stored, metadata=schema.metadata)


def stored_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of `schema`, their `stored_schema`. Nulls of required parts under a null parent are
    removed."""
    rows = rows if len(schema) == rows.num_columns else rows.select(schema.names)
    return batch_as(rows, schema) if any(has_required_parts(field.type) for field in schema) else rows
