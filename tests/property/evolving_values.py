"""Values of random tables, each at a limit of its type, and conditions on them: as SQL, and as their truth for a row.

Rows are stored by field id, so that a renamed column keeps its values and a column that was dropped and added again has
none.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pandas as pd
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.testing.key_order import sort_key, sort_keys

Values: TypeAlias = Mapping[int, Any]
"""The values of a row or a struct, by field id."""
LONG_TEXT: Final = "\U0010ffff" * 17
_TEXTS: Final = (
    *("", "a", "a\x00", "é", "a" * 16, "a" * 17, "a" * 15 + "\U0001f600z", "\ud7ff" * 17, LONG_TEXT, "it's", "%_"),
)
_BYTES: Final = (b"", b"\x00", b"a", b"\xff" * 16, b"\xff" * 17, b"a" * 16 + b"\xff", b"'\\x")
_DAY: Final = dt.date(2026, 11, 23)
_MOMENTS: Final = (
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2026, 11, 23, 4, 5, 6, 7),
)
_NANOS: Final = (-1, 0, 1, 1_763_869_506_000_000_001)
COLUMN_TYPES: Final = (
    "int",
    "long",
    "float",
    "double",
    "boolean",
    "string",
    "binary",
    "fixed[3]",
    "uuid",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "decimal(9, 2)",
    "decimal(18, 0)",
    "decimal(38, 10)",
)
NANO_TYPES: Final = ("timestamp_ns", "timestamptz_ns")


def values_of(column_type: PrimitiveType) -> Sequence[Any]:  # noqa: PLR0911 (one a type)
    """Values at the limits of a type."""
    match column_type:
        case IntegerType() | LongType():
            return (0, 1, -1, column_type.min, column_type.max)
        case FloatType() | DoubleType():
            return (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 2.0**-149)
        case BooleanType():
            return (True, False)
        case StringType():
            return _TEXTS
        case BinaryType():
            return _BYTES
        case FixedType():
            return tuple(bytes(each) for each in ((0, 0, 0), (0, 0, 1), (127, 255, 255), (128, 0, 0), (255, 255, 255)))
        case UUIDType():
            return tuple(map(uuid.UUID, ("0" * 32, "7" + "f" * 31, "8" + "0" * 31, "f" * 32)))
        case DateType():
            return (dt.date(1, 1, 1), dt.date(1969, 12, 31), _DAY, dt.date(9999, 12, 31))
        case TimeType():
            return (dt.time(0), dt.time(12, 30), dt.time(23, 59, 59, 999_999))
        case TimestampType():
            return (*_MOMENTS, dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))
        case TimestamptzType():
            return tuple(each.replace(tzinfo=dt.UTC) for each in _MOMENTS)
        case TimestampNanoType():
            return tuple(pd.Timestamp(each) for each in _NANOS)
        case TimestamptzNanoType():
            return tuple(pd.Timestamp(each, tz="UTC") for each in _NANOS)
        case DecimalType():
            largest = 10**column_type.precision - 1
            return tuple(_decimal(each, column_type.scale) for each in (0, 1, -1, largest, -largest, largest - 1))
    raise AssertionError(column_type)


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def sql_literal(value: Any, column_type: PrimitiveType) -> str:  # noqa: PLR0911 (one a type)
    """The value in DuckDB's SQL, which the library takes as well."""
    match column_type:
        case BooleanType():
            return str(value).upper()
        case StringType():
            return "'" + value.replace("'", "''") + "'"
        case BinaryType() | FixedType():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case UUIDType():
            return f"'{value}'::UUID"
        case DateType():
            return f"DATE '{value.isoformat()}'"
        case TimeType():
            return f"TIME '{value.isoformat()}'"
        case TimestampType():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case TimestampNanoType():
            return f"'{value.isoformat(sep=' ')}'::TIMESTAMP_NS"
        case TimestamptzNanoType():
            return f"'{value.isoformat(sep=' ')}'"
        case TimestamptzType():
            return f"TIMESTAMPTZ '{value.isoformat(sep=' ')}'"
        case FloatType() | DoubleType():
            return f"'{value}'::DOUBLE" if math.isinf(value) else repr(value)
        case DecimalType():
            return f"{value:f}"
    return str(value)


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL, and what it is of a row."""

    sql: str
    truth: Callable[[Values], bool | None]

    def matches(self, values: Values) -> bool:
        return self.truth(values) is True


@dataclass(frozen=True, slots=True)
class KnownRow:
    number: int
    """No other row has it; an updated row gets another one."""
    values: Values


Rows: TypeAlias = tuple[KnownRow, ...]


def quoted(path: Sequence[NestedField]) -> str:
    return ".".join('"' + each.name.replace('"', '""') + '"' for each in path)


def value_at(values: Values, path: Sequence[NestedField]) -> Any:
    value: Any = values
    for each in path:
        if value is None:
            return None
        value = value.get(each.field_id, each.initial_default)
    return value


def named(value: Any, of: IcebergType) -> Any:
    """A value with field ids, as read in a schema: with names, and without the columns that the schema does not
    have."""
    if value is None:
        return None
    match of:
        case StructType():
            return {
                each.name: named(value.get(each.field_id, each.initial_default), each.field_type) for each in of.fields
            }
        case ListType():
            return [named(each, of.element_type) for each in value]
        case MapType():
            return [(key, named(each, of.value_type)) for key, each in value]
    return value


def rows_in(rows: Rows, schema: Schema) -> list[dict[str, Any]]:
    return [named(row.values, schema.as_struct()) for row in rows]


def leaves(of: StructType) -> Iterator[tuple[NestedField, ...]]:
    """The columns of primitive types, those inside of structs included."""
    for each in of.fields:
        if isinstance(each.field_type, PrimitiveType):
            yield (each,)
        elif isinstance(each.field_type, StructType):
            yield from ((each, *path) for path in leaves(each.field_type))


def condition(pick: random.Random, schema: Schema, rows: Rows, depth: int = 2) -> Condition:
    kind = pick.random()
    if depth and kind < 0.15:
        inner = condition(pick, schema, rows, depth - 1)
        return Condition(f"NOT ({inner.sql})", lambda row: _not(inner.truth(row)))
    if depth and kind < 0.45:
        one, other = (condition(pick, schema, rows, depth - 1) for _ in range(2))
        if kind < 0.3:
            return Condition(f"({one.sql}) AND ({other.sql})", lambda row: _and(one.truth(row), other.truth(row)))
        return Condition(
            f"({one.sql}) OR ({other.sql})",
            lambda row: _not(_and(_not(one.truth(row)), _not(other.truth(row)))),
        )
    return _comparison(pick, pick.choice(list(leaves(schema.as_struct()))), rows)


def _comparison(pick: random.Random, path: tuple[NestedField, ...], rows: Rows) -> Condition:
    column_type, name = path[-1].field_type, quoted(path)
    assert isinstance(column_type, PrimitiveType)
    known = [value for row in rows if not _is_nothing(value := value_at(row.values, path))]
    choices = [value for value in values_of(column_type) if not _is_nothing(value)]

    def literal() -> Any:
        return pick.choice(known) if known and pick.random() < 0.6 else pick.choice(choices)

    operation = pick.choice(("=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN", "IS NULL", "IS NOT NULL", "LIKE"))
    if isinstance(column_type, BooleanType) and operation not in ("=", "<>", "IN"):
        operation = "IS NULL"
    if operation == "LIKE" and not isinstance(column_type, StringType):
        operation = "="
    if operation in ("IS NULL", "IS NOT NULL"):
        return Condition(f"{name} {operation}", lambda row: (value_at(row, path) is None) is (operation == "IS NULL"))
    if operation == "LIKE":
        start = pick.choice(("a", "é", "a" * 16, "\U0010ffff" * 16, "\ud7ff" * 16))
        return Condition(f"{name} LIKE '{start}%'", _of_value(path, lambda value: value.startswith(start)))
    if operation == "IN":
        among = [literal() for _ in range(pick.choice((1, 2, 3)))]
        text = ", ".join(sql_literal(each, column_type) for each in among)
        return Condition(f"{name} IN ({text})", _of_value(path, lambda value: value in among))
    if operation == "BETWEEN":
        low, high = literal(), literal()
        text = f"{name} BETWEEN {sql_literal(low, column_type)} AND {sql_literal(high, column_type)}"
        return Condition(text, _of_value(path, lambda value: sort_key(low) <= sort_key(value) <= sort_key(high)))
    bound = literal()
    compare = {
        "=": lambda value: value == bound,
        "<>": lambda value: value != bound,
        "<": lambda value: sort_key(value) < sort_key(bound),
        "<=": lambda value: sort_key(value) <= sort_key(bound),
        ">": lambda value: sort_key(value) > sort_key(bound),
        ">=": lambda value: sort_key(value) >= sort_key(bound),
    }[operation]
    return Condition(f"{name} {operation} {sql_literal(bound, column_type)}", _of_value(path, compare))


def without_extension(of: pa.DataType) -> pa.DataType:
    """PyArrow builds no UUIDs inside of other types from Python."""
    if isinstance(of, pa.BaseExtensionType):
        return of.storage_type
    if pa.types.is_struct(of):
        return pa.struct([each.with_type(without_extension(each.type)) for each in of])
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return pa.list_(without_extension(of.value_type))
    if pa.types.is_map(of):
        return pa.map_(of.key_type, without_extension(of.item_type))
    return of


def with_bytes(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return value.bytes
        case dict():
            return {name: with_bytes(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(map(with_bytes, value))
    return value


def are_alike(values: Values, others: Values, columns: Sequence[NestedField]) -> bool:
    of, of_others = (sort_keys(value_at(each, (column,)) for column in columns) for each in (values, others))
    return of == of_others


def _is_nothing(value: Any) -> bool:
    """Whether no literal can express the value: null, and NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _of_value(path: tuple[NestedField, ...], truth: Callable[[Any], bool]) -> Callable[[Values], bool | None]:
    def of(row: Values) -> bool | None:
        value = value_at(row, path)
        return None if value is None else truth(value)

    return of


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _and(one: bool | None, other: bool | None) -> bool | None:
    return False if False in (one, other) else None if None in (one, other) else True
