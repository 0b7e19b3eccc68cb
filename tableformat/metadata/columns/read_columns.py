"""Reads the data files of manifests as columns, through caches, because manifests never change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from tableformat.errors import CorruptFileError
from tableformat.metadata.columns.avro_lanes import UnsupportedLayoutError
from tableformat.metadata.columns.data_columns import DataColumns, columns_of_files
from tableformat.metadata.columns.live_files import OddEntriesError, live_files
from tableformat.metadata.columns.raw_manifest import RawManifest, decode_manifests
from tableformat.metadata.columns.stored_manifests import store_manifests, stored_manifest
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.storage import storage
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.cache_directory import CacheDirectory

RAW_BYTES: Final = 128 * 1024 * 1024
"""The cache of decoded manifests."""
CHUNK_BYTES: Final = 320 * 1024 * 1024
"""The cache of columns of live files. A large manifest is a chunk of its own and shares the memory of its raw form."""
CHUNK_FILES: Final = 8_192
"""Small manifests are combined up to this number of files: an array operation costs as much for one file as for a
thousand."""
_CHUNK_OVERHEAD_BYTES: Final = 4096

_RawKey = tuple[str, int]
_raw: Final[BoundedCache[_RawKey, RawManifest]] = BoundedCache(RAW_BYTES)
_chunks: Final[BoundedCache[tuple[object, ...], DataColumns]] = BoundedCache(CHUNK_BYTES)


def read_data_columns(io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata) -> Iterator[DataColumns]:
    """The live data files of data manifests, in order, in chunks of many files. Each chunk is read on demand.

    Inherits numbers (DA-9) and raises errors like `read_manifest`.
    """
    return (_chunk(io, members, metadata) for members in _together(manifests))


def _together(manifests: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
    chunks: list[list[ManifestFile]] = []
    count = 0
    for manifest in manifests:
        size = manifest.added_files_count + manifest.existing_files_count
        if not chunks or count + size > CHUNK_FILES:
            chunks.append([])
            count = 0
        chunks[-1].append(manifest)
        count += size
    return chunks


def _chunk(io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata) -> DataColumns:
    specs = metadata.specs()
    key = tuple(
        (
            *_raw_key(io, manifest),
            manifest.sequence_number,
            manifest.first_row_id,
            specs.get(manifest.partition_spec_id),
        )
        for manifest in manifests
    )
    columns = _chunks.get(key)
    if columns is None:
        columns = _read_chunk(io, manifests, metadata)
        _chunks.put(key, columns, columns.size_bytes + _CHUNK_OVERHEAD_BYTES)
    return columns


def _read_chunk(io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata) -> DataColumns:
    specs = dict(metadata.specs())
    for manifest in manifests:
        if manifest.partition_spec_id not in specs:
            raise CorruptFileError(
                manifest.manifest_path, f"the table has no partition spec {manifest.partition_spec_id}."
            )
    try:
        return live_files(_raw_manifests(io, manifests, metadata), specs)
    except (UnsupportedLayoutError, OddEntriesError):
        # Rare layouts of other writers, and invalid entries: the object reader reports which entry is invalid and why.
        entries = [entry for manifest in manifests for entry in live_entries(read_manifest(io, manifest, metadata))]
        return columns_of_files([entry.file for entry in entries if isinstance(entry.file, DataFile)])


def _raw_manifests(
    io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata
) -> list[tuple[ManifestFile, RawManifest]]:
    stored = CacheDirectory.from_environment()
    found: dict[_RawKey, RawManifest] = {}
    missing: dict[_RawKey, ManifestFile] = {}
    for manifest in manifests:
        key = _raw_key(io, manifest)
        held = _raw.get(key)
        if held is None and stored is not None:
            held = stored_manifest(stored, manifest, key[0], metadata.table_uuid)
            if held is not None:
                _raw.put(key, held, held.size_bytes)
        if held is None:
            missing[key] = manifest
        else:
            found[key] = held
    decoded = decode_manifests(io, list(missing.values()))
    for key, raw in zip(missing, decoded, strict=True):
        found[key] = raw
        _raw.put(key, raw, raw.size_bytes)
    if stored is not None:
        new = [(manifest, key[0], found[key]) for key, manifest in missing.items()]
        store_manifests(stored, new, metadata.table_uuid)
    return [(manifest, found[_raw_key(io, manifest)]) for manifest in manifests]


def _raw_key(io: FileIO, manifest: ManifestFile) -> _RawKey:
    return storage.actual_location(io, manifest.manifest_path), manifest.manifest_length_bytes
