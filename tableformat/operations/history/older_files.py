"""Older files that a snapshot adds: restored ranges (RP-13), rows carried to a branch (MT-31)."""

from __future__ import annotations

from collections.abc import Sequence

from tableformat.commit.table_diff import live_files
from tableformat.merge_on_read.applicable_deletes import reached_data_files
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_view import SnapshotView


def met_by_deletes(view: SnapshotView, added: Sequence[DataFile]) -> list[DataFile]:
    """The files added by the snapshot that its own deletes may reach, so that some of their rows may be deleted. A file
    with the sequence number of the snapshot is newer than its keyed deletes, and no position delete names it yet
    (DA-1)."""
    older = [data for data in added if data.sequence_number != view.sequence_number]
    if not older:
        return []
    live = live_files(view.io, view.metadata, manifests_of(view), ManifestContent.DELETES)
    return reached_data_files(view.metadata, older, [file for file in live if isinstance(file, DeleteFile)])
