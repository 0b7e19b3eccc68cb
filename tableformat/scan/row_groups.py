"""Skips row groups without a matching row, by the statistics in the footer and by Bloom filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.parquet as pq

from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, Comparison
from tableformat.filters.file_statistics import partition_value_statistics
from tableformat.filters.pruning import UNKNOWN, decide, residual
from tableformat.parquet.bloom_filters.held_filters import HeldFilters
from tableformat.parquet.parquet_file import OpenedFile
from tableformat.parquet.row_group_statistics import row_group_statistics
from tableformat.scan.bloom_pruning import residual_by_filters


def is_ruled_out(
    bound: BoundFilter,
    file: OpenedFile,
    row_group: pq.RowGroupMetaData,
    constants: Mapping[int, Any],
    held: HeldFilters,
) -> bool:
    """Whether the statistics of the row group, or else its Bloom filters, exclude a matching row."""

    def decide_leaf(leaf: Comparison) -> BoundFilter:
        field_id = leaf.field.field_id
        column = file.leaves.get(field_id)
        if column is not None:
            return decide(leaf, row_group_statistics(row_group, column, leaf.field.field_type))
        return decide(leaf, partition_value_statistics(constants[field_id]) if field_id in constants else UNKNOWN)

    if bound is TRUE:
        return False
    left = residual(bound, decide_leaf)
    return left is FALSE or residual_by_filters(left, file, row_group, held) is FALSE
