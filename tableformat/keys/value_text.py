"""Parses values in text form, from the command line or a table property, by the type of their column."""

from __future__ import annotations

import csv
import datetime as dt
import math
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

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
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import InvalidArgumentError, UnknownColumnError

NULL_TEXT: Final = r"\N"
"""The text for a null, as in PostgreSQL's COPY and in Hive."""
_BOOLEANS: Final = {"true": True, "false": False}


def parse_value(text: str, name: str, schema: Schema, *, where: str) -> Any:
    """The value of a column, in the form that the library accepts. `\\N` is null.

    Raises UnknownColumnError, in which `where` names the object without the column. Raises InvalidArgumentError, which
    names the column, its type and the text.
    """
    column_type = column_type_of(name, schema, where=where)
    if text == NULL_TEXT:
        return None
    parse, example = _PARSERS.get(type(column_type), (None, ""))
    if parse is None:
        raise InvalidArgumentError(f"column {name!r} is {column_type}; its values cannot be passed as text.")
    try:
        return parse(text)
    except (ValueError, KeyError, InvalidOperation) as error:
        raise InvalidArgumentError(f"{name}={text}: column {name!r} is {column_type}; write {example}.") from error


def parse_tuple(text: str, names: Sequence[str], schema: Schema, *, where: str) -> tuple[Any, ...]:
    """A bound: leading values of the columns `names`. For one column, the text is the value. For several columns it is
    comma-separated, with CSV quoting."""
    if len(names) == 1:
        return (parse_value(text, names[0], schema, where=where),)
    values = next(csv.reader([text], strict=True), [])
    if len(values) > len(names):
        raise InvalidArgumentError(
            f"{text!r} has {len(values)} values for the columns ({', '.join(names)}). Quote values that contain a "
            "comma."
        )
    return tuple(parse_value(value, name, schema, where=where) for value, name in zip(values, names, strict=False))


def column_type_of(name: str, schema: Schema, *, where: str) -> IcebergType:
    """The type of a top-level column."""
    for field in schema.fields:
        if field.name == name:
            return field.field_type
    raise UnknownColumnError(name, [field.name for field in schema.fields], where=where)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError("too large")
    return value


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError("not finite")
    return value


def _zoned(text: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError("no zone")
    return value


def _unzoned(text: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError("a zone")
    return value


def _hexadecimal(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


_WHOLE: Final = "a whole number such as 42"
_FRACTION: Final = "a number such as 1.5"
_ZONED: Final = "a time with its zone such as 2026-01-31T12:00:00+00:00"
_UNZONED: Final = "a time without a zone such as 2026-01-31T12:00:00"
_HEXADECIMAL: Final = "hexadecimal digits such as 00ff"
_PARSERS: Final[dict[type, tuple[Callable[[str], Any], str]]] = {
    BooleanType: (lambda text: _BOOLEANS[text.lower()], "true or false"),
    IntegerType: (int, _WHOLE),
    LongType: (int, _WHOLE),
    FloatType: (_number, _FRACTION),
    DoubleType: (_number, _FRACTION),
    DecimalType: (_decimal, _FRACTION),
    DateType: (dt.date.fromisoformat, "a date such as 2026-01-31"),
    TimeType: (dt.time.fromisoformat, "a time of day such as 12:30:00"),
    TimestampType: (_unzoned, _UNZONED),
    TimestampNanoType: (_unzoned, _UNZONED),
    TimestamptzType: (_zoned, _ZONED),
    TimestamptzNanoType: (_zoned, _ZONED),
    StringType: (str, "text"),
    BinaryType: (_hexadecimal, _HEXADECIMAL),
    FixedType: (_hexadecimal, _HEXADECIMAL),
    UUIDType: (uuid.UUID, "a UUID such as 6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
}
"""The parser and an example for each type."""
