"""Small keyed tables for the tests of maintenance jobs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

import tableformat as tf
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifest_list import manifests_of
from tableformat.metadata.manifest_reader import live_entries, read_manifest

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
