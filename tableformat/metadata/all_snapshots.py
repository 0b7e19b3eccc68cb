"""Metadata tables over all retained snapshots, with the columns of Iceberg's `all_` tables.

A manifest is read once, even if several snapshots have it. A file that several manifests name occurs once for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.metadata_tables import content_files_table, entries_in, live_files_in, manifests_in
from tableformat.metadata.snapshot_view import SnapshotView


def all_files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """Data files and delete files that are live in a manifest of a retained snapshot; columns as in `files_table`."""
    return _files(view, None, readable=readable)


def all_data_files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """The data files of all retained snapshots."""
    return _files(view, ManifestContent.DATA, readable=readable)


def all_delete_files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """The delete files of all retained snapshots."""
    return _files(view, ManifestContent.DELETES, readable=readable)


def all_entries_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """The entries of all manifests, including deleted ones; columns as in `entries_table`."""
    return entries_in(view, _manifests(view), readable=readable)


def all_manifests_table(view: SnapshotView) -> pa.Table:
    """The manifests of each retained snapshot, with its id in `reference_snapshot_id`; columns as in
    `manifests_table`."""
    pairs = [(snapshot_id, manifest) for snapshot_id, manifest in _references(view)]
    table = manifests_in(view, [manifest for _, manifest in pairs])
    ids = pa.array([snapshot_id for snapshot_id, _ in pairs], pa.int64())
    keys = pa.array([manifest.key_metadata for _, manifest in pairs], pa.binary())
    place = table.schema.get_field_index("sequence_number")
    table = table.add_column(place, pa.field("reference_snapshot_id", pa.int64(), nullable=False), ids)
    return table.add_column(place + 1, "key_metadata", keys)


def _files(view: SnapshotView, content: ManifestContent | None, *, readable: bool) -> pa.Table:
    return content_files_table(view.metadata, live_files_in(view, _manifests(view), content), readable=readable)


def _manifests(view: SnapshotView) -> list[ManifestFile]:
    """Each manifest once."""
    return list({manifest.manifest_path: manifest for _, manifest in _references(view)}.values())


def _references(view: SnapshotView) -> Iterator[tuple[int, ManifestFile]]:
    """A snapshot id and a manifest of the snapshot."""
    for snapshot in view.metadata.snapshots:
        for manifest in manifests_of(replace(view, snapshot=snapshot)):
            yield snapshot.snapshot_id, manifest
