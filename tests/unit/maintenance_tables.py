"""Small keyed tables for the tests of maintenance jobs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest

KEYED = pa.schema(
    [
        pa.field("id1", pa.string(), nullable=False),
        pa.field("id2", pa.int64(), nullable=False),
        pa.field("payload", pa.string()),
    ]
)
FAST = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "20"}


def keyed_table(directory: Path, *, partition_by: tuple[str, ...] = (), properties: dict[str, str] | None = None):
    """An empty table `db.t` with the key (id1, id2) in a catalog of its own."""
    catalog = tf.open_catalog(str(directory / "lake"))
    catalog.create_namespace("db", exist_ok=True)
    return catalog.create_table(
        "db.t", KEYED, key=["id1", "id2"], partition_by=partition_by, properties={**FAST, **(properties or {})}
    )


def rows(id1: str, ids: range | list[int], payload: str = "x") -> pa.Table:
    ids = list(ids)
    return pa.table({"id1": [id1] * len(ids), "id2": ids, "payload": [payload] * len(ids)}, schema=KEYED)


def contents(table: Any, **at: Any) -> list[tuple[str, int, str]]:
    """All rows in the order of the key."""
    found = table.scan(**at).to_arrow().sort_by([("id1", "ascending"), ("id2", "ascending")])
    return list(zip(*(found[name].to_pylist() for name in ("id1", "id2", "payload")), strict=True))


def files_on_disk(table: Any) -> set[str]:
    """Locations of everything below the table's directory."""
    root = table.location.removeprefix("file://")
    return {f"file://{folder}/{name}" for folder, _, names in os.walk(root) for name in names}


def live(table: Any) -> list[DataFile | DeleteFile]:
    """The live files of the handle's snapshot."""
    view = table.view
    return [
        entry.file
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]


def live_deletes(table: Any) -> list[DeleteFile]:
    return [file for file in live(table) if isinstance(file, DeleteFile)]


def data_of(table: tf.Table) -> list[DataFile]:
    return [file for file in live(table) if isinstance(file, DataFile)]


def planned(table: tf.Table) -> dict[str, Any]:
    return {"planned_snapshot_id": table.snapshot_id, "planned_sequence_number": table.view.sequence_number}


def commit_deletes(table: tf.Table, *deletes: DeleteFile) -> None:
    """What another writer may leave behind."""
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE, kind=ChangeKind.ROW_DELTA, **planned(table), added_delete_files=deletes
        ),
    )
    table.refresh()


def unnamed_position_delete(table: tf.Table, name: str, pairs: list[tuple[DataFile, int]]) -> DeleteFile:
    """As writers make it that cover a partition by one file: the entry names no data file."""
    location = f"{table.location}/data/{name}"
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    pairs = sorted(pairs, key=lambda pair: (pair[0].file_path, pair[1]))
    columns = {"file_path": [file.file_path for file, _ in pairs], "pos": [position for _, position in pairs]}
    path = Path(location.removeprefix("file://"))
    pq.write_table(pa.table(columns, schema=schema), path)
    return DeleteFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format="PARQUET",
        spec_id=pairs[0][0].spec_id,
        record_count=len(pairs),
        file_size_bytes=path.stat().st_size,
    )
