"""Column statistics of one row group, from the Parquet footer.

Parquet's own statistics are finer than those in the manifest, and exist for files of any size. Values are in their
physical form, which for equal Arrow types is Iceberg's internal representation. If the file's type differs, only
promotions are supported.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    NestedField,
    PrimitiveType,
    UUIDType,
)

from tableformat.filters.bound_filter import is_nan_value
from tableformat.filters.pruning import UNKNOWN, ColumnStatistics
from tableformat.keys.exact_decimals import decimal_of
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.parquet.parquet_columns import LeafColumn


def row_group_statistics(
    row_group: pq.RowGroupMetaData, leaf: LeafColumn, column_type: IcebergType
) -> ColumnStatistics:
    """Statistics of a column in the table's type. A value that the footer does not exclude may occur."""
    statistics = row_group.column(leaf.index).statistics
    if statistics is None or not isinstance(column_type, PrimitiveType):
        return UNKNOWN
    null_count = statistics.null_count if statistics.has_null_count else None
    lower = upper = None
    if statistics.has_min_max:
        lower = _value(statistics.min_raw, leaf.arrow_type, column_type)
        upper = _value(statistics.max_raw, leaf.arrow_type, column_type)
    return ColumnStatistics(
        may_be_null=null_count is None or null_count > 0,
        may_be_nan=isinstance(column_type, (FloatType, DoubleType)),
        may_have_values=null_count is None or null_count < row_group.num_rows,
        lower=lower,
        upper=upper,
    )


def _value(raw: Any, stored: pa.DataType, column_type: PrimitiveType) -> Any:
    """A bound in Iceberg's internal representation; None if it cannot be trusted."""
    if isinstance(column_type, DecimalType):
        unscaled = int.from_bytes(raw, signed=True) if isinstance(raw, bytes) else raw
        is_same_scale = pat.is_decimal(stored) and stored.scale == column_type.scale
        return decimal_of(unscaled, column_type.scale) if is_same_scale else None
    if pat.is_string(stored) or pat.is_large_string(stored):
        return raw if isinstance(column_type, BinaryType) else _text(raw)
    wanted = _arrow_type(column_type)
    is_promoted = (pat.is_signed_integer(stored) and pat.is_signed_integer(wanted)) or (
        pat.is_floating(stored) and pat.is_floating(wanted)
    )
    is_large = pat.is_large_binary(stored) and pat.is_binary(wanted)
    if not (stored == wanted or is_promoted or is_large or isinstance(column_type, UUIDType)):
        return None
    return None if is_nan_value(raw) else raw


@lru_cache(maxsize=128)
def _arrow_type(column_type: PrimitiveType) -> pa.DataType:
    return arrow_schema(Schema(NestedField(1, "column", column_type, required=False))).field(0).type


def _text(raw: bytes) -> str | None:
    """Some writers truncate a bound within a character."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
