"""Converts schemas between Arrow and Iceberg."""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, schema_to_pyarrow, visit_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.typedef import TableVersion

from tableformat.arguments import shown
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.once_per_schema import once_per_schema

_DECIMAL_DIGITS_MAX: Final = 38
_SIGNED: Final = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
"""Signed types that hold every value of the unsigned types, which Iceberg lacks."""


@runtime_checkable
class SupportsArrowSchema(Protocol):
    """A schema of another library that exports to Arrow, such as `polars.Schema`."""

    def __arrow_c_schema__(self) -> object: ...


TableSchema: TypeAlias = pa.Schema | Schema | SupportsArrowSchema


def iceberg_schema(schema: TableSchema, *, format_version: int = 2) -> Schema:
    """The Iceberg schema for an Arrow schema. Field ids are placeholders that table creation replaces.

    Arrow types that Iceberg lacks become a type that holds all their values: unsigned integers become wider ones, time
    zones become UTC, and before version 3 nanoseconds become microseconds. Rows that would lose digits are rejected
    when they are written. Raises InvalidArgumentError, which lists the columns, for types without a counterpart.
    """
    if isinstance(schema, Schema):
        return schema
    if not isinstance(schema, SupportsArrowSchema):
        what = "a pyarrow or PyIceberg schema"
        if hasattr(schema, "__arrow_c_stream__"):
            raise InvalidArgumentError(
                f"schema must contain columns, as {what}, not rows ({type(schema).__name__}). Pass "
                "pa.table(rows).schema, and append the rows to the table."
            )
        raise InvalidArgumentError(f"schema must be {what}, not {shown(schema)}.")
    columns = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    if len(set(columns.names)) != len(columns.names):
        raise InvalidArgumentError(f"schema contains a column twice: {columns.names}.")
    version: TableVersion = 3 if format_version >= 3 else 2
    converted = visit_pyarrow(
        stored_types(columns, format_version), _ConvertToIcebergWithoutIDs(format_version=version)
    )
    assert isinstance(converted, Schema), "an Arrow schema converts to a schema, not to a type"
    return converted


def stored_types(columns: pa.Schema, format_version: int) -> pa.Schema:
    """The columns in types that Iceberg has and to which the writer casts. Metadata of fields is kept. Raises
    InvalidArgumentError, which lists all other columns with a hint."""
    refused: list[str] = []
    stored = [_stored(field, field.name, format_version, refused) for field in columns]
    if refused:
        raise InvalidArgumentError(f"{'; '.join(refused)}. Nothing was changed.")
    return pa.schema(stored, columns.metadata)


def _stored(field: pa.Field, path: str, format_version: int, refused: list[str]) -> pa.Field:
    """The column in a type that Iceberg has. A column without one is added to `refused`."""

    def part(inner: pa.Field, name: str) -> pa.Field:
        return _stored(inner, f"{path}.{name}", format_version, refused)

    kind: pa.DataType = field.type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _stored(field.with_type(kind.value_type), path, format_version, refused)
    if isinstance(kind, pa.JsonType):
        return _stored(field.with_type(kind.storage_type), path, format_version, refused)
    if pa.types.is_struct(kind) and kind.num_fields:
        return field.with_type(pa.struct([part(inner, inner.name) for inner in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(part(kind.key_field, "key"), part(kind.item_field, "value")))
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType):
        return field.with_type(pa.list_(part(kind.value_field, "element")))
    stored = _stored_primitive(kind, has_nanoseconds=format_version >= 3)
    if advice := _advice(stored, format_version):
        refused.append(f"column {path!r} has the Arrow type {kind}, which is not supported in a table: {advice}")
    return field.with_type(stored)


def _stored_primitive(kind: pa.DataType, *, has_nanoseconds: bool) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" and has_nanoseconds else "us"
        return pa.timestamp(unit, None if kind.tz is None else "UTC")
    if types.is_date64(kind):
        return pa.date32()
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_decimal(kind) and kind.precision <= _DECIMAL_DIGITS_MAX:
        return pa.decimal128(kind.precision, kind.scale)
    if kind == pa.bool8():
        return pa.bool_()
    return _SIGNED.get(kind, kind)


def _advice(stored: pa.DataType, format_version: int) -> str:  # noqa: PLR0911 (one a family)
    """A hint for a type that Iceberg lacks; empty for a type that it has."""
    types = pa.types
    if types.is_null(stored):
        return "" if format_version >= 3 else "give it a type, or create the table with format-version 3"
    if types.is_decimal(stored):
        if stored.precision > _DECIMAL_DIGITS_MAX:
            return f"cast it to a decimal of at most {_DECIMAL_DIGITS_MAX} digits, or to text"
        return "" if stored.scale >= 0 else "cast it to a decimal with a scale of 0 or more"
    if types.is_struct(stored):
        return "Parquet does not support structs without fields; add a field, or omit the column"
    if types.is_duration(stored):
        return "cast it to int64, and name the column by its unit"
    if types.is_interval(stored):
        return "store months, days and nanoseconds as integers, each in a column of its own"
    if types.is_union(stored):
        return "store it as a struct with a field for each type"
    if isinstance(stored, pa.BaseExtensionType):
        return "" if stored == pa.uuid() else f"cast it to its storage, {stored.storage_type}"
    return ""


@once_per_schema
def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of rows that are read: `string`, `binary` and `list` with 32-bit offsets, without field ids in
    the metadata.

    PyIceberg uses the `large_` variants. Parquet files decode to the small ones, and a batch never has 2 GiB of one
    column.
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
