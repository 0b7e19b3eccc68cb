"""Metrics of a manifest entry, from the footer of its Parquet file.

Source: Iceberg table specification, `data_file` fields 103, 108 to 110, 125, 128, 132 and 137; Parquet `Statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    PrimitiveType,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
    UUIDType,
)
from pyiceberg.utils.decimal import unscaled_to_decimal

from tableformat.metadata.column_bounds import BOUND_WIDTH, to_bound, truncate_lower, truncate_upper
from tableformat.metadata.manifests.manifest_schema import field_of
from tableformat.parquet.array_forms import is_list
from tableformat.parquet.metrics_modes import MetricsMode, only_counted

FIELD_ID_KEY: Final = b"PARQUET:field_id"
"""The metadata key in which Arrow stores a Parquet field id."""

_NANOS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The statistics of a manifest entry about the rows of a file; mappings are by field id."""

    record_count: int
    column_sizes: Mapping[int, int]
    """Compressed bytes."""
    value_counts: Mapping[int, int]
    """The number of values, including nulls and NaNs. Columns inside lists and maps have none."""
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int] | None
    """None if the writer did not count them; a footer does not have them."""
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    """Not necessarily values that occur: long values are truncated, and NaN is left out."""
    split_offsets: tuple[int, ...]
    """The offset of each row group in bytes."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of the Parquet schema, in file order."""

    field_id: int | None
    arrow_type: pa.DataType
    is_repeated: bool
    """Whether it is inside a list or a map."""


def data_file_metrics(
    parquet_metadata: pq.FileMetaData,
    schema: Schema,
    *,
    nan_value_counts: Mapping[int, int] | None = None,
    bounds_beside_nan: Mapping[int, tuple[float, float]] | None = None,
    modes: Mapping[int, MetricsMode] | None = None,
    bound_width: int = BOUND_WIDTH,
    columns: pa.Schema | None = None,
) -> Metrics:
    """Metrics of the columns that `schema` has by field id. Other columns, and columns without ids, are left out.

    Bounds need not be extreme values: a truncated statistic is a valid bound. A column has no bounds if any row group
    lacks them. The writer of the values provides `nan_value_counts`, and `bounds_beside_nan` for columns whose NaNs
    prevent bounds in the footer. `modes` are by field id. A column without a mode has all metrics, and its bounds of
    strings and binaries keep `bound_width`. `columns` is the file's schema with field ids, for a file that has none.
    """
    with_all = MetricsMode(width=bound_width)
    modes = modes or {}
    leaves = list(_leaves(columns or parquet_metadata.schema.to_arrow_schema()))
    row_groups = [parquet_metadata.row_group(index) for index in range(parquet_metadata.num_row_groups)]
    sizes: dict[int, int] = {}
    value_counts: dict[int, int] = {}
    null_counts: dict[int, int] = {}
    lower_bounds: dict[int, bytes] = {}
    upper_bounds: dict[int, bytes] = {}
    for position, leaf in enumerate(leaves):
        field = None if leaf.field_id is None else field_of(schema, leaf.field_id)
        if field is None or not isinstance(field.field_type, PrimitiveType):
            continue
        chunks = [row_group.column(position) for row_group in row_groups]
        sizes[field.field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        mode = modes.get(field.field_id, with_all)
        if leaf.is_repeated or not mode.has_counts:
            continue
        value_counts[field.field_id] = sum(chunk.num_values for chunk in chunks)
        statistics = [chunk.statistics for chunk in chunks]
        if any(each is None or not each.has_null_count for each in statistics):
            continue
        null_counts[field.field_id] = sum(each.null_count for each in statistics)
        if not mode.has_bounds:
            continue
        lower, upper = _bounds(chunks, statistics, leaf, field.field_type, mode.width)
        if bounds_beside_nan and field.field_id in bounds_beside_nan:
            lower, upper = _bounds_of_numbers(*bounds_beside_nan[field.field_id], field.field_type)
        if lower is not None:
            lower_bounds[field.field_id] = lower
        if upper is not None:
            upper_bounds[field.field_id] = upper
    return Metrics(
        record_count=parquet_metadata.num_rows,
        column_sizes=sizes,
        value_counts=value_counts,
        null_value_counts=null_counts,
        nan_value_counts=None if nan_value_counts is None else only_counted(nan_value_counts, modes),
        lower_bounds=lower_bounds,
        upper_bounds=upper_bounds,
        split_offsets=tuple(sorted(_start(row_group) for row_group in row_groups)),
    )


def _leaves(schema: pa.Schema) -> Iterator[_Leaf]:
    for field in schema:
        yield from _leaves_of(field, is_repeated=False)


def _leaves_of(field: pa.Field, *, is_repeated: bool) -> Iterator[_Leaf]:
    arrow_type = field.type
    if pa.types.is_struct(arrow_type):
        for index in range(arrow_type.num_fields):
            yield from _leaves_of(arrow_type.field(index), is_repeated=is_repeated)
    elif pa.types.is_map(arrow_type):
        yield from _leaves_of(arrow_type.key_field, is_repeated=True)
        yield from _leaves_of(arrow_type.item_field, is_repeated=True)
    elif is_list(arrow_type):
        yield from _leaves_of(arrow_type.value_field, is_repeated=True)
    else:
        field_id = (field.metadata or {}).get(FIELD_ID_KEY)
        arrow_type = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
        yield _Leaf(None if field_id is None else int(field_id), arrow_type, is_repeated)


def _bounds(
    chunks: list[pq.ColumnChunkMetaData],
    statistics: list[pq.Statistics],
    leaf: _Leaf,
    iceberg_type: PrimitiveType,
    width: int | None,
) -> tuple[bytes | None, bytes | None]:
    """Bounds over all row groups. A row group with only nulls has no bounds and needs none."""
    bounded = [each for chunk, each in zip(chunks, statistics, strict=True) if each.null_count < chunk.num_values]
    if not bounded or not all(each.has_min_max for each in bounded) or pa.types.is_unsigned_integer(leaf.arrow_type):
        return None, None
    try:
        lowest = min(_value(each.min_raw, leaf, iceberg_type, round_up=False) for each in bounded)
        highest = max(_value(each.max_raw, leaf, iceberg_type, round_up=True) for each in bounded)
    except UnicodeDecodeError:
        # Another writer truncated its statistic within a character: it orders bytes, and the statistic cannot be used.
        return None, None
    if isinstance(iceberg_type, (FloatType, DoubleType)):
        if math.isnan(lowest) or math.isnan(highest):
            return None, None
        return _bounds_of_numbers(lowest, highest, iceberg_type)
    if width is not None and isinstance(iceberg_type, (StringType, BinaryType)):
        lowest, highest = truncate_lower(lowest, width), truncate_upper(highest, width)
    return to_bound(lowest, iceberg_type), None if highest is None else to_bound(highest, iceberg_type)


def _bounds_of_numbers(lowest: float, highest: float, iceberg_type: PrimitiveType) -> tuple[bytes, bytes]:
    """Readers order -0.0 before 0.0, but writers consider them equal: make the bounds valid for both."""
    return to_bound(lowest or -0.0, iceberg_type), to_bound(highest or 0.0, iceberg_type)


def _value(raw: Any, leaf: _Leaf, iceberg_type: PrimitiveType, *, round_up: bool) -> Any:
    """A statistic's physical value in Iceberg's internal representation."""
    if isinstance(iceberg_type, DecimalType):
        return _decimal(raw, leaf.arrow_type.scale)
    if isinstance(iceberg_type, StringType):
        return raw.decode()
    if isinstance(iceberg_type, UUIDType):
        return UUID(bytes=raw)
    unit = getattr(leaf.arrow_type, "unit", None)
    if unit not in _NANOS or pa.types.is_date(leaf.arrow_type):
        return raw
    target = 1 if isinstance(iceberg_type, (TimestampNanoType, TimestamptzNanoType)) else _NANOS["us"]
    nanos = raw * _NANOS[unit]
    return -(-nanos // target) if round_up else nanos // target


def _decimal(raw: int | bytes, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return unscaled_to_decimal(unscaled, scale)


def _start(row_group: pq.RowGroupMetaData) -> int:
    column = row_group.column(0)
    offset: int = column.data_page_offset
    return min(offset, column.dictionary_page_offset) if column.has_dictionary_page else offset
