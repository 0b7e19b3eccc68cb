"""Incremental reads: the rows that were appended between two snapshots.

`start-snapshot-id` and `end-snapshot-id` of Iceberg's Spark source: `spark.read.option("start-snapshot-id", 3)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyiceberg.table.snapshots import Operation, Snapshot

from spark_ext.service.states.option_values import number_of
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import lineage
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.older_files import met_by_deletes

START_SNAPSHOT_ID: Final = "start-snapshot-id"
END_SNAPSHOT_ID: Final = "end-snapshot-id"


def appended_files(view: SnapshotView, given: Mapping[str, str]) -> list[DataFile]:
    """SP-26: the data files of the appends after the first snapshot, up to the last one, oldest first.

    Raises InvalidArgumentError for an end without a start, and for a start that is not an ancestor of the end. Raises
    SnapshotNotFoundError for an unknown id, and UnsupportedFeatureError if a snapshot in between replaces rows.
    """
    start, end = number_of(given, START_SNAPSHOT_ID), number_of(given, END_SNAPSHOT_ID)
    if start is None:
        raise InvalidArgumentError(f"option {END_SNAPSHOT_ID} requires {START_SNAPSHOT_ID}, the start of the range.")
    last = _snapshot(view, end) if end is not None else view.snapshot
    _snapshot(view, start)
    path = lineage(view.metadata, last, start)
    if path is None:
        raise InvalidArgumentError(
            f"option {START_SNAPSHOT_ID}: snapshot {start} is not an ancestor of "
            f"{'the current snapshot' if last is None else last.snapshot_id}, so nothing was appended between them."
        )
    ordered = sorted(path, key=lambda snapshot: snapshot.sequence_number or 0)
    return [file for snapshot in ordered if _appends(snapshot) for file in _added(view, snapshot)]


def _snapshot(view: SnapshotView, snapshot_id: int) -> Snapshot:
    found = view.metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise SnapshotNotFoundError(f"no snapshot {snapshot_id}; it may have expired.")
    return found


def _appends(snapshot: Snapshot) -> bool:
    """Whether the rows of the snapshot are read. A snapshot that only deletes appends none. Raises
    UnsupportedFeatureError for a snapshot that replaces rows, which requires a read of changes."""
    operation = Operation.OVERWRITE if snapshot.summary is None else snapshot.summary.operation
    if operation is Operation.APPEND:
        return True
    if operation is Operation.DELETE or changes_no_row(snapshot):
        return False
    raise UnsupportedFeatureError(
        f"snapshot {snapshot.snapshot_id} replaces rows, which a read of appended rows cannot show. Read the "
        "changes: SELECT ... FROM t CHANGES FROM VERSION ... TO VERSION ..., or read between other snapshots."
    )


def _added(view: SnapshotView, snapshot: Snapshot) -> list[DataFile]:
    of_snapshot = view_at(view.metadata, view.io, snapshot.snapshot_id)
    added = [
        entry.file
        for manifest in manifests_of(of_snapshot)
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in read_manifest(view.io, manifest, view.metadata)
        if entry.status is EntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id
        if isinstance(entry.file, DataFile)
    ]
    if met := met_by_deletes(of_snapshot, added):
        raise UnsupportedFeatureError(
            f"snapshot {snapshot.snapshot_id} restored or carried {len(met)} data files whose rows are partly "
            f"deleted, such as {met[0].file_path}, but a read of appended rows does not apply deletes. Read the "
            "changes: SELECT ... FROM t CHANGES FROM VERSION ... TO VERSION ..., or read between other snapshots."
        )
    return added
