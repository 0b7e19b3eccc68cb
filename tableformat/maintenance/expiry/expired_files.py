"""Finds and removes the files that only expired snapshots need."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.maintenance.running.progress import Progress, silent
from tableformat.metadata.content_file import ContentFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.owned_files import OwnedFiles
from tableformat.storage.location import local_path
from tableformat.storage.storage import same_places, size_bytes

logger = logging.getLogger(__name__)

_REMOTE_REMOVERS: Final = 16
"""The number of files in an object store that are removed concurrently."""
UNNEEDED_FILES: Final = "unneeded files"
"""The unit in which the progress of a removal is counted."""


class FileRole(Enum):
    """The role of a file in the table."""

    DATA = "data file"
    POSITION_DELETES = "position delete file"
    """Includes deletion vectors."""
    EQUALITY_DELETES = "equality delete file"
    RANGE_DELETES = "range delete file"
    MANIFEST = "manifest"
    MANIFEST_LIST = "manifest list"
    STATISTICS = "statistics file"


@dataclass(frozen=True, slots=True)
class UnneededFile:
    """A file that no retained snapshot needs."""

    location: str
    role: FileRole
    size_bytes: int


def unneeded_files(
    io: FileIO, before: TableMetadata, after: TableMetadata, expired: Collection[int]
) -> tuple[UnneededFile, ...]:
    """MT-3: the files named by the expired snapshots of `before`, without the files that the snapshots of `after` need.

    A retained snapshot needs its live files, and so does the change feed (CF-8). A file that it lists as deleted is
    needed only by older snapshots. Data and delete files come first and manifest lists last, so that the rest of an
    interrupted removal can still be found, in the same order. A file that was added again with another spelling of its
    location, or through a link, counts as the same file.

    Raises CorruptFileError if a manifest cannot be read, because the files that it names are then unknown.
    """
    lists = {snapshot.manifest_list for snapshot in before.snapshots if snapshot.snapshot_id in expired}
    kept_lists = {snapshot.manifest_list for snapshot in after.snapshots}
    candidates = _manifests(io, sorted(lists - kept_lists))
    kept_manifests = _manifests(io, sorted(kept_lists))
    gone_manifests = [manifest for path, manifest in candidates.items() if path not in kept_manifests]
    content = {
        entry.file.file_path: entry.file for manifest in gone_manifests for entry in read_manifest(io, manifest, before)
    }
    if content:
        names = {posixpath.basename(path) for path in content}
        others: set[str] = set()
        for manifest in kept_manifests.values():
            for entry in live_entries(read_manifest(io, manifest, after)):
                path = entry.file.file_path
                if content.pop(path, None) is None and posixpath.basename(path) in names:
                    others.add(path)
        for path in same_places(io, content, others):
            del content[path]
    return (
        *(UnneededFile(path, _role(file), file.file_size_bytes) for path, file in content.items()),
        *_statistics(before, after),
        *(
            UnneededFile(manifest.manifest_path, FileRole.MANIFEST, manifest.manifest_length_bytes)
            for manifest in gone_manifests
        ),
        *(
            UnneededFile(location, FileRole.MANIFEST_LIST, size_bytes(io, location) or 0)
            for location in sorted(lists - kept_lists)
        ),
    )


def split_foreign(
    owned: OwnedFiles, files: Collection[UnneededFile]
) -> tuple[tuple[UnneededFile, ...], tuple[str, ...]]:
    """MT-53: the files that may be removed, and the sorted locations of the others."""
    foreign = owned.foreign(file.location for file in files)
    return tuple(file for file in files if file.location not in foreign), tuple(sorted(foreign))


def remove_files(
    owned: OwnedFiles, files: Collection[UnneededFile], progress: Progress | None
) -> tuple[UnneededFile, ...]:
    """Remove the files by role, in the given order. Files that could not be removed are returned and logged.

    An exception of `progress` stops the removal. The removal of orphan files finds the rest.
    """
    left: list[UnneededFile] = []
    done = 0
    tell = progress or silent
    tell(0, len(files), UNNEEDED_FILES)
    with ThreadPoolExecutor(_REMOTE_REMOVERS) as pool:
        for batch in _batches_of_one_role(files):
            is_local = all(local_path(file.location) is not None for file in batch)
            removed = (map if is_local else pool.map)(partial(_remove, owned), batch)
            left.extend(file for file, is_removed in zip(batch, removed, strict=True) if not is_removed)
            done += len(batch)
            tell(done, len(files), UNNEEDED_FILES)
    return tuple(left)


def _remove(owned: OwnedFiles, file: UnneededFile) -> bool:
    try:
        return owned.remove(file.location)
    except OSError:
        # The snapshots are already gone, and the caller gets the remaining files, so the first error does not stop the
        # removal.
        logger.warning("could not remove %s", file.location, exc_info=True)
        return False


def _batches_of_one_role(files: Iterable[UnneededFile], batch_size: int = 1_000) -> Iterator[list[UnneededFile]]:
    batch: list[UnneededFile] = []
    for file in files:
        if batch and (batch[0].role is not file.role or len(batch) >= batch_size):
            yield batch
            batch = []
        batch.append(file)
    if batch:
        yield batch


def _manifests(io: FileIO, lists: Iterable[str]) -> dict[str, ManifestFile]:
    return {manifest.manifest_path: manifest for location in lists for manifest in read_manifest_list(io, location)}


def _statistics(before: TableMetadata, after: TableMetadata) -> Iterator[UnneededFile]:
    kept = {file.statistics_path for file in (*after.statistics, *after.partition_statistics)}
    gone = {file.statistics_path: file for file in (*before.statistics, *before.partition_statistics)}
    for path, file in gone.items():
        if path not in kept:
            yield UnneededFile(path, FileRole.STATISTICS, file.file_size_in_bytes)


def _role(file: ContentFile) -> FileRole:
    if not isinstance(file, DeleteFile):
        return FileRole.DATA
    match file.kind:
        case DeleteKind.POSITION | DeleteKind.DELETION_VECTOR:
            return FileRole.POSITION_DELETES
        case DeleteKind.EQUALITY:
            return FileRole.EQUALITY_DELETES
        case DeleteKind.RANGE:
            return FileRole.RANGE_DELETES
