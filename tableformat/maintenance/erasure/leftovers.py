"""Files in the directory of a table that no metadata names, and the removal of files after an erasure (MT-118)."""

from __future__ import annotations

import io as bytes_io
from collections.abc import Iterable, Iterator
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import PrimitiveType

from tableformat.deletes.codecs.range_file import spans_from_parquet
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.keys.arrow_columns import stored_key_array
from tableformat.maintenance.erasure.certificate import NotReached
from tableformat.maintenance.erasure.delete_files import named_cuts
from tableformat.maintenance.erasure.scope import ErasureScope, in_leaves
from tableformat.metadata.content_file import RANGE_DELETES_MAGIC
from tableformat.metadata.manifests.manifest_list import decode_manifest_list
from tableformat.metadata.manifests.manifest_reader import decode_manifest
from tableformat.metadata.owned_files import METADATA_SUFFIXES, PATH_PROPERTIES
from tableformat.metadata.reachable_files import reachable_files
from tableformat.metadata.table_file import metadata_document
from tableformat.parquet.parquet_file import plain_parquet
from tableformat.properties import inflated_bytes_max
from tableformat.storage.listing import list_files
from tableformat.storage.location import one_spelling, place_of
from tableformat.storage.storage import exists, read_bytes

_UNNAMED: Final = (
    "no metadata names this file, and it has a value of the scope: it is a leftover, or of a commit in progress. Run "
    "remove_orphan_files when it is old enough, and verify the certificate again"
)


def named_in_order(metadata: TableMetadata, metadata_location: str, io: FileIO) -> list[tuple[str, ...]]:
    """MT-118: the files that metadata names, in the order in which they may be removed: the files that name others come
    last. Files that are gone already are left out, with what only they name: it was removed before them. Raises
    CorruptFileError for a file that exists and cannot be read, because the files that it names are then unknown."""
    content: dict[str, None] = {}
    manifests: dict[str, None] = {}
    lists = dict.fromkeys(snapshot.manifest_list for snapshot in metadata.snapshots)
    for location in lists:
        if not exists(io, location):
            continue
        listed = decode_manifest_list(io, location)
        for manifest in listed:
            if manifest.manifest_path in manifests:
                continue
            manifests[manifest.manifest_path] = None
            if not exists(io, manifest.manifest_path):
                continue
            entries = decode_manifest(io, manifest, metadata)
            content.update(dict.fromkeys(entry.file.file_path for entry in entries))
    content.update(
        dict.fromkeys(each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics))
    )
    logged = tuple(entry.metadata_file for entry in metadata.metadata_log)
    return [tuple(content), tuple(manifests), tuple(lists), logged, (metadata_location,)]


def unnamed_traces(
    metadata: TableMetadata, metadata_location: str, io: FileIO, scope: ErasureScope
) -> Iterator[NotReached]:
    """MT-118: the files below the location of the table that no metadata names and that have the scope."""
    named = {place_of(location) for location in reachable_files(metadata, metadata_location, io)}
    places = dict.fromkeys(one_spelling(each).rstrip("/") for each in _directories(metadata))
    for directory in places:
        try:
            listed = list(list_files(io, directory))
        except UnsupportedFeatureError as error:
            yield NotReached(location=directory, reason=f"its files cannot be listed: {error}")
            continue
        for file in listed:
            if place_of(file.location) in named:
                continue
            reason = _trace_in(file.location, directory, io, scope)
            if reason is not None:
                yield NotReached(location=file.location, reason=reason)


def _directories(metadata: TableMetadata) -> Iterator[str]:
    yield metadata.location
    inside = f"{one_spelling(metadata.location).rstrip('/')}/"
    for name in PATH_PROPERTIES:
        stated = metadata.properties.get(name)
        if stated and not one_spelling(stated).startswith(inside):
            yield stated


def _trace_in(location: str, root: str, io: FileIO, scope: ErasureScope) -> str | None:
    """Why the file is reported; None if it does not have the scope, or was removed in the meantime."""
    if scope.in_path(location.removeprefix(root)):
        return _UNNAMED
    try:
        data = read_bytes(io, location)
    except (CorruptFileError, OSError) as error:
        return f"no metadata names this file, and it cannot be read: {error}" if exists(io, location) else None
    try:
        has_scope = any(_texts_have_scope(each, scope) for each in _decoded(data, location, io, scope))
    except (CorruptFileError, ValueError, pa.ArrowException) as error:
        # A torn file of a table. Its bytes are searched as those of a file of another kind.
        if not scope.has_long_texts:
            return f"no metadata names this file, and it cannot be decoded: {error}"
        has_scope = scope.in_text(data.decode(errors="replace"))
    return _UNNAMED if has_scope else None


def _decoded(data: bytes, location: str, io: FileIO, scope: ErasureScope) -> Iterator[Any]:
    if location.endswith(METADATA_SUFFIXES):
        yield metadata_document(data, location, inflated_bytes_max(io.properties))
    elif data[:4] == b"Obj\x01":
        yield from fastavro.reader(bytes_io.BytesIO(data))
    elif data.endswith(RANGE_DELETES_MAGIC):
        table = pq.read_table(pa.BufferReader(plain_parquet(data)))
        yield spans_from_parquet(table, location, scope.schema)
    elif data[:4] == b"PAR1":
        yield from pq.ParquetFile(pa.BufferReader(plain_parquet(data))).iter_batches()
    elif scope.has_long_texts:
        yield data.decode(errors="replace")


def _texts_have_scope(value: Any, scope: ErasureScope) -> bool:
    if isinstance(value, pa.RecordBatch):
        return _batch_has_scope(value, scope)
    if isinstance(value, SpanArray):
        return bool((named_cuts(value.lower, scope) | named_cuts(value.upper, scope)).any())
    if isinstance(value, str):
        return scope.in_text(value)
    return any(True for _ in in_leaves(scope, _plain(value)))


def _batch_has_scope(batch: pa.RecordBatch, scope: ErasureScope) -> bool:
    """By field id, as the rows of a data file or of a delete file."""
    columns: dict[int, pa.Array] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        field_id = int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
        if field_id in scope.field_ids:
            kind = scope.schema.find_type(field_id)
            assert isinstance(kind, PrimitiveType), "a scope compares primitive columns"
            columns[field_id] = stored_key_array(column, kind, name=field.name)
    mask = scope.matching(columns, batch.num_rows)
    return mask is not None and bool(mask.true_count)


def _plain(value: Any) -> Any:
    """Avro's values as JSON, with bytes as text."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def without(groups: Iterable[tuple[str, ...]], kept: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups without the files that are still named, in any spelling."""
    places = {place_of(location) for location in kept}
    return [tuple(each for each in group if place_of(each) not in places) for group in groups]
