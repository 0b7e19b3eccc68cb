"""`readable_metrics`: the statistics of files by column name, with bounds as values.

Source: Iceberg's metadata tables `files`, `entries` and related ones, which have this column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.errors import CorruptFileError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, DeleteFile

READABLE_METRICS: Final = "readable_metrics"
_COUNTS: Final = {
    "column_size": "column_sizes",
    "value_count": "value_counts",
    "null_value_count": "null_value_counts",
    "nan_value_count": "nan_value_counts",
}
_BOUNDS: Final = {"lower_bound": "lower_bounds", "upper_bound": "upper_bounds"}


def readable_metrics(schema: Schema, files: Sequence[DataFile | DeleteFile]) -> pa.StructArray:
    """A struct for each file. It has a struct for each primitive column of `schema`, by name.

    `lower_bound` and `upper_bound` have the column's type. NULL means that the file lacks the statistic, or that the
    bytes of a bound, which `lower_bounds` and `upper_bounds` show, are not a value of the type.
    """
    columns = {
        name: field
        for name in sorted(schema.column_names)
        if isinstance((field := schema.find_field(name)).field_type, PrimitiveType)
    }
    children = [_metrics(field, files) for field in columns.values()]
    fields = [pa.field(name, child.type) for name, child in zip(columns, children, strict=True)]
    if not fields:
        return pa.nulls(len(files), pa.struct([]))
    return pa.StructArray.from_arrays(children, fields=fields)


def _metrics(column: NestedField, files: Sequence[DataFile | DeleteFile]) -> pa.StructArray:
    field_id, arrow = column.field_id, arrow_schema(Schema(column)).field(0).type
    arrays = {name: pa.array(_each(files, maps, field_id), pa.int64()) for name, maps in _COUNTS.items()}
    value = _reader(column)
    for name, maps in _BOUNDS.items():
        arrays[name] = pa.array([value(bound) for bound in _each(files, maps, field_id)], arrow)
    return pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays))


def _each(files: Sequence[DataFile | DeleteFile], attribute: str, field_id: int) -> list[Any]:
    maps: list[Mapping[int, Any] | None] = [getattr(file, attribute) for file in files]
    return [None if found is None else found.get(field_id) for found in maps]


def _reader(column: NestedField) -> Callable[[bytes | None], Any]:
    """Cached, because bounds repeat: partitions, dates, flags."""
    field_type = column.field_type
    assert isinstance(field_type, PrimitiveType)

    @cache
    def value(bound: bytes | None) -> Any:
        if bound is None:
            return None
        try:
            return from_bound(bound, field_type)
        except CorruptFileError:
            return None

    return value
