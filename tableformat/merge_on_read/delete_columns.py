"""The columns that equality deletes compare, as described by the history of the table's schemas (DA-6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import ListType, MapType, NestedField, PrimitiveType, StructType

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.keys.families import arrow_type_of
from tableformat.metadata.content_file import ContentFile


def field_history(metadata: TableMetadata) -> dict[int, NestedField]:
    """DA-6: every field in any schema of the table, in its newest form. Types are only ever widened.

    Dropped columns are included: their deletes still apply to data files that have the column. Fields inside lists and
    maps are excluded, because they cannot be delete columns.
    """
    fields: dict[int, NestedField] = {}
    for schema in sorted(metadata.schemas, key=lambda schema: schema.schema_id):
        by_id = index_by_id(schema)
        repeated = {
            inner.field_id
            for field in by_id.values()
            if isinstance(field.field_type, ListType | MapType)
            for inner in index_by_id(field.field_type).values()
        }
        fields |= {field_id: field for field_id, field in by_id.items() if field_id not in repeated}
    return fields


def struct_history(metadata: TableMetadata) -> dict[int, int]:
    """DA-6: field id to the id of the struct that contains the field, over all schemas of the table."""
    return {
        child.field_id: field.field_id
        for schema in metadata.schemas
        for field in index_by_id(schema).values()
        if isinstance(field.field_type, StructType)
        for child in field.field_type.fields
    }


def history_schema(metadata: TableMetadata) -> Schema:
    """The primitive columns of `field_history` in one schema, with their names in the current schema."""
    current = metadata.schema()
    columns = []
    for field_id, field in field_history(metadata).items():
        if isinstance(field.field_type, PrimitiveType):
            name = current.find_column_name(field_id) or f"{field.name} (dropped, field id {field_id})"
            columns.append(NestedField(field_id, name, field.field_type, required=False))
    return Schema(*columns)


def delete_column_types(
    fields: dict[int, NestedField], field_ids: Iterable[int], location: str
) -> dict[int, PrimitiveType]:
    """The type in which each delete column is compared. `location` is the delete file that names them.

    Raises CorruptFileError for an id that is in no schema, UnsupportedFeatureError for a column that is not primitive.
    """
    types = {}
    for field_id in field_ids:
        field = fields.get(field_id)
        if field is None:
            raise CorruptFileError(
                location, f"it deletes by field id {field_id}, which is not a column of any schema of the table."
            )
        if not isinstance(field.field_type, PrimitiveType):
            raise UnsupportedFeatureError(
                f"{location}: it deletes by column {field.name!r} of type {field.field_type}, but equality deletes "
                "support only primitive columns."
            )
        types[field_id] = field.field_type
    return types


def value_where_missing(metadata: TableMetadata, data: ContentFile, field: NestedField) -> pa.Scalar:
    """DA-6: the value that every row of a data file, or of an equality delete file, has if the file lacks the column:
    its identity partition value, the column's initial default, or null. For a field of a struct: every row that has the
    struct. In the column's Arrow type.

    Source: Iceberg table specification, "Column Projection".
    """
    assert isinstance(field.field_type, PrimitiveType), "only primitive columns have a default"
    arrow_type = arrow_type_of(field.field_type)
    spec = metadata.specs()[data.spec_id]
    for partition_field, value in zip(spec.fields, data.partition, strict=True):
        if partition_field.source_id == field.field_id and isinstance(partition_field.transform, IdentityTransform):
            return _scalar(value, arrow_type)
    return _scalar(field.initial_default, arrow_type)


def _scalar(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """A value in Iceberg's internal representation or as a Python value."""
    if isinstance(value, UUID):
        value = value.bytes
    if isinstance(value, int) and pat.is_temporal(arrow_type):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        return pa.scalar(value, width).cast(arrow_type)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime) and pat.is_timestamp(arrow_type):
        return pa.scalar(value, pa.date32()).cast(arrow_type)
    return pa.scalar(value, arrow_type)
