"""Removes deletion vectors together with their data files."""

from __future__ import annotations

from dataclasses import replace

from tableformat.commit.change import TableChange, file_keys
from tableformat.commit.table_diff import live_files
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_view import SnapshotView


def with_vectors_of_removed_data(change: TableChange, head: SnapshotView) -> TableChange:
    """CP-20: the change that also removes the vectors of the data files that it removes.

    Source: Iceberg table specification, "Deletion Vectors": the removal of a data file must remove its vector's entry.
    """
    if head.metadata.format_version < 3 or not change.removed_data_files:
        return change
    leaving = {data.file_path for data in change.removed_data_files}
    named = file_keys(change.removed_delete_files)
    vectors = tuple(
        delete
        for delete in live_files(head.io, head.metadata, manifests_of(head), ManifestContent.DELETES)
        if isinstance(delete, DeleteFile)
        and delete.kind is DeleteKind.DELETION_VECTOR
        and delete.referenced_data_file in leaving
        and (delete.file_path, delete.content_offset) not in named
    )
    return replace(change, removed_delete_files=(*change.removed_delete_files, *vectors)) if vectors else change
