"""Constants in SQL text, and the columns with which they can be compared.

The rules are stricter than those of engines that cast silently: a string is not a number, and a number is not a date.
Unambiguous values are accepted: a string for dates, times, UUIDs and binary, a date for a timestamp.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final

from pyiceberg.expressions import literals as iceberg
from pyiceberg.expressions.literals import Literal
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
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from sqlglot import exp

from tableformat.errors import InvalidPredicateError
from tableformat.filters.bound_filter import is_nan_value
from tableformat.filters.literals import (
    NANO_TYPES,
    ZONED_TYPES,
    Fitted,
    LocalTime,
    blob_bytes,
    fit,
    fit_double_among_floats,
    nearest_float,
    time_micros,
    timestamp_nanos,
    with_offset,
)

_NUMBERS: Final = ("number",)
_INSTANTS: Final = ("timestamp", "timestamptz", "date", "string")
_ACCEPTED: Final[dict[type[IcebergType], tuple[str, ...]]] = {
    BooleanType: ("boolean",),
    IntegerType: _NUMBERS,
    LongType: _NUMBERS,
    FloatType: _NUMBERS,
    DoubleType: _NUMBERS,
    DecimalType: _NUMBERS,
    StringType: ("string",),
    DateType: ("date", "string", "timestamp"),
    TimeType: ("time", "string"),
    TimestampType: ("timestamp", "date", "string"),
    TimestampNanoType: ("timestamp", "date", "string"),
    TimestamptzType: _INSTANTS,
    TimestamptzNanoType: _INSTANTS,
    UUIDType: ("uuid", "string"),
    BinaryType: ("blob", "string"),
    FixedType: ("blob", "string"),
}
_KIND_OF_CAST: Final = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMP: "timestamp",
    exp.DataType.Type.TIMESTAMPNTZ: "timestamp",
    exp.DataType.Type.TIMESTAMP_S: "timestamp",
    exp.DataType.Type.TIMESTAMP_MS: "timestamp",
    exp.DataType.Type.TIMESTAMP_NS: "timestamp",
    exp.DataType.Type.TIMESTAMPTZ: "timestamptz",
    exp.DataType.Type.TIME: "time",
    exp.DataType.Type.VARBINARY: "blob",
    exp.DataType.Type.BINARY: "blob",
    exp.DataType.Type.UUID: "uuid",
    exp.DataType.Type.VARCHAR: "string",
    exp.DataType.Type.TEXT: "string",
    exp.DataType.Type.TINYINT: "integer",
    exp.DataType.Type.SMALLINT: "integer",
    exp.DataType.Type.INT: "integer",
    exp.DataType.Type.BIGINT: "integer",
    exp.DataType.Type.DECIMAL: "decimal",
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "float",
    exp.DataType.Type.BOOLEAN: "boolean",
}
_BITS: Final = {
    exp.DataType.Type.TINYINT: 8,
    exp.DataType.Type.SMALLINT: 16,
    exp.DataType.Type.INT: 32,
    exp.DataType.Type.BIGINT: 64,
}
_DIGITS_OF_SECONDS: Final = {exp.DataType.Type.TIMESTAMP_S: 0, exp.DataType.Type.TIMESTAMP_MS: 3}
_DECIMAL_OF_SQL: Final = (18, 3)
"""Precision and scale of a DECIMAL without them."""
_EXAMPLES: Final[dict[type[IcebergType], str]] = {
    BooleanType: "TRUE",
    StringType: "'text'",
    DateType: "DATE '2024-01-31'",
    TimeType: "TIME '12:30:00'",
    TimestampType: "TIMESTAMP '2024-01-31 12:30:00'",
    TimestampNanoType: "TIMESTAMP '2024-01-31 12:30:00'",
    TimestamptzType: "TIMESTAMPTZ '2024-01-31 12:30:00+00:00'",
    TimestamptzNanoType: "TIMESTAMPTZ '2024-01-31 12:30:00+00:00'",
    UUIDType: "'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
    BinaryType: "'\\x00\\xFF'::BLOB",
    FixedType: "'\\x00\\xFF'::BLOB",
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal as written."""

    kind: str
    """null, boolean, number, string, date, time, timestamp, timestamptz, uuid or blob."""
    value: Any
    """bool, int, Decimal or float; for all other kinds the text between the quotes."""
    text: str
    """The original SQL, for messages."""
    float_bits: int | None = None
    """64 for a DOUBLE, 32 for a FLOAT; None for other numbers, which take the type of the column."""

    @property
    def is_null(self) -> bool:
        return self.kind == "null"


def constant_of(node: exp.Expr) -> Constant | None:
    """The constant for a SQL node; None if the node is not a constant. Raises InvalidPredicateError for a cast that
    literals do not have."""
    text = _text(node)
    constant: Constant | None = None
    if isinstance(node, exp.Paren):
        constant = constant_of(node.this)
    elif isinstance(node, exp.Null):
        constant = Constant("null", None, text)
    elif isinstance(node, exp.Boolean):
        constant = Constant("boolean", bool(node.this), text)
    elif isinstance(node, exp.Literal) and node.is_string:
        constant = Constant("string", node.this, text)
    elif isinstance(node, exp.Literal):
        constant = Constant("number", _number(node.this, text), text, 64 if "e" in text.lower() else None)
    elif isinstance(node, exp.Neg):
        inner = constant_of(node.this)
        if inner is not None and inner.kind == "number":
            constant = replace(inner, value=_negated(inner.value), text=text)
    elif isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        inner = constant_of(node.this)
        constant = None if inner is None else _cast(inner, node.to, text)
    return constant


def _text(node: exp.Expr) -> str:
    """The SQL of the node. For a list of thousands of literals, generating the SQL takes longer than parsing it."""
    if not isinstance(node, exp.Literal):
        return node.sql(dialect="duckdb")
    text: str = node.this
    return "'" + text.replace("'", "''") + "'" if node.is_string else text


def fit_constant(
    constant: Constant, column_type: IcebergType, name: str, local_time: LocalTime | None = None
) -> Fitted:
    """The constant as a value of the column's type. Raises InvalidPredicateError, which names column, type and literal.
    Times without an offset are UTC, or converted by `local_time`."""
    accepted = _ACCEPTED.get(type(column_type), ())
    if constant.kind not in accepted or not isinstance(column_type, PrimitiveType):
        example = _EXAMPLES.get(type(column_type))
        hint = f" Write {example}, for example." if example else ""
        kind = "" if constant.kind in ("boolean", "null") else f", a {constant.kind}"
        raise InvalidPredicateError(
            f"column {name!r} of type {column_type} cannot be compared with {constant.text}{kind}.{hint}"
        )
    if constant.kind == "number" and is_nan_value(constant.value):
        return _fit_nan(column_type)
    if constant.float_bits == 64 and isinstance(column_type, FloatType):
        return fit_double_among_floats(float(constant.value))
    if constant.float_bits == 32 and isinstance(column_type, DoubleType):
        constant = replace(constant, value=nearest_float(float(constant.value)))
    try:
        if local_time is not None and isinstance(column_type, ZONED_TYPES):
            kind = "string" if constant.kind == "string" else "timestamptz"
            constant = replace(constant, kind=kind, value=with_offset(constant.value, local_time))
        return fit(_literal(constant, column_type), column_type)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidPredicateError(
            f"column {name!r} of type {column_type} cannot be compared with {constant.text}: {error}."
        ) from error


def _fit_nan(column_type: PrimitiveType) -> Fitted:
    """PyIceberg has no literal for NaN. It is greater than every number, and so greater than all values of types
    without NaN."""
    if isinstance(column_type, (FloatType, DoubleType)):
        return Fitted(math.nan, exact=True)
    return fit(iceberg.DoubleLiteral(math.inf), column_type)


def _literal(constant: Constant, column_type: PrimitiveType) -> Literal[Any]:
    """Timestamps have nanosecond precision. A timestamp with an offset is converted to UTC."""
    if constant.kind in ("timestamp", "timestamptz"):
        nanos = timestamp_nanos(constant.value, zoned=isinstance(column_type, ZONED_TYPES))
        if isinstance(column_type, NANO_TYPES):
            return iceberg.LongLiteral(nanos)
        micros, rest = divmod(nanos, 1000)
        if rest:
            raise ValueError("the column has microseconds, but the literal has nanoseconds")
        return iceberg.TimestampLiteral(micros)
    if constant.kind == "date" and not isinstance(column_type, DateType):
        return iceberg.literal(datetime.combine(date.fromisoformat(constant.value), datetime.min.time(), UTC))
    if constant.kind == "time":
        return iceberg.TimeLiteral(time_micros(constant.value))
    if constant.kind == "blob":
        return iceberg.BinaryLiteral(blob_bytes(constant.value))
    return iceberg.literal(constant.value)


def _negated(number: int | Decimal) -> int | Decimal:
    """FM-29: `-` rounds decimals to 28 digits."""
    return number.copy_negate() if isinstance(number, Decimal) else -number


def _number(text: str, sql: str) -> int | Decimal:
    try:
        return int(text) if text.isdigit() else Decimal(text)
    except (InvalidOperation, ValueError) as error:
        raise InvalidPredicateError(f"{sql} is not a number.") from error


def _cast(inner: Constant, to: exp.DataType, text: str) -> Constant:
    """A typed literal such as DATE '2024-01-31' or 'NaN'::DOUBLE. Other casts would need an engine."""
    kind = _KIND_OF_CAST.get(to.this)
    if inner.is_null:
        return inner
    float_bits = (32 if to.this is exp.DataType.Type.FLOAT else 64) if kind == "float" else None
    if inner.kind == "number" and kind in ("integer", "decimal", "float"):
        _refuse_other_number(inner, kind, to, text)
        return Constant("number", inner.value, text, float_bits)
    if inner.kind == "string" and kind == "float":
        try:
            return Constant("number", float(inner.value), text, float_bits)
        except ValueError as error:
            raise InvalidPredicateError(f"{text} is not a number.") from error
    if inner.kind == "string" and to.this in _DIGITS_OF_SECONDS:
        fraction = inner.value.partition(".")[2]
        if re.match(rf"\d{{{_DIGITS_OF_SECONDS[to.this]}}}0*[1-9]", fraction):
            raise InvalidPredicateError(f"{text} rounds a time; write the exact digits.")
    if inner.kind == "string" and kind not in (None, "integer", "decimal", "boolean"):
        return Constant(kind, inner.value, text)
    if inner.kind == kind:
        return Constant(inner.kind, inner.value, text)
    raise InvalidPredicateError(f"{text} is not a literal that a filter supports; write the value in its own type.")


def _refuse_other_number(inner: Constant, kind: str, to: exp.DataType, text: str) -> None:
    """Raise InvalidPredicateError for a cast that changes the number, or has no result."""
    value = inner.value
    if kind == "integer":
        if value != int(value):
            raise InvalidPredicateError(f"{text} rounds a number; write the whole number instead.")
        limit = 1 << (_BITS[to.this] - 1)
        is_held = -limit <= value < limit
    elif kind == "decimal":
        sizes = [int(part.name) for part in to.expressions]
        precision, scale = (*sizes, 0)[:2] if sizes else _DECIMAL_OF_SQL
        unscaled = Fraction(value) * 10**scale
        if unscaled.denominator != 1:
            raise InvalidPredicateError(f"{text} rounds a number; write the exact digits.")
        is_held = abs(unscaled) < 10**precision
    else:
        is_held = to.this is not exp.DataType.Type.FLOAT or math.isfinite(nearest_float(float(value)))
    if not is_held:
        raise InvalidPredicateError(f"{text} is out of the range of its type.")
