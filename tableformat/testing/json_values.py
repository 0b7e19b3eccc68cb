"""Rows and schemas in JSON, for cases that are data. JSON has fewer types than a table, so the column's type decides.

float, double            number, or "NaN", "Infinity", "-Infinity", "-0.0"
decimal(P, S)            "1.50"
date, time, timestamp    "2026-01-31", "12:00:00", "2026-01-31T12:00:00", timestamptz with its offset
timestamp_ns             nanoseconds since 1970, also for timestamptz_ns
uuid                     "00000000-0000-0000-0000-000000000001"
binary, fixed[L]         hexadecimal digits: "00ff"
struct, list, map        {"field": value}, [value], [[key, value]]
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

_SCALARS: Final[Mapping[type[IcebergType], Callable[[Any], Any]]] = {
    FloatType: float,
    DoubleType: float,
    DecimalType: Decimal,
    DateType: dt.date.fromisoformat,
    TimeType: dt.time.fromisoformat,
    TimestampType: dt.datetime.fromisoformat,
    TimestamptzType: dt.datetime.fromisoformat,
    UUIDType: uuid.UUID,
    BinaryType: bytes.fromhex,
    FixedType: bytes.fromhex,
}
"""Types without a form in JSON. Values of all other types are unchanged."""


def value_from_json(value: Any, value_type: IcebergType) -> Any:
    """The Python value that pyarrow accepts and returns for a column of the type."""
    if value is None:
        return None
    match value_type:
        case StructType():
            return {field.name: value_from_json(value.get(field.name), field.field_type) for field in value_type.fields}
        case ListType():
            return [value_from_json(element, value_type.element_type) for element in value]
        case MapType():
            return [
                (value_from_json(key, value_type.key_type), value_from_json(entry, value_type.value_type))
                for key, entry in value
            ]
    convert = _SCALARS.get(type(value_type))
    return value if convert is None else convert(value)


def type_from_json(value: Any) -> IcebergType:
    """An Iceberg type in its JSON form in table metadata: "long", "decimal(9, 2)", {"type": "struct", ...}."""
    return NestedField.model_validate({"id": 0, "name": "column", "type": value, "required": False}).field_type


def schema_from_json(columns: Mapping[str, Any], required: Sequence[str] = ()) -> Schema:
    """The schema of `{"name": type}` with the field ids of a new table, which start with 1 for the first column."""
    fields = [
        NestedField(sort_key, name, type_from_json(written), required=name in required)
        for sort_key, (name, written) in enumerate(columns.items(), 1)
    ]
    return assign_fresh_schema_ids(Schema(*fields))


def row_from_json(row: Any, schema: Schema, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """One row: a list of values in the order of `columns` (default: the schema's), or an object by column name."""
    names = [field.name for field in schema.fields] if columns is None else list(columns)
    by_name = row if isinstance(row, Mapping) else dict(zip(names, row, strict=True))
    return {name: value_from_json(value, _type_of(schema, name)) for name, value in by_name.items()}


def rows_from_json(rows: Sequence[Any], schema: Schema, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    return [row_from_json(row, schema, columns) for row in rows]


def tuple_from_json(values: Sequence[Any] | None, schema: Schema, columns: Sequence[str]) -> tuple[Any, ...] | None:
    """A bound: values of some leading columns; None stays None."""
    if values is None:
        return None
    types = [_type_of(schema, name) for name in columns]
    typed = [value_from_json(value, value_type) for value, value_type in zip(values, types, strict=False)]
    return tuple(typed) + tuple(values[len(types) :])


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows in the Arrow types of the schema, with field ids in the metadata. By default, `columns` are taken from the
    rows.

    A column that no row has is left out. A column that only some rows have is null in the others.
    """
    names = columns if columns is not None else [f.name for f in schema.fields if any(f.name in row for row in rows)]
    whole = schema_to_pyarrow(schema)
    fields = [whole.field(name).with_nullable(True) for name in names]
    return pa.table([pa.array([row.get(f.name) for row in rows], f.type) for f in fields], schema=pa.schema(fields))


def _type_of(schema: Schema, name: str) -> IcebergType:
    return schema.find_field(name).field_type
