"""SHOW PARTITIONS, and DROP and TRUNCATE PARTITION, which delete the rows of partitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    IsNaN,
    IsNull,
    LessThan,
    Reference,
    StartsWith,
)
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzNanoType,
    TimestamptzType,
)

from spark_ext.service.registry import Answer, Request, method
from spark_ext.service.session import Pin, Session
from spark_ext.service.wire.arrow_stream import arrow_stream
from spark_ext.service.wire.expressions import (
    NoValueError,
    SparkExpression,
    all_of,
    any_of,
    is_nan_literal,
    literal_value,
)
from spark_ext.service.wire.partition_type import default_fields, default_partition_type
from spark_ext.service.writes.whole_files import takes_whole_files
from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.partition_identity import partition_identity

_UNITS: Final[dict[type, Literal["Y", "M", "D", "h"]]] = {
    YearTransform: "Y",
    MonthTransform: "M",
    DayTransform: "D",
    HourTransform: "h",
}

_Comparison: TypeAlias = Callable[..., BooleanExpression]
_IS_NULL: Final[_Comparison] = IsNull
_IS_NAN: Final[_Comparison] = IsNaN
_EQUAL: Final[_Comparison] = EqualTo
_AT_LEAST: Final[_Comparison] = GreaterThanOrEqual
_BELOW: Final[_Comparison] = LessThan
_BEGINS_WITH: Final[_Comparison] = StartsWith


@method("list_partitions")
def list_partitions(session: Session, request: Request) -> Answer:
    """SQ-8: the partitions of the default spec that contain data files, in order, as an Arrow stream."""
    pin = Pin.from_json(request.arguments["pin"])
    view = session.view(pin)
    spec = view.metadata.spec()
    places = [spec.fields.index(field) for field in default_fields(view.metadata)]
    struct = default_partition_type(view.metadata)
    found = (
        tuple(task.data_file.partition[place] for place in places)
        for task in session.plan(pin, AlwaysTrue()).tasks
        if task.data_file.spec_id == spec.spec_id
    )
    distinct = {partition_identity(spec.spec_id, values): values for values in found}.values()
    ordered = sorted(distinct, key=lambda values: [_rank(value) for value in values])
    columns = list(zip(*ordered, strict=True)) or [()] * len(struct)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, struct, strict=True)]
    return Answer(None, [arrow_stream(pa.table(arrays, schema=pa.schema(list(struct))))])


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """A sort key with nulls first and NaN last."""
    is_last = isinstance(value, float) and math.isnan(value)
    return value is not None, is_last, 0 if value is None or is_last else value


@method("drop_partitions")
def drop_partitions(session: Session, request: Request) -> dict[str, Any]:
    """SQ-8: delete the rows of partitions of the default spec in one commit, by a filter derived from the partition
    values."""
    arguments = request.arguments
    pin = Pin.from_json(arguments["pin"])
    table = session.load(pin.table, branch=pin.branch)
    fields, schema = default_fields(session.pinned(pin).metadata), table.metadata.schema()
    where = any_of(_rows_of(fields, each, schema) for each in arguments["partitions"])
    result = table.delete(
        where,
        mode="scan" if takes_whole_files(table.view, where, table.branch) else "auto",
        application_id=arguments["application_id"],
        batch_id=arguments["batch_id"],
    )
    return {"snapshot_id": result.snapshot_id, "already_applied": result.already_applied}


def _rows_of(fields: Sequence[PartitionField], values: Sequence[SparkExpression], schema: Schema) -> BooleanExpression:
    terms = [_rows_with(field, value, schema) for field, value in zip(fields, values, strict=True)]
    return all_of(terms)


def _rows_with(field: PartitionField, literal: SparkExpression, schema: Schema) -> BooleanExpression:
    """A filter for the rows whose partition field has the value. Raises UnsupportedFeatureError for a transform that
    cannot be expressed as a comparison."""
    column = schema.find_column_name(field.source_id)
    assert column is not None, "the column of a partition field cannot be dropped"
    name = Reference(column)
    if literal["literal"] is None:
        return _IS_NULL(name)
    if is_nan_literal(literal):
        return _IS_NAN(name)
    transform, source = field.transform, schema.find_field(field.source_id).field_type
    try:
        value = literal_value(literal)
    except NoValueError as error:
        raise UnsupportedFeatureError(
            f"no comparison matches the value {literal['literal']} of the partition field {field.name!r}. Nothing "
            "was changed. DELETE by the columns instead."
        ) from error
    if isinstance(transform, IdentityTransform):
        return _EQUAL(name, value)
    unit = _UNITS.get(type(transform))
    if unit is not None:
        first = np.datetime64(value, "D") if isinstance(value, date) else np.datetime64(value, unit)
        zone = "+00:00" if isinstance(source, TimestamptzType | TimestamptzNanoType) else ""
        lower, upper = (
            str(moment.astype("datetime64[D]" if isinstance(source, DateType) else "datetime64[us]")) + zone
            for moment in (first, first + np.timedelta64(1, unit))
        )
        return And(_AT_LEAST(name, lower), _BELOW(name, upper))
    if isinstance(transform, TruncateTransform) and isinstance(source, IntegerType | LongType):
        return And(_AT_LEAST(name, value), _BELOW(name, value + transform.width))
    if isinstance(transform, TruncateTransform) and isinstance(source, StringType):
        return _EQUAL(name, value) if len(value) < transform.width else _BEGINS_WITH(name, value)
    raise UnsupportedFeatureError(
        f"the partitions of {field.name!r} ({transform} of {column!r}) cannot be expressed as a comparison of rows. "
        "Nothing was changed. DELETE by the columns instead."
    )
