"""Default values of the columns of a new table: PyIceberg 0.12 drops them when it assigns field ids."""

from __future__ import annotations

from typing import Final

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from tableformat.errors import InvalidArgumentError

_FIRST_VERSION: Final = 3


def with_defaults_of(given: Schema, fresh: Schema) -> Schema:
    """The schema `fresh` with the initial and write defaults of `given`, which differs in field ids only."""
    fields = _fields(given.as_struct(), fresh.as_struct())
    return Schema(*fields, schema_id=fresh.schema_id, identifier_field_ids=fresh.identifier_field_ids)


def refuse_early_defaults(schema: Schema, format_version: int) -> None:
    """Raise InvalidArgumentError if a column has an initial default before version 3, whose readers would not apply
    it."""
    if format_version >= _FIRST_VERSION:
        return
    for field in index_by_id(schema).values():
        if field.initial_default is not None:
            raise InvalidArgumentError(
                f"Invalid initial default for {field.name}: it needs format version {_FIRST_VERSION}, and the table is "
                f"of version {format_version}."
            )


def _fields(given: StructType, fresh: StructType) -> list[NestedField]:
    return [
        target.model_copy(
            update={
                "field_type": _with_defaults(source.field_type, target.field_type),
                "initial_default": source.initial_default,
                "write_default": source.write_default,
            }
        )
        for source, target in zip(given.fields, fresh.fields, strict=True)
    ]


def _with_defaults(given: IcebergType, fresh: IcebergType) -> IcebergType:
    match given, fresh:
        case StructType(), StructType():
            return StructType(*_fields(given, fresh))
        case ListType(), ListType():
            return fresh.model_copy(update={"element_type": _with_defaults(given.element_type, fresh.element_type)})
        case MapType(), MapType():
            value_type = _with_defaults(given.value_type, fresh.value_type)
            return fresh.model_copy(
                update={"key_type": _with_defaults(given.key_type, fresh.key_type), "value_type": value_type}
            )
        case _:
            return fresh
