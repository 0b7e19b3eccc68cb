"""Converts schemas between Arrow and Iceberg."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
from pyiceberg.io.pyarrow import (
    UnsupportedPyArrowTypeException,
    _ConvertToIcebergWithoutIDs,
    schema_to_pyarrow,
    visit_pyarrow,
)
from pyiceberg.schema import Schema

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.once_per_schema import once_per_schema

_DECIMAL_DIGITS_MAX: Final = 38


@runtime_checkable
class SupportsArrowSchema(Protocol):
    """The columns of other libraries, such as `polars.Schema`."""

    def __arrow_c_schema__(self) -> object: ...


TableSchema: TypeAlias = pa.Schema | Schema | SupportsArrowSchema


def iceberg_schema(schema: TableSchema, *, format_version: int = 2) -> Schema:
    """The Iceberg schema of columns as Arrow describes them; field ids are placeholders that table creation replaces.

    Arrow types that Iceberg lacks become the one in which the writer stores their values: time zones are UTC, and
    before version 3 nanoseconds are microseconds; rows that would lose digits are refused when they are written.
    InvalidArgumentError, with the name of the column, for types of which there is none.
    """
    if isinstance(schema, Schema):
        return schema
    if not isinstance(schema, SupportsArrowSchema):
        what = "a pyarrow or PyIceberg schema"
        if hasattr(schema, "__arrow_c_stream__"):
            raise InvalidArgumentError(
                f"schema takes columns, as {what}, not rows ({type(schema).__name__}): give pa.table(rows).schema, and "
                "append the rows to the table."
            )
        raise InvalidArgumentError(f"schema must be {what}, not {shown(schema)}.")
    columns = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    if len(set(columns.names)) != len(columns.names):
        raise InvalidArgumentError(f"schema names a column twice: {columns.names}.")
    has_nanoseconds = format_version >= 3
    stored = pa.schema([_stored(field, has_nanoseconds=has_nanoseconds) for field in columns])
    try:
        converted = visit_pyarrow(stored, _ConvertToIcebergWithoutIDs(format_version=3 if has_nanoseconds else 2))
    except UnsupportedPyArrowTypeException as error:
        raise InvalidArgumentError(
            f"column {error.field.name!r} has the Arrow type {error.field.type}, which Iceberg has no type for."
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the Arrow schema has a type that Iceberg has no type for: {error}") from error
    assert isinstance(converted, Schema), "an Arrow schema converts to a schema, not to a type"
    return converted


def _stored(field: pa.Field, *, has_nanoseconds: bool) -> pa.Field:
    """The column in a type that Iceberg has, where the writer casts to one."""

    def part(inner: pa.Field) -> pa.Field:
        return _stored(inner, has_nanoseconds=has_nanoseconds)

    kind: pa.DataType = field.type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return part(field.with_type(kind.value_type))
    if pa.types.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" and has_nanoseconds else "us"
        kind = pa.timestamp(unit, None if kind.tz is None else "UTC")
    elif pa.types.is_date64(kind):
        kind = pa.date32()
    elif pa.types.is_time(kind):
        kind = pa.time64("us")
    elif pa.types.is_decimal256(kind) and kind.precision <= _DECIMAL_DIGITS_MAX:
        kind = pa.decimal128(kind.precision, kind.scale)
    elif pa.types.is_struct(kind):
        kind = pa.struct([part(inner) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(part(kind.key_field), part(kind.item_field))
    elif isinstance(
        kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
    ):
        kind = pa.list_(part(kind.value_field))
    return field.with_type(kind)


@once_per_schema
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
