"""The manifest entry of a finished Parquet data file, from its footer."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.parquet as pq

from tableformat.keys.sort_marker import sorted_by
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.parquet.parquet_metrics import data_file_metrics
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.write.context import WriteContext
from tableformat.write.data_files.partitions import PartitionValues


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
    """FM-8: the manifest entry of a file with the context's schema, spec and sort order.

    The writer of the values provides `nan_value_counts`, None if they were not counted, and `bounds_beside_nan`: the
    lowest and highest number of each column with NaNs, if the writer of the footer treated NaN as a number.
    """
    metrics = data_file_metrics(
        footer,
        context.schema,
        nan_value_counts=nan_value_counts,
        bounds_beside_nan=bounds_beside_nan,
        modes=context.metrics_modes,
    )
    return DataFile(
        file_path=location,
        file_format=PARQUET,
        spec_id=context.spec.spec_id,
        partition=partition,
        file_size_bytes=size_bytes,
        sort_order_id=_sort_order_id(context, footer),
        **entry_metrics(metrics),
    )


def _sort_order_id(context: WriteContext, footer: pq.FileMetaData) -> int | None:
    """FM-28: the id of the sort order; None for a file whose rows are in input order."""
    is_sorted = context.sorts_rows or not context.key_field_ids or sorted_by(footer.metadata) is not None
    return context.sort_order_id if is_sorted else None
