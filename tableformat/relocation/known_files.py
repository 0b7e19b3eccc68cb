"""`KnownFiles`: the files of an earlier relocation of the same table (LK-7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID
from tableformat.metadata.content_file import DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.relocation.manifest_paths import RewrittenDelete


@dataclass(frozen=True, slots=True)
class KnownFiles:
    """Files that are complete, because metadata in a catalog names them. They are not written again: readers of the
    target can continue during the update."""

    others: frozenset[str] = frozenset()
    """Metadata files, manifest lists, and files that do not change."""
    manifest_sizes: Mapping[str, int] = field(default_factory=dict)
    """In bytes."""
    row_deletes: Mapping[str, RewrittenDelete] = field(default_factory=dict)

    @staticmethod
    def of(metadata: TableMetadata, metadata_location: str, io: FileIO) -> KnownFiles:
        """Raises CorruptFileError for metadata that cannot be read."""
        others = {metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
        sizes: dict[str, int] = {}
        row_deletes: dict[str, RewrittenDelete] = {}
        for snapshot in metadata.snapshots:
            others.add(snapshot.manifest_list)
            for manifest in read_manifest_list(io, snapshot.manifest_list):
                if manifest.manifest_path in sizes:
                    continue
                sizes[manifest.manifest_path] = manifest.manifest_length_bytes
                for entry in live_entries(read_manifest(io, manifest, metadata)):
                    file = entry.file
                    if isinstance(file, DeleteFile) and file.content is FileContent.POSITION_DELETES:
                        row_deletes[file.file_path] = _row_delete(file)
                    else:
                        others.add(file.file_path)
        return KnownFiles(frozenset(others), sizes, row_deletes)


def _row_delete(file: DeleteFile) -> RewrittenDelete:
    lowest = (file.lower_bounds or {}).get(FILE_PATH_FIELD_ID)
    highest = (file.upper_bounds or {}).get(FILE_PATH_FIELD_ID)
    return RewrittenDelete(
        file.file_path,
        file.file_size_bytes,
        None if lowest is None else lowest.decode(),
        None if highest is None else highest.decode(),
    )
