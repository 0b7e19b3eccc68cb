"""Column statistics from metadata, over the files that a scan reads, for Spark's optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.statistics import BlobMetadata
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, null_count
from tableformat.metadata.sketches.theta_sketch import NDV, THETA_V1
from tableformat.metadata.snapshot_choice import ancestors

_ORDERED: Final = (
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DateType,
    DecimalType,
    TimestampType,
    TimestamptzType,
)
"""Types whose lowest and highest values the optimizer uses."""


def column_statistics(
    columns: Sequence[str], schema: Schema, files: Sequence[DataFile], counts: Mapping[int, int]
) -> dict[str, dict[str, Any]]:
    """SP-38: for each top-level column that is read, `nulls`, `min` and `max` over the files, if every file has them,
    and `distinct`, if it was counted. Values are text; dates and times are the stored numbers. Deleted rows are
    included, as in the row count."""
    rows = sum(file.record_count for file in files)
    found = {}
    for field in schema.fields:
        if field.name in columns and isinstance(field.field_type, PrimitiveType):
            told = _of_column(field, files)
            if field.field_id in counts:
                told["distinct"] = min(counts[field.field_id], rows)
            if told:
                found[field.name] = told
    return found


def distinct_counts(metadata: TableMetadata, snapshot: Snapshot | None) -> dict[int, int]:
    """SP-38: distinct counts by field id, from the newest statistics file of the snapshot or its ancestors."""
    files = {file.snapshot_id: file for file in metadata.statistics}
    for each in ancestors(metadata, snapshot) if files else ():
        if each.snapshot_id in files:
            blobs = files[each.snapshot_id].blob_metadata
            counted = ((blob.fields[0], (blob.properties or {}).get(NDV, "")) for blob in blobs if _is_of_one(blob))
            return {field_id: int(count) for field_id, count in counted if count.isdecimal()}
    return {}


def _is_of_one(blob: BlobMetadata) -> bool:
    return blob.type == THETA_V1 and len(blob.fields) == 1


def _of_column(field: NestedField, files: Sequence[DataFile]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    nulls = [null_count(file, field.field_id) for file in files]
    if None not in nulls:
        told["nulls"] = sum(count for count in nulls if count is not None)
    if isinstance(field.field_type, _ORDERED):
        filled = [file for file, count in zip(files, nulls, strict=True) if count != file.record_count]
        for name, choose, bounds_of in _BOUNDS:
            bounds = [(bounds_of(file) or {}).get(field.field_id) for file in filled]
            if bounds and None not in bounds:
                values = [from_bound(bound, field.field_type) for bound in bounds if bound is not None]
                told[name] = str(choose(values))
    return {name: value for name, value in told.items() if value not in _INFINITE}


_INFINITE: Final = ("inf", "-inf")

_BOUNDS: Final[tuple[tuple[str, Callable[..., Any], Callable[[DataFile], Mapping[int, bytes] | None]], ...]] = (
    ("min", min, lambda file: file.lower_bounds),
    ("max", max, lambda file: file.upper_bounds),
)
