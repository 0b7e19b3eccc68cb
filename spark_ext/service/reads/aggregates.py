"""COUNT, MIN and MAX over all rows of a table, from metadata, where it has the exact answer.

COUNT(*) needs the row counts of the files and how many of their rows are deleted, by their positions. COUNT(c), MIN(c)
and MAX(c) come from the statistics of the files, which know nothing of deletes: a file with deleted rows has no exact
answer, and then Spark reads the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

from spark_ext.service.reads.scans import positions_of_tasks
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow
from spark_ext.service.wire.spark_types import spark_type
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile

Aggregate: TypeAlias = Mapping[str, Any]
"""A function and its column: {"function": "min", "column": ["a"]}."""

_EXACT_BOUNDS: Final = (IntegerType, LongType, DateType, DecimalType, TimestampType, TimestamptzType)
"""Types whose bounds are values that occur: no truncation, no NaN, no negative zero."""


class _UnknownError(Exception):
    """Metadata does not have the exact answer."""


@method("aggregate")
def aggregate(session: Session, request: Request) -> Answer:
    """SP-4: one row, one column a function, and its Spark schema; a null schema when metadata has no exact answer."""
    pin = Pin.from_json(request.arguments["pin"])
    functions: list[Aggregate] = request.arguments["functions"]
    schema = session.view(pin).schema
    try:
        columns = [_column(session, pin, schema, function) for function in functions]
    except _UnknownError:
        return Answer({"schema": None})
    names = [f"aggregate {number}" for number in range(len(columns))]
    row = pa.table(columns, names=names)
    described = spark_schema_of_arrow(row.schema)
    for field, function in zip(described["fields"], functions, strict=True):
        if function["function"] in _BOUNDS:
            column = _field(schema, function)
            field["type"] = spark_type(column.field_type, column.name)
    return Answer({"schema": described}, [arrow_stream(row)])


def _column(session: Session, pin: Pin, schema: Schema, function: Aggregate) -> pa.Array:
    if function["function"] == "count-star":
        return pa.array([_row_count(session, pin)], pa.int64())
    column = _field(schema, function)
    files = _files_without_deletes(session, pin)
    if function["function"] == "count":
        return pa.array([sum(file.record_count - _null_count(file, column) for file in files)], pa.int64())
    value = _BOUNDS[function["function"]](files, column)
    return pa.array([value], arrow_schema(Schema(column)).field(0).type)


def _row_count(session: Session, pin: Pin) -> int:
    plan = session.plan(pin, AlwaysTrue())
    context = session.merge_context(session.view(pin))
    deleted = positions_of_tasks(plan.tasks, context)
    return sum(task.data_file.record_count for task in plan.tasks) - sum(map(len, deleted))


def _files_without_deletes(session: Session, pin: Pin) -> list[DataFile]:
    plan = session.plan(pin, AlwaysTrue())
    if any(task.has_deletes for task in plan.tasks):
        raise _UnknownError
    return [task.data_file for task in plan.tasks]


def _field(schema: Schema, function: Aggregate) -> NestedField:
    """A top-level primitive column."""
    name = function["column"]
    field = next((field for field in schema.fields if [field.name] == name), None)
    if field is None or not isinstance(field.field_type, PrimitiveType):
        raise _UnknownError
    return field


def _null_count(file: DataFile, column: NestedField) -> int:
    counts = file.null_value_counts or {}
    if column.field_id not in counts:
        raise _UnknownError
    return counts[column.field_id]


def _lowest(files: Sequence[DataFile], column: NestedField) -> Any:
    return min(_values(files, column, lambda file: file.lower_bounds), default=None)


def _highest(files: Sequence[DataFile], column: NestedField) -> Any:
    return max(_values(files, column, lambda file: file.upper_bounds), default=None)


def _values(
    files: Sequence[DataFile], column: NestedField, bounds_of: Callable[[DataFile], Mapping[int, bytes] | None]
) -> list[Any]:
    """The column's bound in each file that has a value of it."""
    if not isinstance(column.field_type, _EXACT_BOUNDS):
        raise _UnknownError
    values = []
    for file in files:
        bound = (bounds_of(file) or {}).get(column.field_id)
        if bound is not None:
            values.append(from_bound(bound, column.field_type))
        elif _null_count(file, column) < file.record_count:
            raise _UnknownError
    return values


_BOUNDS: Final[dict[str, Callable[[Sequence[DataFile], NestedField], Any]]] = {"min": _lowest, "max": _highest}
