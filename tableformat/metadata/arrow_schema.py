"""Converts schemas between Arrow and Iceberg."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    _ConvertToIcebergWithoutIDs,
    schema_to_pyarrow,
    visit_pyarrow,
)
from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError


def iceberg_schema(schema: pa.Schema | Schema, *, format_version: int = 2) -> Schema:
    """The Iceberg schema of columns as Arrow describes them; field ids are placeholders that table creation replaces.

    Arrow types that Iceberg lacks raise InvalidArgumentError naming the column. Before version 3 nanosecond timestamps
    become microseconds: the writer then refuses rows that would lose digits.
    """
    if isinstance(schema, Schema):
        return schema
    if not isinstance(schema, pa.Schema):
        raise InvalidArgumentError(f"schema must be a pyarrow or PyIceberg schema, not {type(schema).__name__}.")
    if len(set(schema.names)) != len(schema.names):
        raise InvalidArgumentError(f"schema names a column twice: {schema.names}.")
    try:
        converted = visit_pyarrow(
            schema,
            _ConvertToIcebergWithoutIDs(
                downcast_ns_timestamp_to_us=format_version < 3, format_version=3 if format_version >= 3 else 2
            ),
        )
    except UnsupportedPyArrowTypeException as error:
        raise InvalidArgumentError(
            f"column {error.field.name!r} has the Arrow type {error.field.type}, which Iceberg has no type for."
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the Arrow schema has a type that Iceberg has no type for: {error}") from error
    assert isinstance(converted, Schema), "an Arrow schema converts to a schema, not to a type"
    return converted


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that rows are read in: `string`, `binary` and `list` with 32-bit offsets, no field ids in
    metadata.

    PyIceberg picks the `large_` variants; Parquet files decode to the small ones, and a batch never holds 2 GiB of
    one column.
    """
    large: pa.Schema = schema_to_pyarrow(schema, include_field_ids=False)
    return pa.schema([field.with_type(_small(field.type)) for field in large])


def _small(data_type: pa.DataType) -> pa.DataType:
    """The type with 32-bit offsets at every level."""
    if pa.types.is_large_string(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type):
        return pa.binary()
    if pa.types.is_large_list(data_type) or pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_small(data_type.value_type)))
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_small(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(
            data_type.key_field.with_type(_small(data_type.key_type)),
            data_type.item_field.with_type(_small(data_type.item_type)),
        )
    return data_type
