"""What a reader gets from a table, as JSON that two versions of the library write alike."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

import tableformat as tf


def expected_of(table: tf.Table) -> dict[str, Any]:
    """The schema, the refs, and the columns and rows of every snapshot, by its id."""
    metadata = table.metadata
    return {
        "format_version": metadata.format_version,
        "schema": [[field.field_id, field.name, str(field.field_type)] for field in metadata.schema().fields],
        "key": list(table.key),
        "refs": {name: [str(ref.snapshot_ref_type), str(ref.snapshot_id)] for name, ref in metadata.refs.items()},
        "snapshots": {str(each.snapshot_id): rows_of(table, each.snapshot_id) for each in metadata.snapshots},
    }


def rows_of(table: tf.Table, snapshot_id: int) -> dict[str, Any]:
    """Columns, and rows in an order of their own; from version 3 on with the ids of rows."""
    names = table.scan(snapshot_id=snapshot_id).to_arrow().column_names
    if table.metadata.format_version >= 3:
        names = [*names, "_row_id"]
    found = table.scan(snapshot_id=snapshot_id, columns=names).to_arrow()
    return {"columns": names, "rows": sorted((_row(found, n) for n in range(found.num_rows)), key=json.dumps)}


def _row(table: pa.Table, number: int) -> list[Any]:
    return [_as_json(column[number].as_py()) for column in table.columns]


def _as_json(value: Any) -> Any:
    """Numbers and text as they are; all others as Python shows them, which tells 0.0 from -0.0 and NaN from null."""
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
