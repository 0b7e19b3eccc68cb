"""Decoded manifests that outlive the process, as Arrow IPC in the cache directory, if there is one (decision 17)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import pyarrow as pa

from tableformat.metadata.columns.raw_manifest import COLUMNS, RawManifest
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.storage.cache_directory import CacheDirectory
from tableformat.storage.location import local_path

_LAYOUT: Final = 1
"""Changes with the layout of a stored manifest. Other layouts are not found."""
_LOCAL_FILES_MIN: Final = 500
"""The number of data files from which a local manifest is stored. A manifest of an object store is always stored."""
_AVRO_SCHEMA: Final = b"avro.schema"


def stored_manifest(cache: CacheDirectory, manifest: ManifestFile, location: str, table: UUID) -> RawManifest | None:
    """The stored manifest, or None."""
    if not _is_worth_it(manifest, location):
        return None
    content = cache.get(_identity(manifest, location, table))
    if content is None:
        return None
    with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
        batch = stream.read_next_batch()
    return RawManifest(batch, batch.schema.metadata[_AVRO_SCHEMA])


def store_manifests(cache: CacheDirectory, found: Sequence[tuple[ManifestFile, str, RawManifest]], table: UUID) -> None:
    """Store decoded manifests with their locations. If the cache cannot be written, a warning is logged."""
    worth_it = [each for each in found if _is_worth_it(each[0], each[1])]
    if not worth_it:
        return
    try:
        for manifest, location, raw in worth_it:
            cache.put(_identity(manifest, location, table), _serialized(raw))
        cache.make_room()
    except OSError as error:
        warnings.warn(
            f"the cache directory {cache.path} cannot be written to: {error}. Planning continues without the cache.",
            RuntimeWarning,
            stacklevel=2,
        )


def _serialized(raw: RawManifest) -> memoryview:
    batch = raw.batch.replace_schema_metadata({_AVRO_SCHEMA: raw.avro_schema})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())


def _is_worth_it(manifest: ManifestFile, location: str) -> bool:
    if local_path(location) is None:
        return True
    return manifest.added_files_count + manifest.existing_files_count >= _LOCAL_FILES_MIN


def _identity(manifest: ManifestFile, location: str, table: UUID) -> str:
    """Manifests never change (FM-1). The table's identity is included for a location that is used a second time."""
    columns = ",".join(COLUMNS)
    return "\n".join(("manifest", str(_LAYOUT), columns, str(table), location, str(manifest.manifest_length_bytes)))
