"""Row groups that cannot hold a matching row, by the statistics in the footer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.parquet as pq

from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, Comparison
from tableformat.filters.file_statistics import partition_value_statistics
from tableformat.filters.pruning import UNKNOWN, decide, residual
from tableformat.parquet.parquet_file import OpenedFile
from tableformat.parquet.row_group_statistics import row_group_statistics


def is_ruled_out(
    bound: BoundFilter, file: OpenedFile, row_group: pq.RowGroupMetaData, constants: Mapping[int, Any]
) -> bool:
    """Whether the statistics of the row group leave no room for a matching row."""

    def decide_leaf(leaf: Comparison) -> BoundFilter:
        field_id = leaf.field.field_id
        column = file.leaves.get(field_id)
        if column is not None:
            return decide(leaf, row_group_statistics(row_group, column, leaf.field.field_type))
        return decide(leaf, partition_value_statistics(constants[field_id]) if field_id in constants else UNKNOWN)

    return bound is not TRUE and residual(bound, decide_leaf) is FALSE
