"""ANALYZE TABLE ... COMPUTE STATISTICS."""

from __future__ import annotations

from spark_ext.service.executors import executor_of
from spark_ext.service.statements.columns import column_name
from spark_ext.service.statements.statement import Statement, statement
from tableformat.table import Table


@statement("analyze")
def analyze(table: Table, said: Statement) -> None:
    """SQ-29: count distinct values of `columns`, or of all columns without nested fields. Sizes and row counts are
    already in the metadata (`noscan`)."""
    if said["noscan"]:
        return
    columns = None
    if said["columns"] is not None:
        schema, sensitive = table.metadata.schema(), said["case_sensitive"]
        columns = [column_name(schema, [name], case_sensitive=sensitive) for name in said["columns"]]
    table.maintenance.compute_table_stats(columns, executor=executor_of(table))
