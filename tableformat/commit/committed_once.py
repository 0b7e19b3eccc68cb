"""Commits staged files of other processes once, even for a writer that does not name its batches (CP-23).

    new_write        table at sequence number 40
    write            files f, g                     no snapshot up to 40 can name them
    commit           snapshot 41, adds f, g
    commit again     the history of the head from 41 on is read: 41 has f, g

Snapshots from before the write are not read, so the cost of a commit depends on the commits since then, not on the size
of the table. For each snapshot, the entries that it added or removed itself are read. They never change, so they are
cached. They also show files that a job has removed since then. If expiry has cut the history, all entries of the oldest
remaining snapshot are read, and then the existence of the files is checked (CP-34).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import TableChange
from tableformat.errors import AlreadyCommittedError, InvalidArgumentError
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.metadata.manifests.manifest_list import had_parent, read_manifest_list
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.own_names import origins_in, with_origin_in
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.side_by_side import read_side_by_side
from tableformat.storage.storage import actual_location, exists

_CACHED_PATHS: Final = 200_000
_cache: Final[BoundedCache[str, frozenset[str]]] = BoundedCache(_CACHED_PATHS)


def check_committed_once(change: TableChange, head: SnapshotView, subject: str) -> None:
    """CP-23, LK-31: raise AlreadyCommittedError if the branch has, or had, a file that the change adopts.

    `subject` names the table and branch for the message.
    """
    origins = origins_in(change.adopted_paths)
    for snapshot, paths in named_since(head, change.adopted_since) if change.adopted_paths else ():
        found = sorted({*(change.adopted_paths & paths), *with_origin_in(paths if origins else (), origins)})
        if found:
            raise AlreadyCommittedError(
                f"{len(found)} of the staged files, including {found[0]}, were already committed to {subject} by "
                f"snapshot {snapshot.snapshot_id} or earlier. Nothing was changed. The files belong to the table, so "
                "do not commit or remove them. To make a commit repeatable, name it with application_id and batch_id.",
                file_paths=found,
                snapshot_id=snapshot.snapshot_id,
            )
    if not change.adopted_paths:
        return
    is_cut = is_cut_after(head, change.adopted_since)
    if is_cut:
        _check_retained(change, head, subject)
    gone = files_gone(head.io, change.adopted_paths)
    if gone and is_cut:
        raise _may_be_there(gone, "storage no longer has", subject, None)
    if gone:
        raise InvalidArgumentError(
            f"{len(gone)} of the files staged for {subject} do not exist any more, including {gone[0]}. Nothing was "
            "changed. `remove_orphan_files(allow_recent=True)` removes files that no snapshot references yet. Stage "
            "the rows again."
        )


def is_cut_after(head: SnapshotView, sequence_number: int) -> bool:
    """Whether snapshots of the history of the head with a higher number may have expired."""
    line = list(ancestors(head.metadata, head.snapshot))
    return bool(line) and (line[-1].sequence_number or 0) > sequence_number and had_parent(head.io, line[-1])


def _check_retained(change: TableChange, head: SnapshotView, subject: str) -> None:
    """CP-34, LK-31: raise AlreadyCommittedError if a tag or another branch keeps a snapshot that has one of the files.
    A file that a job removed, in a snapshot that has expired, is either in such a snapshot or deleted (CP-55)."""
    line = {snapshot.snapshot_id for snapshot in ancestors(head.metadata, head.snapshot)}
    for snapshot in head.metadata.snapshots:
        if snapshot.snapshot_id not in line and (snapshot.sequence_number or 0) > change.adopted_since:
            paths = frozenset(_all_paths(head.io, head.metadata, snapshot, change.adopted_since))
            kept = {*(change.adopted_paths & paths), *with_origin_in(paths, origins_in(change.adopted_paths))}
            if kept:
                raise _may_be_there(sorted(kept), f"snapshot {snapshot.snapshot_id} has", subject, snapshot.snapshot_id)


def files_gone(io: FileIO, paths: Iterable[str]) -> list[str]:
    """CP-55: the paths that do not exist. A check takes microseconds on a disk; an object store gets concurrent
    requests."""
    listed = sorted(paths)
    found = read_side_by_side(partial(exists, io), listed, str, lambda _: 0)
    return [path for path, is_there in zip(listed, found, strict=True) if not is_there]


def _may_be_there(paths: list[str], where: str, subject: str, snapshot_id: int | None) -> AlreadyCommittedError:
    return AlreadyCommittedError(
        f"{len(paths)} of the staged files may have been committed to {subject} before: {where} {paths[0]}, and "
        "snapshots committed since it was staged have expired. Nothing was changed. Look for the rows in the table, "
        "and write only the missing ones again.",
        file_paths=paths,
        snapshot_id=snapshot_id,
    )


def named_since(head: SnapshotView, sequence_number: int) -> Iterator[tuple[Snapshot, frozenset[str]]]:
    """The snapshots of the history of the head after that number, oldest first, each with the paths that it added or
    removed. The oldest retained snapshot comes with all paths that it lists."""
    line: list[Snapshot] = []
    for snapshot in ancestors(head.metadata, head.snapshot):
        if (snapshot.sequence_number or 0) <= sequence_number:
            break
        line.append(snapshot)
    else:
        if line:
            yield line[-1], frozenset(_all_paths(head.io, head.metadata, line.pop(), sequence_number))
    for snapshot in reversed(line):
        yield snapshot, _paths_of(head.io, head.metadata, snapshot)


def _paths_of(io: FileIO, metadata: TableMetadata, snapshot: Snapshot) -> frozenset[str]:
    """The files that the snapshot added or removed. They are cached, because a snapshot never changes."""
    key = actual_location(io, snapshot.manifest_list)
    paths = _cache.get(key)
    if paths is None:
        own = [
            manifest
            for manifest in read_manifest_list(io, snapshot.manifest_list)
            if manifest.added_snapshot_id == snapshot.snapshot_id and _tells_of_a_change(manifest)
        ]
        paths = frozenset(
            entry.file.file_path
            for manifest in own
            for entry in read_manifest(io, manifest, metadata)
            if entry.snapshot_id == snapshot.snapshot_id
        )
        _cache.put(key, paths, len(paths) + 1)
    return paths


def _all_paths(io: FileIO, metadata: TableMetadata, snapshot: Snapshot, sequence_number: int) -> Iterator[str]:
    """Every path in the manifests that were written after that number."""
    for manifest in read_manifest_list(io, snapshot.manifest_list):
        if (manifest.sequence_number or 0) > sequence_number:
            yield from (entry.file.file_path for entry in read_manifest(io, manifest, metadata))


def _tells_of_a_change(manifest: ManifestFile) -> bool:
    """Whether the manifest records a change, and is not only a merge of existing entries."""
    return manifest.added_files_count + manifest.deleted_files_count > 0
