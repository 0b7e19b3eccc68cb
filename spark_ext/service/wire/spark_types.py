"""Conversion of types between Iceberg and Spark, in Spark's JSON form."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

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
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError

SparkType: TypeAlias = "str | dict[str, Any]"
"""A data type, in the form of Spark's `DataType.json`."""

FIELD_ID: Final = "parquet.field.id"
IS_UUID: Final = "tableformat.uuid"
"""Metadata of a string column that is stored as sixteen bytes in data files."""
_COMMENT: Final = "comment"
_CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"
_EXISTS_DEFAULT: Final = "EXISTS_DEFAULT"
_BOUNDED_TEXT: Final = re.compile(r"(?:var)?char\((\d+)\)")
_told: Final[set[tuple[str, str]]] = set()
"""Columns with their types for which this process has logged a warning."""
_INSTEAD: Final = {
    "variant": "store the value as STRING, with to_json and parse_json",
    "interval": "store it as a number, or as two times",
    "timestamp_ntz(": "create the table from Python with nanoseconds, and read and write its rows there",
    "timestamp_ltz(": "create the table from Python with nanoseconds, and read and write its rows there",
    "geometry": "store it as BINARY in WKB format",
    "geography": "store it as BINARY in WKB format",
}
"""Prefixes of type names that tables do not support, and the alternative."""
logger = logging.getLogger(__name__)
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(-?\d+)\)")
_TO_SPARK: Final[dict[type[IcebergType], str]] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: "date",
    TimeType: "time(6)",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
    StringType: "string",
    BinaryType: "binary",
    FixedType: "binary",
}
_FROM_SPARK: Final[dict[str, PrimitiveType]] = {
    "boolean": BooleanType(),
    "byte": IntegerType(),
    "short": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "time(6)": TimeType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "string": StringType(),
    "binary": BinaryType(),
}


def spark_schema(schema: Schema) -> dict[str, Any]:
    """The schema as Spark's JSON, with the field id, comment and defaults of each field in its metadata.

    Raises UnsupportedFeatureError, which names a column without a Spark type.
    """
    return {"type": "struct", "fields": [_top_level(field) for field in schema.fields]}


def _top_level(field: NestedField) -> dict[str, Any]:
    if not isinstance(field.field_type, UUIDType):
        return _field(field)
    return {
        "name": field.name,
        "type": "string",
        "nullable": not field.required,
        "metadata": {**_metadata(field), IS_UUID: True},
    }


def spark_type(iceberg_type: IcebergType, column: str) -> SparkType:
    """The Spark type. Raises UnsupportedFeatureError, which names the column, for a type without a counterpart in
    Spark."""
    match iceberg_type:
        case StructType(fields=fields):
            return _struct(fields)
        case ListType(element_type=element, element_required=required):
            return {"type": "array", "elementType": spark_type(element, column), "containsNull": not required}
        case MapType(key_type=key, value_type=value, value_required=required):
            return {
                "type": "map",
                "keyType": spark_type(key, column),
                "valueType": spark_type(value, column),
                "valueContainsNull": not required,
            }
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
    name = _TO_SPARK.get(type(iceberg_type))
    if name is None:
        nested = " inside another type" if isinstance(iceberg_type, UUIDType) else ""
        raise UnsupportedFeatureError(
            f"column {column!r} has the type {iceberg_type}{nested}, which the Spark catalog cannot read. Read and "
            "write the table from Python."
        )
    return name


_BY_BYTES: Final = "string collate UTF8_BINARY"
"""The form of a plain string in SHOW CREATE TABLE of Spark 4.2 and newer."""


def iceberg_type(spark: SparkType, column: str) -> IcebergType:
    """The Iceberg type. Nested fields get placeholder ids, which the table replaces with its own.

    Raises InvalidArgumentError, which names the column, for a type without a counterpart in Iceberg.
    """
    if isinstance(spark, str):
        return _without_parts(spark, column)
    match spark["type"]:
        case "struct":
            return StructType(*(_nested(field, f"{column}.{field['name']}") for field in spark["fields"]))
        case "array":
            return ListType(
                element_id=0,
                element_type=iceberg_type(spark["elementType"], f"{column}.element"),
                element_required=not spark["containsNull"],
            )
        case "map":
            return MapType(
                key_id=0,
                key_type=iceberg_type(spark["keyType"], f"{column}.key"),
                value_id=0,
                value_type=iceberg_type(spark["valueType"], f"{column}.value"),
                value_required=not spark["valueContainsNull"],
            )
    raise _no_type(spark["type"], column)


def _without_parts(spark: str, column: str) -> PrimitiveType:
    decimal = _DECIMAL.fullmatch(spark)
    if decimal:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    if spark == _BY_BYTES:
        return _FROM_SPARK["string"]
    if _BOUNDED_TEXT.fullmatch(spark):
        return _text_without_bound(spark, column)
    if spark not in _FROM_SPARK:
        raise _no_type(spark, column)
    return _FROM_SPARK[spark]


def _no_type(spark: str, column: str) -> InvalidArgumentError:
    instead = next((f": {what}" for begin, what in _INSTEAD.items() if spark.startswith(begin)), "")
    return InvalidArgumentError(f"column {column!r}: tables do not support Spark's type {spark}{instead}.")


def _text_without_bound(spark: str, column: str) -> PrimitiveType:
    """SP-37: CHAR(n) and VARCHAR(n) become STRING, as in Iceberg. A warning is logged once."""
    if (column, spark) not in _told:
        _told.add((column, spark))
        bound = spark.partition("(")[2].rstrip(")")
        logger.warning(
            "column %r: %s is stored as STRING, without a length limit. To enforce the length, add a constraint: "
            "CHECK (char_length(%s) <= %s).",
            column,
            spark,
            column,
            bound,
        )
    return StringType()


def _nested(field: dict[str, Any], column: str) -> NestedField:
    return NestedField(
        field_id=0,
        name=field["name"],
        field_type=iceberg_type(field["type"], column),
        required=not field["nullable"],
        doc=field.get("metadata", {}).get(_COMMENT),
    )


def _struct(fields: tuple[NestedField, ...]) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(field) for field in fields]}


def _field(field: NestedField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": spark_type(field.field_type, field.name),
        "nullable": not field.required,
        "metadata": _metadata(field),
    }


def _metadata(field: NestedField) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: field.field_id}
    if field.doc:
        metadata[_COMMENT] = field.doc
    if field.initial_default is not None:
        metadata[_EXISTS_DEFAULT] = sql_literal(field.initial_default, field.field_type)
    if field.write_default is not None:
        metadata[_CURRENT_DEFAULT] = sql_literal(field.write_default, field.field_type)
    return metadata


def default_value(literal: Mapping[str, Any], column: IcebergType, name: str) -> Any:
    """The value of a DEFAULT for the column with this type and name. Spark has already folded the expression to a
    literal.

    Raises InvalidArgumentError for a value that a schema cannot store: a nested value, or an expression that is not
    constant.
    """
    if "literal" not in literal or (literal["literal"] is not None and not isinstance(column, PrimitiveType)):
        raise InvalidArgumentError(
            f"column {name!r}: the DEFAULT of a {column} is NULL; only single values are supported."
        )
    text = literal["literal"]
    return None if text is None else _DEFAULTS.get(type(column), str)(text)


def sql_literal(value: Any, column: IcebergType) -> str:
    """A default as SQL with the type of the column. `value` is in the form of PyIceberg's schema."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'" if isinstance(column, StringType) else f"CAST('{escaped}' AS {_sql_type(column)})"


def _sql_type(column: IcebergType) -> str:
    name = spark_type(column, "default")
    assert isinstance(name, str), "only primitive types have defaults"
    return name


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULTS: Final[dict[type[IcebergType], Callable[[str], Any]]] = {
    BooleanType: lambda text: text == "true",
    IntegerType: int,
    LongType: int,
    FloatType: float,
    DoubleType: float,
    DecimalType: Decimal,
    DateType: lambda days: _EPOCH.date() + timedelta(days=int(days)),
    TimestamptzType: lambda micros: _EPOCH + timedelta(microseconds=int(micros)),
    TimestampType: lambda micros: _EPOCH.replace(tzinfo=None) + timedelta(microseconds=int(micros)),
    BinaryType: base64.b64decode,
    FixedType: base64.b64decode,
}
