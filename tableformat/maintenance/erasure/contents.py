"""Everything that the snapshots of a table name: manifests, data files and delete files, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.commit.change import FileKey, file_key
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import decode_manifest_list
from tableformat.metadata.manifests.manifest_reader import decode_manifest, live_entries

ManifestKey = tuple[str, int | None]
"""The location of a manifest, and the row id that its list gives to its first row: lists from before an upgrade to
version 3 give none."""


@dataclass(frozen=True, slots=True)
class TableContents:
    """All retained snapshots of a table."""

    lists: Mapping[str, tuple[ManifestFile, ...]]
    """By the location of the manifest list."""
    manifests: Mapping[ManifestKey, tuple[ManifestFile, tuple[ManifestEntry, ...]]]
    data_files: Mapping[str, DataFile]
    """Files that are live in a snapshot, by location."""
    delete_files: Mapping[FileKey, DeleteFile]
    """Files and deletion vectors that are live in a snapshot."""
    ambiguous_row_ids: frozenset[str]
    """Data files to which two lines of snapshots gave different row ids, after an upgrade to version 3."""

    @property
    def entries(self) -> Iterator[ManifestEntry]:
        """All entries, including those of removed files."""
        for _, entries in self.manifests.values():
            yield from entries


def manifest_key(manifest: ManifestFile) -> ManifestKey:
    return manifest.manifest_path, manifest.first_row_id


def read_contents(metadata: TableMetadata, io: FileIO) -> TableContents:
    """MT-112: the contents of all snapshots: of branches, tags, staged snapshots and retired ranges. Caches are not
    used.

    Raises CorruptFileError if a file of the metadata cannot be read.
    """
    lists = {each: decode_manifest_list(io, each) for each in sorted({one.manifest_list for one in metadata.snapshots})}
    manifests: dict[ManifestKey, tuple[ManifestFile, tuple[ManifestEntry, ...]]] = {}
    data_files: dict[str, DataFile] = {}
    delete_files: dict[FileKey, DeleteFile] = {}
    ambiguous: set[str] = set()
    for listed in lists.values():
        for manifest in listed:
            if manifest_key(manifest) in manifests:
                continue
            entries = decode_manifest(io, manifest, metadata)
            manifests[manifest_key(manifest)] = manifest, entries
            for entry in live_entries(entries):
                if isinstance(entry.file, DataFile):
                    _add(data_files, ambiguous, entry.file)
                else:
                    delete_files.setdefault(file_key(entry.file), entry.file)
    return TableContents(lists, manifests, data_files, delete_files, frozenset(ambiguous))


def _add(data_files: dict[str, DataFile], ambiguous: set[str], file: DataFile) -> None:
    known = data_files.setdefault(file.file_path, file)
    if known.first_row_id == file.first_row_id or file.first_row_id is None:
        return
    if known.first_row_id is not None:
        ambiguous.add(file.file_path)
    data_files[file.file_path] = file
