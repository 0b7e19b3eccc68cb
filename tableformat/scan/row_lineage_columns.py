"""Row lineage columns of the rows of a data file. Values that the file does not store are inherited."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from tableformat.metadata.content_file import DataFile
from tableformat.metadata.row_lineage import (
    LAST_UPDATED_SEQUENCE_NUMBER,
    ROW_ID,
    ROW_LINEAGE_FIELDS,
    ROW_LINEAGE_NAMES,
    check_has_row_lineage,
    schema_with_row_lineage,
)


def selectable_columns(schema: Schema, columns: Sequence[str] | None, format_version: int) -> Schema:
    """The columns that a scan may name: the table's columns and, on a v3 table, the lineage columns if some are named.

    Raises UnsupportedFeatureError if a lineage column is named on a table without row lineage.
    """
    named = set(ROW_LINEAGE_NAMES).intersection(columns or ()) - {field.name for field in schema.fields}
    if not named or isinstance(columns, str):
        return schema
    check_has_row_lineage(format_version)
    return schema_with_row_lineage(schema)


def row_lineage_columns(schema: Schema) -> tuple[str, ...]:
    """Names of the lineage columns in a schema. A table's own column of such a name does not count."""
    reserved = {field.field_id for field in ROW_LINEAGE_FIELDS}
    return tuple(field.name for field in schema.fields if field.field_id in reserved)


def with_inherited_lineage(rows: pa.Table, names: Sequence[str], data: DataFile, start_row: int) -> pa.Table:
    """FM-20: the rows of `data` from position `start_row` on. Nulls in the named lineage columns become inherited
    values.

    A file without a first row id was written before version 3. Both columns are null there, even if it stores values.
    """
    for name in names:
        index = rows.schema.get_field_index(name)
        column = _inherited(rows.column(index), name, data, start_row)
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _inherited(stored: pa.ChunkedArray, name: str, data: DataFile, start_row: int) -> pa.ChunkedArray | pa.Array:
    if data.first_row_id is None:
        return pa.nulls(len(stored), pa.int64())
    if name == LAST_UPDATED_SEQUENCE_NUMBER.name:
        return pc.fill_null(stored, pa.scalar(data.sequence_number, pa.int64()))
    assert name == ROW_ID.name, f"{name} is not a lineage column"
    first = data.first_row_id + start_row
    inherited = pa.array(np.arange(first, first + len(stored), dtype=np.int64))
    return inherited if stored.null_count == len(stored) else pc.coalesce(stored, inherited)
