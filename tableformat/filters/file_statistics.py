"""Column statistics of a data file, a partition or a manifest, from metadata.

Sources: Iceberg table specification, "Manifests" (metrics of a data file) and "Manifest Lists" (`field_summary`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from pyiceberg.types import DoubleType, FloatType, IcebergType, PrimitiveType, UUIDType

from tableformat.filters.bound_filter import is_nan_value
from tableformat.filters.pruning import UNKNOWN, ColumnStatistics
from tableformat.keys.single_value import uuid_bound
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import ContentFile, null_count, value_count
from tableformat.metadata.manifests.manifest_entry import PartitionFieldSummary

_REMEMBERED_FACTS = 50_000
_NULL_ONLY = ColumnStatistics(may_be_null=True, may_be_nan=False, may_have_values=False)
_NAN_ONLY = ColumnStatistics(may_be_null=False, may_be_nan=True, may_have_values=False)


def column_statistics(file: ContentFile, field_id: int, column_type: IcebergType) -> ColumnStatistics:
    """The statistics of a column in the metrics of a manifest entry; missing metrics are unknown.

    For a delete file, the column must be one by which it deletes. Metrics of other columns are not meaningful.
    """
    return _column_statistics(
        file.file_path,
        column_type,
        nulls=null_count(file, field_id),
        nans=_metric(file.nan_value_counts, field_id),
        values=value_count(file, field_id),
        lower=_metric(file.lower_bounds, field_id),
        upper=_metric(file.upper_bounds, field_id),
    )


@lru_cache(_REMEMBERED_FACTS)
def _column_statistics(
    location: str,
    column_type: IcebergType,
    *,
    nulls: int | None,
    nans: int | None,
    values: int | None,
    lower: bytes | None,
    upper: bytes | None,
) -> ColumnStatistics:
    """Cached: decoding bounds costs ten times as much as a lookup, and a change feed uses them once for each
    snapshot."""
    if nulls is None and lower is None and upper is None and nans is None:
        return UNKNOWN
    return ColumnStatistics(
        may_be_null=nulls is None or nulls > 0,
        may_be_nan=isinstance(column_type, (FloatType, DoubleType)) and (nans is None or nans > 0),
        may_have_values=values is None or nulls is None or values > nulls + (nans or 0),
        lower=None if lower is None else _lower_value(lower, column_type, location),
        upper=None if upper is None else _upper_value(upper, column_type, location),
    )


def partition_value_statistics(value: Any) -> ColumnStatistics:
    """A column with the same value in all rows: a partition field, or the source of an identity transform."""
    if value is None:
        return _NULL_ONLY
    if is_nan_value(value):
        return _NAN_ONLY
    internal = value.bytes if isinstance(value, UUID) else value
    return ColumnStatistics(may_be_null=False, may_be_nan=False, lower=internal, upper=internal)


def summary_statistics(summary: PartitionFieldSummary, field_type: IcebergType, location: str) -> ColumnStatistics:
    """A partition field over all files of a manifest. Without bounds, all its values are null or NaN."""
    lower, upper = summary.lower_bound, summary.upper_bound
    return ColumnStatistics(
        may_be_null=summary.contains_null,
        may_be_nan=summary.contains_nan is not False,
        may_have_values=lower is not None or upper is not None,
        lower=None if lower is None else _lower_value(lower, field_type, location),
        upper=None if upper is None else _upper_value(upper, field_type, location),
    )


def _metric(metrics: Any, field_id: int) -> Any:
    return None if metrics is None else metrics.get(field_id)


def _lower_value(bound: bytes, column_type: IcebergType, location: str) -> Any:
    value = _value(bound, column_type, location)
    return uuid_bound(value, is_upper=False) if isinstance(column_type, UUIDType) else value


def _upper_value(bound: bytes, column_type: IcebergType, location: str) -> Any:
    value = _value(bound, column_type, location)
    return uuid_bound(value, is_upper=True) if isinstance(column_type, UUIDType) else value


def _value(bound: bytes, column_type: IcebergType, location: str) -> Any:
    """The bound in the representation of the filter's literals; None for NaN, which old writers stored as a bound."""
    assert isinstance(column_type, PrimitiveType)
    value = from_bound(bound, column_type, location=location)
    if isinstance(value, UUID):
        return value.bytes
    return None if is_nan_value(value) else value
