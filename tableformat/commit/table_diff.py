"""The difference between two snapshots of a table, file by file.

The difference compares live entries instead of "entries added by snapshot n": other writers merge and rewrite
manifests, and a rollback makes files live again. Manifests that both snapshots list are skipped, so the cost depends on
the change, not on the size of the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import FileKey, file_key
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_index import snapshots_by_id


@dataclass(frozen=True, slots=True)
class TableDiff:
    """Files that are live in exactly one of two snapshots."""

    added_data_files: tuple[DataFile, ...] = ()
    removed_data_files: tuple[DataFile, ...] = ()
    added_delete_files: tuple[DeleteFile, ...] = ()
    removed_delete_files: tuple[DeleteFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (
            self.added_data_files or self.removed_data_files or self.added_delete_files or self.removed_delete_files
        )


def manifests_of_snapshot(io: FileIO, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
    """The manifests that a snapshot lists; none without a snapshot."""
    return () if snapshot is None else read_manifest_list(io, snapshot.manifest_list)


def live_files(
    io: FileIO, metadata: TableMetadata, manifests: Iterable[ManifestFile], content: ManifestContent
) -> Iterator[DataFile | DeleteFile]:
    """The live files in the manifests of one kind."""
    for manifest in manifests:
        if manifest.content is content:
            for entry in live_entries(read_manifest(io, manifest, metadata)):
                yield entry.file


def diff_snapshots(io: FileIO, metadata: TableMetadata, before: Snapshot | None, after: Snapshot | None) -> TableDiff:
    """Files added and removed between two snapshots, regardless of their relation in history."""
    if before is not None and after is not None and before.snapshot_id == after.snapshot_id:
        return TableDiff()
    old = manifests_of_snapshot(io, before)
    new = manifests_of_snapshot(io, after)
    old_paths = {manifest.manifest_path for manifest in old}
    new_paths = {manifest.manifest_path for manifest in new}
    only_old = [manifest for manifest in old if manifest.manifest_path not in new_paths]
    only_new = [manifest for manifest in new if manifest.manifest_path not in old_paths]
    added_data, removed_data = _difference(io, metadata, only_old, only_new, ManifestContent.DATA)
    added_deletes, removed_deletes = _difference(io, metadata, only_old, only_new, ManifestContent.DELETES)
    return TableDiff(
        added_data_files=tuple(file for file in added_data if isinstance(file, DataFile)),
        removed_data_files=tuple(file for file in removed_data if isinstance(file, DataFile)),
        added_delete_files=tuple(file for file in added_deletes if isinstance(file, DeleteFile)),
        removed_delete_files=tuple(file for file in removed_deletes if isinstance(file, DeleteFile)),
    )


def _difference(
    io: FileIO,
    metadata: TableMetadata,
    old: Sequence[ManifestFile],
    new: Sequence[ManifestFile],
    content: ManifestContent,
) -> tuple[list[DataFile | DeleteFile], list[DataFile | DeleteFile]]:
    before = _by_entry(live_files(io, metadata, old, content))
    after = _by_entry(live_files(io, metadata, new, content))
    added = [file for key, files in after.items() for file in files[len(before.get(key, ())) :]]
    removed = [file for key, files in before.items() for file in files[len(after.get(key, ())) :]]
    return added, removed


def _by_entry(files: Iterable[DataFile | DeleteFile]) -> dict[tuple[FileKey, int | None], list[DataFile | DeleteFile]]:
    """Files by identity and sequence number, as lists, because other writers list a path more than once (MT-64)."""
    found: defaultdict[tuple[FileKey, int | None], list[DataFile | DeleteFile]] = defaultdict(list)
    for file in files:
        found[file_key(file), file.sequence_number].append(file)
    return found


def lineage(metadata: TableMetadata, head: Snapshot | None, planned_snapshot_id: int) -> list[Snapshot] | None:
    """Snapshots after the planned one up to the head, oldest first. None if the retained history of the head does not
    include the planned one (snapshots in between expired, or the branch was moved)."""
    by_id = snapshots_by_id(metadata)
    path: list[Snapshot] = []
    current = head
    while current is not None and current.snapshot_id != planned_snapshot_id:
        path.append(current)
        parent_id = current.parent_snapshot_id
        current = by_id.get(parent_id) if parent_id is not None else None
    return path[::-1] if current is not None else None


def delete_files_removed_along(
    io: FileIO, metadata: TableMetadata, planned: Snapshot | None, path: Sequence[Snapshot]
) -> tuple[DeleteFile, ...]:
    """Every delete file that was removed between two adjacent snapshots of the path, including those added after
    `planned`."""
    removed: list[DeleteFile] = []
    before = planned
    for after in path:
        removed.extend(diff_snapshots(io, metadata, before, after).removed_delete_files)
        before = after
    return tuple(removed)


def ancestors_of(metadata: TableMetadata, head: Snapshot | None) -> Iterator[Snapshot]:
    """The head and its retained ancestors, newest first."""
    by_id = snapshots_by_id(metadata)
    current = head
    while current is not None:
        yield current
        parent_id = current.parent_snapshot_id
        current = by_id.get(parent_id) if parent_id is not None else None
