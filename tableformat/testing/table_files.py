"""Files of a table: the live files in a snapshot's manifests, and the files in its directory."""

from __future__ import annotations

import os

from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.table import Table


def live_files(table: Table) -> list[DataFile | DeleteFile]:
    """The data and delete files of the handle's snapshot."""
    view = table.view
    return [
        entry.file
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]


def live_data_files(table: Table) -> list[DataFile]:
    """The data files of the handle's snapshot, in the order of its manifests."""
    return [file for file in live_files(table) if isinstance(file, DataFile)]


def live_delete_files(table: Table) -> list[DeleteFile]:
    """The delete files of every kind of the handle's snapshot, in the order of its manifests."""
    return [file for file in live_files(table) if isinstance(file, DeleteFile)]


def files_on_disk(table: Table, suffix: str = "") -> set[str]:
    """Locations with this suffix below the local directory of a table, whether metadata names them or not."""
    root = table.location.removeprefix("file://")
    return {f"file://{folder}/{name}" for folder, _, names in os.walk(root) for name in names if name.endswith(suffix)}
