"""Equality delete files: distinct, sorted values of the delete columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, NestedField, PrimitiveType, UnknownType, UUIDType

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.metadata.content_file import DeleteFile, FileContent
from tableformat.parquet.metrics_modes import KEY_BOUND_WIDTH
from tableformat.parquet.parquet_metrics import data_file_metrics
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles, removed_on_failure
from tableformat.write.delete_files.delete_files import checked_partition, delete_file, write_parquet_file
from tableformat.write.rows.conform import ConformedRows
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.rows.rows import as_reader
from tableformat.write.rows.sorting import sorting_order


def delete_columns(schema: Schema, names: Sequence[str]) -> Schema:
    """The columns by which rows may be deleted, in the given order, as a schema.

    DA-5: raises InvalidKeyError for floating point and nested columns, UnknownColumnError for a name that the table
    does not have.
    """
    if not names:
        raise InvalidKeyError("an equality delete needs at least one column.")
    if len(set(names)) != len(names):
        raise InvalidKeyError(f"the delete columns {list(names)} contain a column twice.")
    fields = [_delete_column(schema, name) for name in names]
    return Schema(*fields, schema_id=schema.schema_id)


def write_equality_delete_file(
    context: WriteContext, keys: pa.Table, *, spec_id: int, partition: tuple[Any, ...] = ()
) -> DeleteFile:
    """One delete file for the rows of a table, like `write_equality_deletes`. Raises InvalidKeyError for a table
    without rows."""
    if len(keys) == 0:
        raise InvalidKeyError("an equality delete needs at least one row of values.")
    columns = delete_columns(context.schema, keys.column_names)
    partition = checked_partition(context, spec_id, partition)
    batches = list(ConformedRows(keys.to_reader(), columns))
    distinct = distinct_rows(pa.Table.from_batches(batches))
    with removed_on_failure(context) as created:
        return _write(context, created, columns, distinct, spec_id=spec_id, partition=partition)


def write_equality_deletes(
    context: WriteContext,
    rows: Any,
    *,
    spec_id: int,
    partition: tuple[Any, ...] = (),
    beside: str | None = None,
) -> list[DeleteFile]:
    """FM-12: delete files for every distinct row of `rows`, whose columns are the delete columns; usually one file.
    `beside`: a column that is stored with them, and by which no row is deleted (FM-34).

    Rows are made distinct (DA-4: null equals null) and sorted within `context.memory_bytes`. A longer stream becomes
    several files, which together delete the same rows. Without rows, no file is written. Under an unpartitioned spec
    the files apply to every partition (DA-3). Rows that do not fit the columns raise RowsRefusedError. After a failure
    all files are removed.
    """
    reader = as_reader(rows, what="the keys to delete")
    columns = delete_columns(context.schema, reader.schema.names)
    partition = checked_partition(context, spec_id, partition)
    with removed_on_failure(context) as created:
        return [
            _write(context, created, columns, table, spec_id=spec_id, partition=partition, beside=beside)
            for table in _distinct_portions(ConformedRows(reader, columns), context.memory_bytes)
        ]


def _distinct_portions(batches: ConformedRows, memory_bytes: int) -> Iterable[pa.Table]:
    """Tables of distinct rows of about the memory's size. Only rows of different tables can be equal."""
    distinct = batches.schema.empty_table()
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in batches:
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes * 2 > memory_bytes:
            distinct = distinct_rows(pa.concat_tables([distinct, pa.Table.from_batches(pending)]))
            pending, pending_bytes = [], 0
            if distinct.nbytes * 2 > memory_bytes:
                yield distinct
                distinct = batches.schema.empty_table()
    if pending:
        distinct = distinct_rows(pa.concat_tables([distinct, pa.Table.from_batches(pending)]))
    if len(distinct):
        yield distinct


def _write(
    context: WriteContext,
    created: CreatedFiles,
    columns: Schema,
    table: pa.Table,
    *,
    spec_id: int,
    partition: tuple[Any, ...],
    beside: str | None = None,
) -> DeleteFile:
    batch = table.combine_chunks().to_batches()[0]
    order = sorting_order(batch.columns)
    ordered = pa.Table.from_batches([batch if order is None else batch.take(order)])
    location, written = write_parquet_file(
        context, created, ordered, spec_id=spec_id, partition=partition, dictionary_columns=True
    )
    metrics = data_file_metrics(written.metadata, columns, nan_value_counts={}, bound_width=KEY_BOUND_WIDTH)
    # Iceberg's Java library orders UUIDs as two signed numbers. If the bounds of a data file include both signs, it
    # would wrongly exclude the delete.
    uuids = {field.field_id for field in columns.fields if isinstance(field.field_type, UUIDType)}
    metrics = replace(
        metrics,
        lower_bounds={key: bound for key, bound in metrics.lower_bounds.items() if key not in uuids},
        upper_bounds={key: bound for key, bound in metrics.upper_bounds.items() if key not in uuids},
    )
    return delete_file(
        location,
        written.size_bytes,
        content=FileContent.EQUALITY_DELETES,
        spec_id=spec_id,
        partition=partition,
        equality_ids=tuple(field.field_id for field in columns.fields if field.name != beside),
        **entry_metrics(metrics),
    )


def _delete_column(schema: Schema, name: str) -> NestedField:
    by_name = {field.name: field for field in schema.fields}
    if name not in by_name:
        raise UnknownColumnError(name, by_name, where="the columns of an equality delete")
    field = by_name[name]
    if not isinstance(field.field_type, PrimitiveType):
        raise InvalidKeyError(
            f"column {name!r} is a {field.field_type}: rows cannot be deleted by a nested column. "
            "Use primitive columns."
        )
    if isinstance(field.field_type, FloatType | DoubleType):
        raise InvalidKeyError(
            f"column {name!r} is a {field.field_type}: rows cannot be deleted by equality of floating point values, "
            "which engines compare differently. Use other columns, or delete(where=...)."
        )
    if isinstance(field.field_type, UnknownType):
        raise InvalidKeyError(f"column {name!r} is of type unknown: no data file stores it. Use other columns.")
    return field
