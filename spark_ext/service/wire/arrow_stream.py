"""Arrow tables in the form that `ArrowRows` of the Java side reads: Spark's schema and an Arrow stream of the same
columns."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

from spark_ext.service.wire.spark_types import SparkType
from tableformat.errors import UnsupportedFeatureError

_PRIMITIVES: Final[tuple[tuple[Any, str, pa.DataType | None], ...]] = (
    (pat.is_boolean, "boolean", None),
    (pat.is_int8, "integer", pa.int32()),
    (pat.is_int16, "integer", pa.int32()),
    (pat.is_int32, "integer", None),
    (pat.is_int64, "long", None),
    (pat.is_float32, "float", None),
    (pat.is_float64, "double", None),
    (pat.is_date32, "date", None),
    (pat.is_string, "string", None),
    (pat.is_large_string, "string", pa.string()),
    (pat.is_binary, "binary", None),
    (pat.is_large_binary, "binary", pa.binary()),
    (pat.is_fixed_size_binary, "binary", pa.binary()),
    (lambda arrow: isinstance(arrow, pa.UuidType), "binary", pa.binary()),
    (pat.is_null, "void", None),
)
"""A type test, Spark's type, and the Arrow type from which Spark reads it, if that is a different one."""


def arrow_stream(table: pa.Table) -> pa.Buffer:
    """The table as an Arrow stream, with the types of `spark_schema_of_arrow`."""
    cast = table.cast(pa.schema([field.with_type(_readable(field.type)) for field in table.schema]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, cast.schema) as writer:
        writer.write_table(cast)
    return sink.getvalue()


def spark_schema_of_arrow(schema: pa.Schema) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": spark_type_of_arrow(field.type, field.name),
                "nullable": field.nullable,
                "metadata": {},
            }
            for field in schema
        ],
    }


def spark_type_of_arrow(arrow: pa.DataType, column: str) -> SparkType:
    """The Spark type of a column. Raises UnsupportedFeatureError, which names the column."""
    if pat.is_struct(arrow):
        return spark_schema_of_arrow(pa.schema(list(arrow)))
    if pat.is_list(arrow) or pat.is_large_list(arrow):
        return {"type": "array", "elementType": spark_type_of_arrow(arrow.value_type, column), "containsNull": True}
    if pat.is_map(arrow):
        key, value = spark_type_of_arrow(arrow.key_type, column), spark_type_of_arrow(arrow.item_type, column)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    name = _primitive_name(arrow)
    if name is None:
        raise UnsupportedFeatureError(f"column {column!r} has the Arrow type {arrow}, which Spark does not support.")
    return name


def _primitive_name(arrow: pa.DataType) -> str | None:
    if pat.is_timestamp(arrow):
        return "timestamp_ntz" if arrow.tz is None else "timestamp"
    if pat.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return next((name for is_type, name, _ in _PRIMITIVES if is_type(arrow)), None)


def _readable(arrow: pa.DataType) -> pa.DataType:
    """The type in which Spark's Arrow reader accepts the column."""
    if pat.is_struct(arrow):
        return pa.struct([field.with_type(_readable(field.type)) for field in arrow])
    if pat.is_list(arrow) or pat.is_large_list(arrow):
        return pa.list_(arrow.value_field.with_type(_readable(arrow.value_type)))
    if pat.is_map(arrow):
        key, value = arrow.key_field, arrow.item_field
        return pa.map_(key.with_type(_readable(key.type)), value.with_type(_readable(value.type)))
    if pat.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    for is_type, _, readable in _PRIMITIVES:
        if readable is not None and is_type(arrow):
            return readable
    return arrow
