"""Reads manifests of any writer, v1 to v3, into entries with inherited sequence numbers.

Source: Iceberg table specification, "Manifests", "Sequence Number Inheritance" and "First Row ID Inheritance".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastavro.schema import SchemaParseException
from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import make_compatible_name
from pyiceberg.table.metadata import TableMetadata

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.content_file import (
    PARQUET,
    PUFFIN,
    RANGE_DELETES_PARQUET,
    DataFile,
    DeleteFile,
    FileContent,
)
from tableformat.metadata.manifests.avro_container import (
    DECODING_ERRORS,
    Container,
    RecordCodec,
    decode_records,
    read_container,
)
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_schema import Converter, rename_by_field_id
from tableformat.properties import inflated_bytes_max
from tableformat.storage import storage
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.outage import raise_unless_damage

CACHE_BYTES: Final = 32 * 1024 * 1024
"""The size of decompressed Avro whose entries are cached. As Python objects they use about five times as much."""

_ENTRY_OVERHEAD_BYTES: Final = 256
_STATUSES: Final = {int(status): status for status in EntryStatus}
_DELETE_FORMATS: Final = {
    FileContent.POSITION_DELETES: frozenset({PARQUET, PUFFIN, "ORC", "AVRO"}),
    FileContent.EQUALITY_DELETES: frozenset({PARQUET, RANGE_DELETES_PARQUET, "ORC", "AVRO"}),
}
_CONTENTS: Final = {int(content): content for content in FileContent}
_cache: Final[BoundedCache[tuple[object, ...], tuple[ManifestEntry, ...]]] = BoundedCache(CACHE_BYTES)


@dataclass(frozen=True, slots=True)
class EntryLayout:
    """The layout of a schema in manifest headers, computed once for all manifests with this schema."""

    codec: RecordCodec
    partition: Mapping[int | str, tuple[str, Converter | None]]


def read_manifest(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> tuple[ManifestEntry, ...]:
    """DA-9: all entries of a manifest, including deleted ones, with inherited numbers; cached.

    A null data or file sequence number of an ADDED entry is that of the manifest. EXISTING and DELETED entries have
    both, except in v1 manifests, whose number is 0. Raises CorruptFileError, which names the manifest.
    """
    location = manifest.manifest_path
    key = (
        storage.actual_location(io, location),
        manifest.manifest_length_bytes,
        manifest.sequence_number,
        manifest.first_row_id,
    )
    cached = _cache.get(key)
    if cached is not None:
        return cached
    entries, decoded_bytes = _decoded(io, manifest, metadata)
    _cache.put(key, entries, decoded_bytes + _ENTRY_OVERHEAD_BYTES * len(entries))
    return entries


def decode_manifest(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> tuple[ManifestEntry, ...]:
    """The result of `read_manifest`, from the current file."""
    return _decoded(io, manifest, metadata)[0]


def _decoded(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> tuple[tuple[ManifestEntry, ...], int]:
    """The entries, and the size of their decompressed records."""
    location = manifest.manifest_path
    spec = metadata.specs().get(manifest.partition_spec_id)
    if spec is None:
        raise CorruptFileError(location, f"the table has no partition spec {manifest.partition_spec_id}.")
    container = read_container(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties))
    layout = layout_of(container)
    records = decode_records(container, layout.codec)
    try:
        entries = _entries(records, manifest, spec, layout)
    except DECODING_ERRORS as error:
        raise_unless_damage(location, error)
        reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise CorruptFileError(location, f"its entries are not entries of a manifest ({reason}).") from error
    return entries, container.decoded_bytes


def live_entries(entries: Iterable[ManifestEntry]) -> tuple[ManifestEntry, ...]:
    """The entries whose files belong to the snapshot."""
    return tuple(entry for entry in entries if entry.status is not EntryStatus.DELETED)


def layout_of(container: Container) -> EntryLayout:
    """The layout of the container's records, for any field names."""
    schema = container.metadata.get("avro.schema")
    if schema is None:
        raise CorruptFileError(container.location, "its header has no Avro schema.")
    return layout_of_schema(schema, container.location)


def layout_of_schema(avro_schema: bytes, location: str) -> EntryLayout:
    """The layout of records of an Avro schema; `location` is for messages."""
    try:
        return _layout(avro_schema)
    except (*DECODING_ERRORS, SchemaParseException) as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"the Avro schema in its header is damaged ({error}).") from error


@lru_cache(maxsize=512)
def _layout(schema: bytes) -> EntryLayout:
    renamed = rename_by_field_id(json.loads(schema))
    return EntryLayout(RecordCodec.of(renamed.schema), renamed.partition)


def _entries(
    records: Sequence[Mapping[str, Any]], manifest: ManifestFile, spec: PartitionSpec, layout: EntryLayout
) -> tuple[ManifestEntry, ...]:
    places = partition_fields(spec, layout, manifest.manifest_path)
    next_row_id = manifest.first_row_id
    entries = []
    for record in records:
        status = _STATUSES[record["status"]]
        stored = record["data_file"]
        if status is not EntryStatus.DELETED:
            _check_delete_format(stored, manifest)
        snapshot_id = record.get("snapshot_id")
        row_id = stored.get("first_row_id")
        if row_id is None and next_row_id is not None and status is not EntryStatus.DELETED:
            row_id = next_row_id
            next_row_id += stored["record_count"]
        file = _content_file(
            stored,
            manifest,
            partition=_partition(stored.get("partition") or {}, places),
            sequence_number=_inherited(record.get("sequence_number"), status, manifest),
            file_sequence_number=_inherited(record.get("file_sequence_number"), status, manifest),
            first_row_id=row_id,
        )
        entries.append(ManifestEntry(status, manifest.added_snapshot_id if snapshot_id is None else snapshot_id, file))
    return tuple(entries)


def _inherited(number: int | None, status: EntryStatus, manifest: ManifestFile) -> int | None:
    """DA-9: a null number is that of the manifest, for ADDED entries and for every entry of a v1 manifest."""
    if number is not None:
        return number
    if status is EntryStatus.ADDED or manifest.sequence_number == 0:
        return manifest.sequence_number
    raise CorruptFileError(
        manifest.manifest_path,
        f"an entry with status {status.name} has no sequence number; only ADDED entries inherit it.",
    )


def partition_fields(
    spec: PartitionSpec, layout: EntryLayout, location: str
) -> tuple[tuple[str, Converter | None], ...]:
    """The positions of the spec's fields in a decoded record, in the order of the spec."""
    fields = []
    for field in spec.fields:
        found = (
            layout.partition.get(field.field_id)
            or layout.partition.get(field.name)
            or layout.partition.get(make_compatible_name(field.name))
        )
        if found is None:
            raise CorruptFileError(location, f"its entries lack partition field {field.name!r} ({field.field_id}).")
        fields.append(found)
    return tuple(fields)


def _partition(stored: Mapping[str, Any], fields: tuple[tuple[str, Converter | None], ...]) -> tuple[Any, ...]:
    values = []
    for name, convert in fields:
        value = stored[name]
        values.append(value if convert is None or value is None else convert(value))
    return tuple(values)


def _content_file(
    stored: Mapping[str, Any],
    manifest: ManifestFile,
    *,
    partition: tuple[Any, ...],
    sequence_number: int | None,
    file_sequence_number: int | None,
    first_row_id: int | None,
) -> DataFile | DeleteFile:
    content = _content(stored, manifest)
    split_offsets = stored.get("split_offsets")
    common: dict[str, Any] = {
        "file_path": stored["file_path"],
        "file_format": stored["file_format"].upper(),
        "spec_id": manifest.partition_spec_id,
        "partition": partition,
        "record_count": stored["record_count"],
        "file_size_bytes": stored["file_size_in_bytes"],
        "sequence_number": sequence_number,
        "file_sequence_number": file_sequence_number,
        "column_sizes": _mapping(stored.get("column_sizes")),
        "value_counts": _mapping(stored.get("value_counts")),
        "null_value_counts": _mapping(stored.get("null_value_counts")),
        "nan_value_counts": _mapping(stored.get("nan_value_counts")),
        "lower_bounds": _mapping(stored.get("lower_bounds")),
        "upper_bounds": _mapping(stored.get("upper_bounds")),
        "key_metadata": stored.get("key_metadata"),
        "split_offsets": None if split_offsets is None else tuple(split_offsets),
        "sort_order_id": stored.get("sort_order_id"),
    }
    if content is FileContent.DATA:
        return DataFile(**common, first_row_id=first_row_id)
    return DeleteFile(
        **common,
        content=content,
        equality_ids=_equality_ids(stored, content, manifest),
        referenced_data_file=stored.get("referenced_data_file"),
        content_offset=stored.get("content_offset"),
        content_size_bytes=stored.get("content_size_in_bytes"),
        range_spans=stored.get("range_spans"),
    )


def _check_delete_format(stored: Mapping[str, Any], manifest: ManifestFile) -> None:
    """FM-17: a delete file in an unknown format may follow unknown rules, so its bounds must not exclude it. Known
    formats that cannot be read (ORC, Avro) follow the known rules, and fail when they are opened."""
    known = _DELETE_FORMATS.get(stored.get("content", 0))
    if known is not None and stored["file_format"].upper() not in known:
        raise UnsupportedFeatureError(
            f"{manifest.manifest_path}: {stored['file_path']} is a delete file of format {stored['file_format']}, "
            "which this version of the library does not know, so deleted rows cannot be recognised. Read the table "
            "with a newer version of the library, or with the engine that wrote it."
        )


def _content(stored: Mapping[str, Any], manifest: ManifestFile) -> FileContent:
    """FM-17: the kind of the file. An unknown kind, or one in the wrong manifest, must not be read as another kind."""
    number = stored.get("content", 0)
    content = _CONTENTS.get(number)
    if content is None:
        raise UnsupportedFeatureError(
            f"{manifest.manifest_path}: {stored['file_path']} has content {number}, which this version of the "
            "library does not know, so deleted rows cannot be recognised."
        )
    if (content is FileContent.DATA) != (manifest.content is ManifestContent.DATA):
        raise CorruptFileError(
            manifest.manifest_path,
            f"{stored['file_path']} is a {content.name} file in a manifest of {manifest.content.name} files.",
        )
    return content


def _equality_ids(stored: Mapping[str, Any], content: FileContent, manifest: ManifestFile) -> tuple[int, ...] | None:
    """RD-6: equality and range deletes name their columns, in the stored order."""
    ids = stored.get("equality_ids")
    if content is not FileContent.EQUALITY_DELETES:
        return None
    if not ids:
        raise CorruptFileError(
            manifest.manifest_path, f"equality delete file {stored['file_path']} has no equality ids."
        )
    return tuple(ids)


def _mapping(stored: Any) -> dict[int, Any] | None:
    """A map of column ids. Avro stores it as an array of pairs, or as a map, whose keys can only be strings."""
    if stored is None:
        return None
    if isinstance(stored, dict):
        return {int(key): value for key, value in stored.items()}
    return {pair["key"]: pair["value"] for pair in stored}
