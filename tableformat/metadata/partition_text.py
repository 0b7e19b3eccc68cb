"""Parses partition fields: `"bucket(16, id1)"`, `"day(ts)"`, `"truncate(4, name)"`, `"country"`.

The names are Iceberg's transforms. Spark's spellings, such as `days(ts)`, are synonyms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    BinaryType,
    DateType,
    FixedType,
    IcebergType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    UUIDType,
)

from tableformat.errors import InvalidArgumentError, UnknownColumnError, nearest_hint
from tableformat.keys.families import arrow_type_of
from tableformat.keys.internal_values import internal_values_of

_WITH_NUMBER: dict[str, type[BucketTransform[Any] | TruncateTransform[Any]]] = {
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
}
_PLAIN: dict[str, Transform[Any, Any]] = {
    "identity": IdentityTransform(),
    "year": YearTransform(),
    "month": MonthTransform(),
    "day": DayTransform(),
    "hour": HourTransform(),
    "void": VoidTransform(),
}
_CALL = re.compile(r"\s*(?P<name>[A-Za-z]+)\s*\(\s*(?P<arguments>.*?)\s*\)\s*$", re.DOTALL)


def partition_spec(schema: Schema, partition_by: Sequence[str]) -> PartitionSpec:
    """The spec with id 0 over a schema with assigned field ids. Field names are those of Iceberg's own builders.

    Raises InvalidArgumentError for text that is not a transform, and for a transform that the column's type does not
    support.
    """
    fields: list[PartitionField] = []
    for position, text in enumerate(partition_by):
        transform, column, name = _parse(text)
        if column not in schema.column_names:
            raise UnknownColumnError(column, schema.column_names, where=f"partition_by {text!r}")
        field = schema.find_field(column)
        if not transform.can_transform(field.field_type):
            raise InvalidArgumentError(f"partition_by {text!r}: {transform} does not support {field.field_type}.")
        if any(name == other.name for other in fields):
            raise InvalidArgumentError(f"partition_by contains the field {name!r} twice.")
        fields.append(PartitionField(field.field_id, PARTITION_FIELD_ID_START + position, transform, name))
    return PartitionSpec(*fields, spec_id=0)


def refuse_names_of_columns(spec: PartitionSpec, schema: Schema) -> None:
    """Raise InvalidArgumentError for a partition field of a new table that has the name of a column, unless it is the
    identity of that column."""
    for field in spec.fields:
        column = schema.find_column_name(field.source_id)
        is_own = isinstance(field.transform, IdentityTransform) and field.name == column
        if field.name in schema.column_names and not is_own:
            raise InvalidArgumentError(
                f"the partition field {field.transform} of column {column!r} would be named {field.name!r}, which is "
                "the name of a column. Nothing was changed. Rename the column. Or create the table without this "
                f"field, and add the field under another name: update_spec().add_field({column!r}, "
                f"{str(field.transform)!r}, {free_name(field.name, schema)!r})."
            )


def free_name(name: str, schema: Schema) -> str:
    """A name for a partition field that is not a column name."""
    names = (f"{name}_part{number or ''}" for number in count())
    return next(each for each in names if each not in schema.column_names)


def _parse(text: str) -> tuple[Transform[Any, Any], str, str]:
    """The transform, its source column and the name of the partition field."""
    call = _CALL.match(text)
    if call is None:
        column = _unquote(text)
        return IdentityTransform(), column, column
    name = call["name"].lower()
    arguments = call["arguments"]
    if name in _WITH_NUMBER:
        number, _, column = arguments.partition(",")
        column = _unquote(column)
        if not (number.strip().isascii() and number.strip().isdigit()) or int(number) == 0 or not column:
            raise InvalidArgumentError(f"partition_by {text!r} must have the form '{name}(16, column)'.")
        suffix = "bucket" if name == "bucket" else "trunc"
        return _WITH_NUMBER[name](int(number)), column, f"{column}_{suffix}"
    singular = name.removesuffix("s") if name not in _PLAIN else name
    if singular not in _PLAIN:
        raise InvalidArgumentError(
            f"partition_by {text!r} is not a known transform.{nearest_hint(name, [*_PLAIN, *_WITH_NUMBER])}"
        )
    column = _unquote(arguments)
    suffix = _SUFFIXES.get(singular, singular)
    return _PLAIN[singular], column, column if singular == "identity" else f"{column}_{suffix}"


_SUFFIXES = {"void": "null"}
"""Suffixes of field names that differ from the transform's name."""


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in '"`':
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def human_text(transform: Transform[Any, Any], value_type: IcebergType, value: Any) -> str:
    """A partition value as text for people and paths. Days and hours outside of Python's years are in ISO 8601."""
    try:
        return transform.to_human_string(value_type, value)
    except OverflowError:
        unit = _UNITS.get(type(transform)) or _UNITS.get(type(value_type))
        if unit is None:
            raise
        text = str(np.datetime64(value, unit))
        return text.replace("T", "-") if unit == "h" else text


_UNITS: dict[type, Literal["D", "h", "us", "ns"]] = {
    DayTransform: "D",
    HourTransform: "h",
    DateType: "D",
    TimestampType: "us",
    TimestamptzType: "us",
    TimestampNanoType: "ns",
    TimestamptzNanoType: "ns",
}


def value_of_text(text: str, field_type: PrimitiveType) -> Any:
    """A value of an identity partition in Iceberg's internal representation, from the name of a directory
    (`day=2026-01-31`). A timestamp without a zone is UTC. Raises ValueError for text that is not a value of the type.
    """
    if isinstance(field_type, UUIDType):
        return UUID(text)
    if isinstance(field_type, BinaryType | FixedType):
        return text.encode()
    data_type = arrow_type_of(field_type)
    if isinstance(field_type, TimestamptzType | TimestamptzNanoType):
        moment = datetime.fromisoformat(text)
        text = str(moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment)
        data_type = pa.timestamp(data_type.unit)
    value = pa.array([text]).cast(data_type).view(arrow_type_of(field_type))
    return internal_values_of(value, field_type)[0]
