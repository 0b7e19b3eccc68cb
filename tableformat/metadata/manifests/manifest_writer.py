"""Writes manifests of format versions 2 and 3, for data files and for delete files.

Source: Iceberg table specification, "Manifests". PyIceberg 0.12 writes neither delete manifests nor v3, and it writes
equality ids as `list<long>`, with which Java readers fail.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile, DeleteKind, FileContent
from tableformat.metadata.manifests.avro_container import RecordCodec, header_bytes, write_container
from tableformat.metadata.manifests.manifest_entry import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
)
from tableformat.metadata.manifests.manifest_schema import (
    Converter,
    entry_schema,
    partition_avro_fields,
    partition_types,
    rename_by_field_id,
    to_avro_value,
)
from tableformat.storage import storage
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.side_by_side import WriteBytes


@dataclass(frozen=True, slots=True)
class _Layout:
    """The common parts of all manifests of one spec, schema, content and version."""

    header: bytes
    codec: RecordCodec
    types: tuple[PrimitiveType, ...]
    partition: tuple[tuple[str, Converter | None], ...]
    """Name of the partition field in a record, and the conversion of its value."""


_layouts: Final[BoundedCache[tuple[object, ...], _Layout]] = BoundedCache(256)
_FORMAT_VERSIONS: Final = (2, 3)


def write_manifest(
    io: FileIO,
    location: str,
    *,
    entries: Sequence[ManifestEntry],
    content: ManifestContent,
    spec: PartitionSpec,
    schema: Schema,
    format_version: int,
    snapshot_id: int,
    older_schemas: Sequence[Schema] = (),
    write: WriteBytes | None = None,
) -> ManifestFile:
    """Write the entries as one manifest of `spec`, to be added by snapshot `snapshot_id`.

    DA-9: a null sequence number stays null, which means the number of the commit. Only an ADDED entry may have one; a
    rewrite may give ADDED entries an explicit older number. `older_schemas` are those of the table, newest first, for a
    spec whose source column was dropped. The manifest's own sequence number is None until its list is written. `write`
    belongs to `writes_side_by_side`, for a file that is uploaded later.
    """
    deletes = [entry.file for entry in entries if isinstance(entry.file, DeleteFile)]
    layout = _layout(
        spec,
        (schema, *older_schemas),
        content,
        format_version,
        has_range_deletes=any(delete.kind is DeleteKind.RANGE for delete in deletes),
        has_range_spans=any(delete.range_spans for delete in deletes),
    )
    records = [_record(entry, content, spec, layout, format_version) for entry in entries]
    data = write_container(layout.header, layout.codec, records)
    length = storage.write_bytes(io, location, data) if write is None else write(location, data)
    files = {status: [entry.file for entry in entries if entry.status is status] for status in EntryStatus}
    return ManifestFile(
        manifest_path=location,
        manifest_length_bytes=length,
        partition_spec_id=spec.spec_id,
        content=content,
        sequence_number=None,
        min_sequence_number=_min_sequence_number(files[EntryStatus.ADDED] + files[EntryStatus.EXISTING]),
        added_snapshot_id=snapshot_id,
        added_files_count=len(files[EntryStatus.ADDED]),
        existing_files_count=len(files[EntryStatus.EXISTING]),
        deleted_files_count=len(files[EntryStatus.DELETED]),
        added_rows_count=_row_count(files[EntryStatus.ADDED]),
        existing_rows_count=_row_count(files[EntryStatus.EXISTING]),
        deleted_rows_count=_row_count(files[EntryStatus.DELETED]),
        partitions=partition_summaries([entry.file.partition for entry in entries], layout.types),
    )


def refuse_other_readers(header: dict[str, str]) -> None:
    """RD-6: removes the spec from the header of a manifest with range deletes. Readers that match deletes only by
    partition, and never open a range delete file, need the spec and fail. Other readers take the spec from the table.
    """
    header.pop("partition-spec", None)


def partition_summaries(
    partitions: Sequence[tuple[Any, ...]], types: tuple[PrimitiveType, ...]
) -> tuple[PartitionFieldSummary, ...]:
    """For each partition field: whether null or NaN occurs, and the least and greatest other value."""
    return tuple(
        _summary([partition[position] for partition in partitions], field_type)
        for position, field_type in enumerate(types)
    )


def _layout(
    spec: PartitionSpec,
    schemas: tuple[Schema, ...],
    content: ManifestContent,
    format_version: int,
    *,
    has_range_deletes: bool,
    has_range_spans: bool,
) -> _Layout:
    if format_version not in _FORMAT_VERSIONS:
        raise UnsupportedFeatureError(f"manifests are written in format versions 2 and 3, not {format_version}.")
    schema_text = schemas[0].model_dump_json()
    spec_text = spec.model_dump_json()
    types = partition_types(spec, schemas)
    # Types are part of the cache key: a dropped source column is in no current schema, and another table has other
    # types.
    key = (schema_text, spec_text, tuple(map(str, types)), content, format_version, has_range_deletes, has_range_spans)
    layout = _layouts.get(key)
    if layout is None:
        avro_schema = entry_schema(format_version, partition_avro_fields(spec, types), has_range_spans=has_range_spans)
        renamed = rename_by_field_id(avro_schema)
        header = {
            "avro.schema": json.dumps(avro_schema, separators=(",", ":")),
            "schema": schema_text,
            "schema-id": str(schemas[0].schema_id),
            "partition-spec": json.dumps(json.loads(spec_text)["fields"], separators=(",", ":")),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(format_version),
            "content": content.name.lower(),
        }
        if has_range_deletes:
            refuse_other_readers(header)
        names = [renamed.partition[field.field_id][0] for field in spec.fields]
        layout = _Layout(
            header_bytes(header),
            RecordCodec.of(renamed.schema),
            types,
            tuple((name, to_avro_value(field_type)) for name, field_type in zip(names, types, strict=True)),
        )
        _layouts.put(key, layout, 1)
    return layout


def _record(
    entry: ManifestEntry, content: ManifestContent, spec: PartitionSpec, layout: _Layout, format_version: int
) -> dict[str, Any]:
    """DA-9: the stored sequence numbers of an entry."""
    file = entry.file
    if entry.status is not EntryStatus.ADDED and (file.sequence_number is None or file.file_sequence_number is None):
        raise InvalidArgumentError(
            f"{file.file_path}: an entry with status {entry.status.name} must state its sequence numbers."
        )
    if file.spec_id != spec.spec_id or len(file.partition) != len(spec.fields):
        raise InvalidArgumentError(
            f"{file.file_path} was written under partition spec {file.spec_id}, not {spec.spec_id} of the manifest."
        )
    if format_version < 3 and isinstance(file, DeleteFile) and file.kind is DeleteKind.DELETION_VECTOR:
        raise InvalidArgumentError(f"{file.file_path}: a deletion vector needs a table of format version 3.")
    if (file.content is FileContent.DATA) != (content is ManifestContent.DATA):
        raise InvalidArgumentError(
            f"{file.file_path}: a {file.content.name} file cannot be in a manifest of {content.name} files."
        )
    return {
        "status": int(entry.status),
        "snapshot_id": entry.snapshot_id,
        "sequence_number": file.sequence_number,
        "file_sequence_number": file.file_sequence_number,
        "data_file": {**_common_record(file, layout), **_kind_record(file)},
    }


def _common_record(file: ContentFile, layout: _Layout) -> dict[str, Any]:
    return {
        "file_path": file.file_path,
        "file_format": file.file_format,
        "partition": {
            name: value if convert is None or value is None else convert(value)
            for (name, convert), value in zip(layout.partition, file.partition, strict=True)
        },
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_bytes,
        "column_sizes": _pairs(file.column_sizes),
        "value_counts": _pairs(file.value_counts),
        "null_value_counts": _pairs(file.null_value_counts),
        "nan_value_counts": _pairs(file.nan_value_counts),
        "lower_bounds": _pairs(file.lower_bounds),
        "upper_bounds": _pairs(file.upper_bounds),
        "key_metadata": file.key_metadata,
        "split_offsets": None if file.split_offsets is None else list(file.split_offsets),
        "sort_order_id": file.sort_order_id,
    }


def _kind_record(file: DataFile | DeleteFile) -> dict[str, Any]:
    """RD-6: in the manifest a range delete is an equality delete, with its key columns in `equality_ids`."""
    if isinstance(file, DataFile):
        return {"content": int(file.content), "first_row_id": file.first_row_id}
    is_equality = file.content is FileContent.EQUALITY_DELETES
    if is_equality != bool(file.equality_ids):
        raise InvalidArgumentError(
            f"{file.file_path}: equality ids are required for equality and range deletes, and not allowed for other "
            "files."
        )
    return {
        "content": int(file.content),
        "equality_ids": list(file.equality_ids) if file.equality_ids else None,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_bytes,
        "range_spans": file.range_spans,
    }


def _pairs(mapping: Mapping[int, Any] | None) -> list[dict[str, Any]] | None:
    return None if mapping is None else [{"key": key, "value": value} for key, value in mapping.items()]


def _min_sequence_number(live_files: Sequence[ContentFile]) -> int | None:
    """The smallest explicit number. Files that inherit get the number of the commit, which is greater than all before
    it."""
    return min((file.sequence_number for file in live_files if file.sequence_number is not None), default=None)


def _row_count(files: Sequence[ContentFile]) -> int:
    return sum(file.record_count for file in files)


def _summary(values: Sequence[Any], field_type: PrimitiveType) -> PartitionFieldSummary:
    floating = isinstance(field_type, (FloatType, DoubleType))
    comparable = [value for value in values if value is not None and not (floating and math.isnan(value))]
    lowest, highest = (min(comparable), max(comparable)) if comparable else (None, None)
    if floating and comparable:
        # Readers order -0.0 before 0.0, but Python considers them equal: make the bounds valid for both.
        lowest, highest = lowest if lowest else -0.0, highest if highest else 0.0
    return PartitionFieldSummary(
        contains_null=any(value is None for value in values),
        contains_nan=floating and any(value is not None and math.isnan(value) for value in values),
        lower_bound=None if lowest is None else to_bound(lowest, field_type),
        upper_bound=None if highest is None else to_bound(highest, field_type),
    )
