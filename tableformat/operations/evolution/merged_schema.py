"""Adds columns of new rows to a table, and widens its types to theirs (SP-82)."""

from __future__ import annotations

from typing import Final

from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
)

_PROMOTIONS: Final = {(IntegerType, LongType), (FloatType, DoubleType)}
"""Type promotions that Iceberg allows in versions 2 and 3, without decimals."""


def merge_columns(update: UpdateSchema, stored: StructType, given: StructType) -> None:
    """Stage in `update` the columns of `given`, the rows, that are missing in `stored`, the table.

    New columns are optional and come last, also in structs. A type is widened if Iceberg can promote it: `int` to
    `long`, `float` to `double`, decimals to a greater precision. No column is dropped, renamed or made optional.
    """
    _merge_structs(update, (), stored, given)


def _merge_structs(update: UpdateSchema, path: tuple[str, ...], stored: StructType, given: StructType) -> None:
    fields = {field.name: field for field in stored.fields}
    for field in given.fields:
        name = (*path, field.name)
        if field.name in fields:
            _merge_types(update, name, fields[field.name].field_type, field.field_type)
        else:
            update.add_column(name, _optional(field.field_type))


def _merge_types(update: UpdateSchema, path: tuple[str, ...], stored: IcebergType, given: IcebergType) -> None:
    if isinstance(stored, StructType) and isinstance(given, StructType):
        _merge_structs(update, path, stored, given)
    elif isinstance(stored, ListType) and isinstance(given, ListType):
        _merge_types(update, (*path, "element"), stored.element_type, given.element_type)
    elif isinstance(stored, MapType) and isinstance(given, MapType):
        _merge_types(update, (*path, "value"), stored.value_type, given.value_type)
    elif isinstance(stored, PrimitiveType) and isinstance(given, PrimitiveType) and _is_wider(stored, given):
        update.update_column(path, given)


def _is_wider(stored: PrimitiveType, given: PrimitiveType) -> bool:
    """Whether `given` can hold every value of `stored`, and Iceberg can promote it. All other values are cast, or
    rejected, when the rows are written."""
    if isinstance(stored, DecimalType) and isinstance(given, DecimalType):
        return given.scale == stored.scale and given.precision > stored.precision
    return (type(stored), type(given)) in _PROMOTIONS


def _optional(kind: IcebergType) -> IcebergType:
    """The type with optional fields in its structs, because rows of older files have no values for them."""
    if isinstance(kind, StructType):
        fields = (
            NestedField(each.field_id, each.name, _optional(each.field_type), required=False, doc=each.doc)
            for each in kind.fields
        )
        return StructType(*fields)
    if isinstance(kind, ListType):
        return ListType(kind.element_id, _optional(kind.element_type), element_required=False)
    if isinstance(kind, MapType):
        return MapType(kind.key_id, kind.key_type, kind.value_id, _optional(kind.value_type), value_required=False)
    return kind
