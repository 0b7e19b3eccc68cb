"""Manifest lists: the manifests of one snapshot.

Source: Iceberg table specification, "Manifest Lists" and "First Row ID Assignment".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from pyiceberg.io import FileIO
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.manifests.avro_container import (
    DECODING_ERRORS,
    RecordCodec,
    decode_records,
    encode_records,
    header_bytes,
    read_container,
    write_encoded_container,
)
from tableformat.metadata.manifests.manifest_entry import (
    ColumnSummary,
    EntryStatus,
    ManifestContent,
    ManifestFile,
    PartitionFieldSummary,
)
from tableformat.metadata.manifests.manifest_reader import layout_of
from tableformat.metadata.manifests.manifest_schema import manifest_list_schema, rename_by_field_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import inflated_bytes_max
from tableformat.storage import storage
from tableformat.storage.bounded_cache import BoundedCache
from tableformat.storage.outage import raise_unless_damage
from tableformat.storage.side_by_side import WriteBytes

CACHED_MANIFESTS: Final = 200_000
_ENCODED_RECORDS: Final = 10_000
"""The number of cached manifests, of a few hundred bytes each."""
_DECODED_RECORDS: Final = 10_000

_PARENT: Final = "parent-snapshot-id"
"""A key of the header; its value is the text `null` if there is no parent."""

_CONTENTS: Final = {int(content): content for content in ManifestContent}
_cache: Final[BoundedCache[str, tuple[ManifestFile, ...]]] = BoundedCache(CACHED_MANIFESTS)
_decoded: Final[BoundedCache[str, tuple[Mapping[str, Any], ManifestFile]]] = BoundedCache(_DECODED_RECORDS)
"""The last record of each manifest, by its path, because the next list repeats most records."""


def manifests_of(view: SnapshotView) -> tuple[ManifestFile, ...]:
    """The data and delete manifests of the view's snapshot, in the order of the manifest list."""
    if view.snapshot is None:
        return ()
    return read_manifest_list(view.io, view.snapshot.manifest_list)


def read_manifest_list(io: FileIO, location: str) -> tuple[ManifestFile, ...]:
    """The manifests of a list of any format version; cached. Raises CorruptFileError, which names the list.

    DA-9: in a v1 list every sequence number is 0.
    """
    key = storage.actual_location(io, location)
    cached = _cache.get(key)
    if cached is not None:
        return cached
    manifests = decode_manifest_list(io, location)
    _cache.put(key, manifests, len(manifests) + 1)
    return manifests


def decode_manifest_list(io: FileIO, location: str) -> tuple[ManifestFile, ...]:
    """The result of `read_manifest_list`, from the current file."""
    container = read_container(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties))
    records = decode_records(container, layout_of(container).codec)
    try:
        return tuple(_known_or_decoded(io, record, location) for record in records)
    except DECODING_ERRORS as error:
        raise_unless_damage(location, error)
        reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
        raise CorruptFileError(location, f"its entries are not entries of a manifest list ({reason}).") from error


def had_parent(io: FileIO, snapshot: Snapshot) -> bool:
    """CF-2: whether the snapshot has a parent, retained or not.

    Some programs, such as PyIceberg, remove the id of an expired parent from the table metadata. The header of the
    manifest list keeps it.
    """
    if snapshot.parent_snapshot_id is not None:
        return True
    location = snapshot.manifest_list
    return (
        read_container(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties)).metadata.get(
            _PARENT, b"null"
        )
        != b"null"
    )


def write_manifest_list(
    io: FileIO,
    location: str,
    *,
    manifests: Sequence[ManifestFile],
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    format_version: int,
    first_row_id: int | None = None,
    write: WriteBytes | None = None,
) -> tuple[ManifestFile, ...]:
    """Write the list of a snapshot. Returns the manifests with the numbers that the commit assigns.

    DA-9: a manifest without a sequence number was written by this commit and gets its number. So does the smallest data
    sequence number if all files of the manifest inherit. v3 needs `first_row_id`, the table's `next-row-id`;
    `next_row_id` computes its value after this snapshot. `write` belongs to `writes_side_by_side`, for a file that is
    uploaded later.
    """
    assigned = tuple(_with_sequence_number(manifest, snapshot_id, sequence_number) for manifest in manifests)
    header = {
        "snapshot-id": str(snapshot_id),
        _PARENT: "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "sequence-number": str(sequence_number),
        "format-version": str(format_version),
    }
    if format_version >= 3:
        assert first_row_id is not None, "a v3 manifest list assigns row ids"
        header["first-row-id"] = str(first_row_id)
        assigned = _with_row_ids(assigned, first_row_id)
    has_column_summaries = any(manifest.columns for manifest in assigned)
    schema_text, _ = _writing(format_version, has_column_summaries)
    records = [_encoded(manifest, format_version, has_column_summaries) for manifest in assigned]
    data = write_encoded_container(header_bytes({"avro.schema": schema_text, **header}), records)
    if write is None:
        storage.write_bytes(io, location, data)
    else:
        write(location, data)
    # The next commit starts from this list. Without the cache, a streaming writer would read and decode what it just
    # wrote.
    _cache.put(storage.actual_location(io, location), assigned, len(assigned) + 1)
    return assigned


def write_changed_list(io: FileIO, location: str, *, source: str, manifests: Sequence[ManifestFile]) -> None:
    """Write the list at `source` again with other manifests. The header stays: snapshot, parent, numbers and version.

    Nothing is assigned: the manifests have their sequence numbers, and row ids if the list has any.
    """
    container = read_container(storage.read_bytes(io, source), source, inflated_bytes_max(io.properties))
    own = ("avro.schema", "avro.codec")
    header = {name: text.decode() for name, text in container.metadata.items() if name not in own}
    format_version = int(header.get("format-version", "2"))
    has_column_summaries = any(manifest.columns for manifest in manifests)
    schema_text, _ = _writing(format_version, has_column_summaries)
    records = [_encoded(manifest, format_version, has_column_summaries) for manifest in manifests]
    storage.write_bytes(
        io, location, write_encoded_container(header_bytes({"avro.schema": schema_text, **header}), records)
    )


def next_row_id(before: Sequence[ManifestFile], assigned: Sequence[ManifestFile], first_row_id: int) -> int:
    """v3: the table's `next-row-id` after a list. Manifests that got a first row id used ids for their rows.

    `before` and `assigned` are the argument and the result of `write_manifest_list`.
    """
    return first_row_id + sum(
        manifest.existing_rows_count + manifest.added_rows_count
        for unassigned, manifest in zip(before, assigned, strict=True)
        if unassigned.first_row_id is None and manifest.first_row_id is not None
    )


def _with_sequence_number(manifest: ManifestFile, snapshot_id: int, sequence_number: int) -> ManifestFile:
    """DA-9: the commit that adds the manifest assigns the numbers, once."""
    if manifest.sequence_number is not None and manifest.min_sequence_number is not None:
        return manifest
    assert manifest.added_snapshot_id == snapshot_id, f"{manifest.manifest_path} belongs to another snapshot"
    own = sequence_number if manifest.sequence_number is None else manifest.sequence_number
    smallest = own if manifest.min_sequence_number is None else min(own, manifest.min_sequence_number)
    return replace(manifest, sequence_number=own, min_sequence_number=smallest)


def _with_row_ids(manifests: tuple[ManifestFile, ...], first_row_id: int) -> tuple[ManifestFile, ...]:
    """v3: data manifests without a first row id get one.

    Existing rows are counted too: their files may be older than v3 and have no row ids either.
    """
    result = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            result.append(replace(manifest, first_row_id=first_row_id))
            first_row_id += manifest.existing_rows_count + manifest.added_rows_count
        else:
            result.append(manifest)
    return tuple(result)


@lru_cache
def _writing(format_version: int, has_column_summaries: bool) -> tuple[str, RecordCodec]:
    schema = manifest_list_schema(format_version, has_column_summaries=has_column_summaries)
    return json.dumps(schema, separators=(",", ":")), RecordCodec.of(rename_by_field_id(schema).schema)


@lru_cache(_ENCODED_RECORDS)
def _encoded(manifest: ManifestFile, format_version: int, has_column_summaries: bool) -> bytes:
    """Most manifests of a list were in the previous list. A writer encodes only those that its commit adds."""
    _, codec = _writing(format_version, has_column_summaries)
    return encode_records(codec, [_record(manifest)])


def _record(manifest: ManifestFile) -> dict[str, Any]:
    partitions = manifest.partitions
    return {
        "manifest_path": manifest.manifest_path,
        "manifest_length": manifest.manifest_length_bytes,
        "partition_spec_id": manifest.partition_spec_id,
        "content": int(manifest.content),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.added_snapshot_id,
        "added_files_count": manifest.added_files_count,
        "existing_files_count": manifest.existing_files_count,
        "deleted_files_count": manifest.deleted_files_count,
        "added_rows_count": manifest.added_rows_count,
        "existing_rows_count": manifest.existing_rows_count,
        "deleted_rows_count": manifest.deleted_rows_count,
        "partitions": None if partitions is None else [_summary_record(summary) for summary in partitions],
        "key_metadata": manifest.key_metadata,
        "first_row_id": manifest.first_row_id,
        "column_summaries": _stored_summaries(manifest.columns) if manifest.columns else None,
    }


def _summary_record(summary: PartitionFieldSummary) -> dict[str, Any]:
    return {
        "contains_null": summary.contains_null,
        "contains_nan": summary.contains_nan,
        "lower_bound": summary.lower_bound,
        "upper_bound": summary.upper_bound,
    }


def _known_or_decoded(io: FileIO, record: Mapping[str, Any], location: str) -> ManifestFile:
    known = _decoded.get(record["manifest_path"])
    if known is not None and known[0] == record:
        return known[1]
    manifest = _manifest_file(io, record, location)
    _decoded.put(manifest.manifest_path, (record, manifest), 1)
    return manifest


def _manifest_file(io: FileIO, record: Mapping[str, Any], location: str) -> ManifestFile:
    content = _CONTENTS.get(record.get("content") or 0)
    if content is None:
        raise UnsupportedFeatureError(
            f"{location}: manifest {record['manifest_path']} has content {record['content']}, which this version of "
            "the library does not know."
        )
    partitions = record.get("partitions")
    return ManifestFile(
        manifest_path=record["manifest_path"],
        manifest_length_bytes=record["manifest_length"],
        partition_spec_id=record["partition_spec_id"],
        content=content,
        sequence_number=record.get("sequence_number") or 0,
        min_sequence_number=record.get("min_sequence_number") or 0,
        added_snapshot_id=record["added_snapshot_id"],
        **_counts(io, record),
        partitions=None if partitions is None else tuple(_summary(summary) for summary in partitions),
        key_metadata=record.get("key_metadata"),
        first_row_id=record.get("first_row_id"),
        columns=_column_summaries(record.get("column_summaries"), location),
    )


def _stored_summaries(columns: Sequence[ColumnSummary]) -> bytes:
    """FM-26: a JSON list of [field id, contains null, lower bound, upper bound], with bounds in hexadecimal or null."""
    rows = [
        [each.field_id, each.contains_null, *(None if bound is None else bound.hex() for bound in _bounds(each))]
        for each in columns
    ]
    return json.dumps(rows, separators=(",", ":")).encode()


def _bounds(summary: ColumnSummary) -> tuple[bytes | None, bytes | None]:
    return summary.lower_bound, summary.upper_bound


def _column_summaries(stored: bytes | None, location: str) -> tuple[ColumnSummary, ...] | None:
    if stored is None:
        return None
    try:
        return tuple(
            ColumnSummary(
                int(field_id),
                bool(contains_null),
                None if lower is None else bytes.fromhex(lower),
                None if upper is None else bytes.fromhex(upper),
            )
            for field_id, contains_null, lower, upper in json.loads(stored)
        )
    except (ValueError, TypeError) as error:
        raise CorruptFileError(location, f"its column summaries are damaged ({error}).") from error


def _summary(record: Mapping[str, Any]) -> PartitionFieldSummary:
    return PartitionFieldSummary(
        record["contains_null"], record.get("contains_nan"), record.get("lower_bound"), record.get("upper_bound")
    )


def _counts(io: FileIO, record: Mapping[str, Any]) -> dict[str, int]:
    """File and row counts. Early v1 writers omitted them; then the entries of the manifest are counted."""
    names = tuple(f"{status}_{unit}_count" for unit in ("files", "rows") for status in ("added", "existing", "deleted"))
    stated = {name: record.get(name) for name in names}
    if None not in stated.values():
        return {name: count for name, count in stated.items() if count is not None}
    location = record["manifest_path"]
    container = read_container(storage.read_bytes(io, location), location, inflated_bytes_max(io.properties))
    entries = decode_records(container, layout_of(container).codec)
    counted = dict.fromkeys(names, 0)
    for entry in entries:
        status = EntryStatus(entry["status"]).name.lower()
        counted[f"{status}_files_count"] += 1
        counted[f"{status}_rows_count"] += entry["data_file"]["record_count"]
    return counted
