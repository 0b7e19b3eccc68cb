"""COUNT, MIN and MAX over the rows of a table, from metadata, if the exact answer is known.

COUNT(*) needs the row counts of the files and the number of their deleted rows, from the deleted positions. Spark
reads the rows of tables with pending range or equality deletes, whose positions are not known. COUNT(c),
MIN(c) and MAX(c) come from the statistics of the files, which ignore deletes. If rows were deleted, they are exact only
if those rows cannot matter: COUNT(c) of a file without nulls, or MIN(c) if another file has a value that is at most as
high. Otherwise Spark reads the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from spark_ext.service.reads.appended_files import appended_files
from spark_ext.service.reads.key_deletes import has_key_deletes
from spark_ext.service.reads.scans import decided_predicates, plan_of, positions_of_tasks
from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.arrow_stream import arrow_stream, spark_schema_of_arrow
from spark_ext.service.wire.spark_types import spark_type
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, null_count

Aggregate: TypeAlias = Mapping[str, Any]
"""A function and its column: {"function": "min", "column": ["a", "b"]} for the field b of a struct a."""

_FLOATS: Final = (FloatType, DoubleType)
_EXACT_BOUNDS: Final = (
    BooleanType,
    IntegerType,
    LongType,
    *_FLOATS,
    DateType,
    DecimalType,
    TimestampType,
    TimestamptzType,
)
"""Types whose bounds are values that occur, not truncated ones. Floats are exact except for zeros
(`_lowest_or_highest`)."""


class _UnknownError(Exception):
    """Metadata does not have the exact answer."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A data file and the number of its deleted rows. The other rows count."""

    file: DataFile
    deleted_count: int

    @property
    def count(self) -> int:
        return self.file.record_count - self.deleted_count


@method("aggregate")
def aggregate(session: Session, request: Request) -> Answer:
    """SP-4: one row with a column for each function, and its Spark schema. The schema is null if metadata has no exact
    answer."""
    pin = Pin.from_json(request.arguments["pin"])
    functions: list[Aggregate] = request.arguments["functions"]
    schema = session.view(pin).schema
    try:
        rows = _rows(session, pin, request)
        columns = [_column(rows, schema, function) for function in functions]
    except _UnknownError:
        return Answer({"schema": None})
    row = pa.table(columns, names=[_name(function) for function in functions])
    described = spark_schema_of_arrow(row.schema)
    for field, function in zip(described["fields"], functions, strict=True):
        if function["function"] in _EXTREMES:
            column = _field(schema, function)
            field["type"] = spark_type(column.field_type, column.name)
    return Answer({"schema": described}, [arrow_stream(row)])


def _name(function: Aggregate) -> str:
    """The name that EXPLAIN displays."""
    if function["function"] == "count-star":
        return "count(*)"
    return f"{function['function']}({'.'.join(function['column'])})"


def _rows(session: Session, pin: Pin, request: Request) -> list[_Rows]:
    view = session.view(pin)
    if (appends := request.arguments.get("appends")) is not None:
        return [_Rows(file, 0) for file in appended_files(view, appends)]
    if len(decided_predicates(session, request)) < len(request.arguments["predicates"]):
        raise _UnknownError
    plan = plan_of(session, request)
    if any(has_key_deletes(task) for task in plan.tasks):
        # Only the rows tell how many of them a range or an equality delete reaches.
        raise _UnknownError
    deleted = positions_of_tasks(plan.tasks, session.merge_context(view))
    return [_Rows(task.data_file, len(each)) for task, each in zip(plan.tasks, deleted, strict=True)]


def _column(rows: Sequence[_Rows], schema: Schema, function: Aggregate) -> pa.Array:
    if function["function"] == "count-star":
        return pa.array([sum(each.count for each in rows)], pa.int64())
    column = _field(schema, function)
    if function["function"] == "count":
        return pa.array([sum(_value_count(each, column) for each in rows)], pa.int64())
    value = _EXTREMES[function["function"]](rows, column)
    return pa.array([value], arrow_schema(Schema(column)).field(0).type)


def _field(schema: Schema, function: Aggregate) -> NestedField:
    """A primitive column, or a primitive field of structs."""
    fields, found = schema.fields, None
    for name in function["column"]:
        found = next((field for field in fields if field.name == name), None)
        fields = found.field_type.fields if found and isinstance(found.field_type, StructType) else ()
    if found is None or not isinstance(found.field_type, PrimitiveType):
        raise _UnknownError
    return found


def _value_count(rows: _Rows, column: NestedField) -> int:
    null_count = _null_count(rows.file, column)
    if not rows.deleted_count or not null_count:
        return rows.count - null_count
    if null_count == rows.file.record_count or not rows.count:
        return 0
    raise _UnknownError


def _null_count(file: DataFile, column: NestedField) -> int:
    stated = (file.null_value_counts or {}).get(column.field_id)
    if stated is None or stated != null_count(file, column.field_id):
        # Counts that the entry omits (FM-8) are derived from the known behavior of writers, but this count must be
        # exact.
        raise _UnknownError
    return stated


def _lowest(rows: Sequence[_Rows], column: NestedField) -> Any:
    return _lowest_or_highest(rows, column, min, lambda file: file.lower_bounds)


def _highest(rows: Sequence[_Rows], column: NestedField) -> Any:
    return _lowest_or_highest(rows, column, max, lambda file: file.upper_bounds)


def _lowest_or_highest(
    rows: Sequence[_Rows],
    column: NestedField,
    choose: Callable[..., Any],
    bounds_of: Callable[[DataFile], Mapping[int, bytes] | None],
) -> Any:
    """The extreme of the files' bounds. The bound of a file with deleted rows may belong to a deleted row, so it must
    not be beyond the others. Raises _UnknownError for zero, because zeros of both signs have the same bound."""
    if not isinstance(column.field_type, _EXACT_BOUNDS):
        raise _UnknownError
    alive = [each for each in rows if each.count]
    values = _bounds([each.file for each in alive if not each.deleted_count], column, bounds_of)
    beside_deleted = _bounds([each.file for each in alive if each.deleted_count], column, bounds_of)
    extreme = choose(values, default=None)
    if beside_deleted and (extreme is None or choose(*beside_deleted, extreme) != extreme):
        raise _UnknownError
    if isinstance(column.field_type, _FLOATS) and extreme == 0:
        raise _UnknownError
    return extreme


def _bounds(
    files: Sequence[DataFile],
    column: NestedField,
    bounds_of: Callable[[DataFile], Mapping[int, bytes] | None],
) -> list[Any]:
    """The bound of each file, except files with nulls only. Raises _UnknownError if a file may have NaNs, which are in
    no bound and above all numbers."""
    assert isinstance(column.field_type, PrimitiveType)
    is_float = isinstance(column.field_type, _FLOATS)
    values = []
    for file in files:
        if _null_count(file, column) == file.record_count:
            continue
        bound = (bounds_of(file) or {}).get(column.field_id)
        if bound is None or (is_float and (file.nan_value_counts or {}).get(column.field_id) != 0):
            raise _UnknownError
        values.append(from_bound(bound, column.field_type))
    if is_float and any(map(math.isnan, values)):
        raise _UnknownError
    return values


_EXTREMES: Final[dict[str, Callable[[Sequence[_Rows], NestedField], Any]]] = {"min": _lowest, "max": _highest}
