"""Tables of both format versions, written through the public API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import tableformat as tf
from tableformat.metadata.content_file import DeleteFile
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples

SCHEMA = pa.schema(
    [
        pa.field("region", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("note", pa.string()),
    ]
)


def new_catalog(directory: Path) -> tf.Catalog:
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db", exist_ok=True)
    return catalog


def new_table(
    catalog: tf.Catalog, version: int = 3, *, name: str = "t", partition_by: Sequence[str] = (), **properties: str
) -> tf.Table:
    return catalog.create_table(
        f"db.{name}",
        SCHEMA,
        key=["region", "id"],
        partition_by=partition_by,
        properties={"format-version": str(version), "commit.retry.min-wait-ms": "1", **properties},
    )


def rows(region: str, *ids: int, note: str = "") -> pa.Table:
    columns = {"region": [region] * len(ids), "id": list(ids), "note": [f"{note}{region}{number}" for number in ids]}
    return pa.table(columns, schema=SCHEMA)


def ids(table: tf.Table, **scan: Any) -> list[tuple[str, int]]:
    """(region, id) of every row, sorted."""
    return live_tuples(table, columns=["region", "id"], **scan)


def vectors(table: tf.Table) -> dict[str | None, DeleteFile]:
    """The live deletion vectors by data file; fails if a data file has two."""
    deletes = [delete for delete in live_delete_files(table) if delete.file_format == "PUFFIN"]
    by_path = {delete.referenced_data_file: delete for delete in deletes}
    assert len(by_path) == len(deletes)
    return by_path
