"""`compute_partition_stats`: statistics of partitions for the planners of other engines."""

from __future__ import annotations

import pyarrow as pa

from spark_ext.service.procedures.procedure import Parameter, Rows, procedure
from tableformat.maintenance.partition_statistics import compute_partition_statistics
from tableformat.table import Table


@procedure(
    Parameter("snapshot_id", "long", "The snapshot; the head of the branch by default."),
    columns=pa.schema([("partition_statistics_file", pa.string())]),
)
def compute_partition_stats(table: Table, *, snapshot_id: int | None = None) -> Rows:
    """Write a file with statistics of each partition of a snapshot, and reference it in the table's metadata. No row
    for a snapshot without files."""
    chosen = table.snapshot_id if snapshot_id is None else snapshot_id
    location = None if chosen is None else compute_partition_statistics(table.iceberg, chosen)
    return [] if location is None else [{"partition_statistics_file": location}]
