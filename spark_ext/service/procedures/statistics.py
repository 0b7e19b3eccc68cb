"""Procedures that write statistics files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_ext.service.executors import executor_of
from spark_ext.service.procedures.procedure import Parameter, Rows, array_of, procedure
from tableformat.table import Table


@procedure(
    Parameter("snapshot_id", "long", "The snapshot whose rows to count; the head of the branch by default."),
    Parameter("columns", array_of("string"), "The columns to count; all primitive columns by default."),
    columns=pa.schema([("statistics_file", pa.string())]),
)
def compute_table_stats(table: Table, *, snapshot_id: int | None = None, columns: Sequence[str] | None = None) -> Rows:
    """Count the distinct values of columns for the optimizer, and store them in a statistics file. No row for an empty
    table."""
    found = table.maintenance.compute_table_stats(columns, snapshot_id=snapshot_id, executor=executor_of(table))
    return [] if found.statistics_file is None else [{"statistics_file": found.statistics_file}]
