"""All files that a table's metadata names, over all retained snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.properties import GC_ENABLED, may_remove_files


def reachable_files(metadata: TableMetadata, metadata_location: str, io: FileIO) -> frozenset[str]:
    """Locations of the metadata files, manifest lists, manifests, data files, delete files and statistics files."""
    return frozenset(_walk(metadata, metadata_location, io))


def files_to_purge(metadata: TableMetadata, metadata_location: str, io: FileIO, *, table: str) -> frozenset[str]:
    """The files to remove with the table. Raises UnsupportedFeatureError if they have to stay (MT-65)."""
    if not may_remove_files(metadata.properties):
        raise UnsupportedFeatureError(
            f"{table} cannot be purged: its property {GC_ENABLED} is false, because other tables may use its files. "
            "Nothing was changed. Drop the table without purge, which keeps all files, or remove the property first."
        )
    return reachable_files(metadata, metadata_location, io)


def _walk(metadata: TableMetadata, metadata_location: str, io: FileIO) -> Iterator[str]:
    yield metadata_location
    for logged in metadata.metadata_log:
        yield logged.metadata_file
    for statistics in (*metadata.statistics, *metadata.partition_statistics):
        yield statistics.statistics_path
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in read_manifest_list(io, snapshot.manifest_list):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            for entry in read_manifest(io, manifest, metadata):
                yield entry.file.file_path
