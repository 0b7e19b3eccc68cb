"""The manifest entry of a finished Parquet data file, from its footer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, StringType

from tableformat.keys.sort_marker import sorted_by
from tableformat.metadata.column_bounds import BOUND_WIDTH
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.parquet.parquet_metrics import Metrics, data_file_metrics
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.write.context import WriteContext
from tableformat.write.data_files.partitions import PartitionValues

KEY_BOUND_WIDTH: Final = 64
"""Code points or bytes that bounds of key columns keep, where Iceberg's default is 16: identifiers often share a long
beginning, and a file whose bounds are sharp is cleared of deletes without being opened."""


def data_file_entry(
    context: WriteContext,
    location: str,
    footer: pq.FileMetaData,
    size_bytes: int,
    *,
    partition: PartitionValues,
    nan_value_counts: Mapping[int, int] | None,
    bounds_beside_nan: Mapping[int, tuple[float, float]] | None = None,
) -> DataFile:
    """FM-8: a file of the context's schema, spec and sort order, as a snapshot will name it.

    `nan_value_counts` comes from whoever wrote the values, None where nobody counted. So do `bounds_beside_nan`, the
    lowest and highest number of each column with NaNs, where the writer of the footer took NaN for a number.
    """
    metrics = data_file_metrics(
        footer, context.schema, nan_value_counts=nan_value_counts, bounds_beside_nan=bounds_beside_nan
    )
    fields: dict[str, Any] = entry_metrics(metrics)
    wide = _shortened_key_columns(context, metrics)
    if wide is not None:
        _sharpen(fields, data_file_metrics(footer, wide, bound_width=KEY_BOUND_WIDTH))
    whole = _range_columns(context)
    if whole is not None:
        _sharpen(fields, data_file_metrics(footer, whole, bound_width=None))
    return DataFile(
        file_path=location,
        file_format=PARQUET,
        spec_id=context.spec.spec_id,
        partition=partition,
        file_size_bytes=size_bytes,
        sort_order_id=_sort_order_id(context, footer),
        **fields,
    )


def _sort_order_id(context: WriteContext, footer: pq.FileMetaData) -> int | None:
    """FM-28: of a file whose rows were left as they came, none."""
    is_sorted = context.sorts_rows or not context.key_field_ids or sorted_by(footer.metadata) is not None
    return context.sort_order_id if is_sorted else None


def _sharpen(fields: dict[str, Any], sharper: Metrics) -> None:
    fields["lower_bounds"] = {**fields["lower_bounds"], **sharper.lower_bounds}
    fields["upper_bounds"] = {**fields["upper_bounds"], **sharper.upper_bounds}


def _range_columns(context: WriteContext) -> Schema | None:
    """RP-7: the columns of range partitions, whose bounds are never shortened: a file that lies inside of a range must
    be seen to."""
    defined = context.range_partitions
    if defined is None:
        return None
    fields = [context.schema.find_field(field_id) for field_id in defined.key.field_ids]
    texts = [field for field in fields if isinstance(field.field_type, StringType | BinaryType)]
    return Schema(*texts) if texts else None


def _shortened_key_columns(context: WriteContext, metrics: Metrics) -> Schema | None:
    """The key columns whose bounds may have been shortened; None without any."""
    fields = [context.schema.find_field(field_id) for field_id in context.key_field_ids]
    shortened = [
        field
        for field in fields
        if isinstance(field.field_type, StringType | BinaryType)
        and field.field_id in metrics.lower_bounds
        and (
            field.field_id not in metrics.upper_bounds
            or max(len(metrics.lower_bounds[field.field_id]), len(metrics.upper_bounds[field.field_id])) >= BOUND_WIDTH
        )
    ]
    return Schema(*shortened) if shortened else None
