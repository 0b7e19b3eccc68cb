"""Reads what a table names, and reports every trace of a scope (MT-119)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import PrimitiveType

from tableformat.errors import CorruptFileError, TableFormatError
from tableformat.maintenance.erasure.certificate import NotReached
from tableformat.maintenance.erasure.contents import TableContents, read_contents
from tableformat.maintenance.erasure.data_files import ErasureContext, bounds_name, find_rows
from tableformat.maintenance.erasure.delete_files import named_cuts, named_keys, vectors_in
from tableformat.maintenance.erasure.scope import ErasureScope, in_leaves
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestFile
from tableformat.metadata.manifests.manifest_schema import partition_types
from tableformat.metadata.partition_column import schemas_newest_first
from tableformat.metadata.puffin import read_footer
from tableformat.metadata.table_file import metadata_document
from tableformat.properties import inflated_bytes_max
from tableformat.storage.storage import exists, read_bytes
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles

_NUMBERS: Final = (
    "metadata-file",
    "manifest-list",
    "statistics-path",
    "snapshot-log",
    "schemas",
    "partition-specs",
    "sort-orders",
    "table-uuid",
    "location",
)
"""Entries of table metadata that the erasure does not change: ids, names of files that no value is in, and schemas."""
_COUNTS: Final = ("added-", "removed-", "deleted-", "total-")


@dataclass(slots=True)
class Proof:
    """What was read, and what was found."""

    found: list[NotReached]
    data_files_count: int = 0
    delete_files_count: int = 0
    metadata_files_count: int = 0


def prove(
    metadata: TableMetadata, metadata_location: str, io: FileIO, scope: ErasureScope, progress: Progress | None = None
) -> Proof:
    """MT-119: read every file that the table names, over all retained snapshots, without caches.

    Bounds are not used to leave files out. A file that cannot be read counts as one that has the scope.
    """
    tell = progress or silent
    contents = read_contents(metadata, io)
    context = ErasureContext(metadata, io, scope, CreatedFiles(WriteContext.of(metadata, io)))
    proof = Proof([])
    proof.found += _in_metadata(metadata, metadata_location, io, scope)
    proof.metadata_files_count = 1 + len(metadata.metadata_log) + len(contents.lists) + len(contents.manifests)
    proof.found += _in_lists(contents, context)
    proof.found += _in_entries(contents, context)
    total = len(contents.data_files) + len(contents.delete_files)
    for done, data in enumerate(contents.data_files.values()):
        tell(done, total, "files read again")
        proof.found += _asked(data.file_path, _in_data_file(data, context))
        proof.data_files_count += 1
    for done, delete in enumerate(contents.delete_files.values(), len(contents.data_files)):
        tell(done, total, "files read again")
        proof.found += _asked(delete.file_path, _in_delete_file(delete, context))
        proof.delete_files_count += 1
    tell(total, total, "files read again")
    proof.found = list(dict.fromkeys(proof.found))
    return proof


def _asked(location: str, found: Iterator[NotReached]) -> list[NotReached]:
    try:
        return list(found)
    except TableFormatError as error:
        return [NotReached(location=location, reason=f"it cannot be read: {error}")]


def _in_data_file(data: DataFile, context: ErasureContext) -> Iterator[NotReached]:
    rows = find_rows(data, context, by_bounds=False)
    if rows is not None:
        reason = (
            f"{len(rows)} rows are of the scope" if rows else "its bounds or dictionaries have a value of the scope"
        )
        yield NotReached(location=data.file_path, reason=reason)


def _in_delete_file(delete: DeleteFile, context: ErasureContext) -> Iterator[NotReached]:
    if context.in_partition(delete):
        yield NotReached(location=delete.file_path, reason="its partition is of the scope")
        return
    match delete.kind:
        case DeleteKind.DELETION_VECTOR:
            footer = read_footer(context.io, delete.file_path, delete.file_size_bytes)
            if any(map(context.names_path, vectors_in(footer.blobs))):
                yield NotReached(location=delete.file_path, reason="it names a data file with a value of the scope")
        case DeleteKind.POSITION:
            if any(map(context.names_path, context.merge.loader.positions_by_file(delete))):
                yield NotReached(location=delete.file_path, reason="it names a data file with a value of the scope")
        case DeleteKind.EQUALITY:
            named, _ = named_keys(delete, context)
            if named:
                yield NotReached(location=delete.file_path, reason=f"{len(named)} of its keys are of the scope")
        case DeleteKind.RANGE:
            spans = context.merge.loader.range_spans(delete)
            ends = named_cuts(spans.lower, context.scope) | named_cuts(spans.upper, context.scope)
            if np.any(ends):
                reason = f"{int(ends.sum())} of its ranges end at a value of the scope"
                yield NotReached(location=delete.file_path, reason=reason)


def _in_entries(contents: TableContents, context: ErasureContext) -> Iterator[NotReached]:
    """Entries of all files, also of those that have left the table."""
    for manifest, entries in contents.manifests.values():
        for entry in entries:
            file = entry.file
            paths = (file.file_path, file.referenced_data_file if isinstance(file, DeleteFile) else None)
            if context.in_partition(file) or any(map(context.names_path, paths)):
                what = f"its entry of {file.file_path} has a partition or path of the scope"
            elif bounds_name(file, context):
                what = f"its entry of {file.file_path} has a bound of the scope"
            else:
                continue
            yield NotReached(location=manifest.manifest_path, reason=what)


def _in_lists(contents: TableContents, context: ErasureContext) -> Iterator[NotReached]:
    """Summaries of partition fields and key columns."""
    single = context.scope.single
    if single is None:
        return
    for location, manifests in contents.lists.items():
        if any(_summaries_name(manifest, context) for manifest in manifests):
            yield NotReached(location=location, reason="a summary of a manifest has a value of the scope")


def _summaries_name(manifest: ManifestFile, context: ErasureContext) -> bool:
    scope = context.scope
    assert scope.single is not None, "only a scope of one column has bounds"
    field_id = scope.single.field.field_id
    stated: list[tuple[bytes | None, PrimitiveType]] = []
    kind = context.every_column.find_type(field_id)
    assert isinstance(kind, PrimitiveType), "a scope compares primitive columns"
    for column in manifest.columns or ():
        if column.field_id == field_id:
            stated += [(column.lower_bound, kind), (column.upper_bound, kind)]
    spec = context.metadata.specs()[manifest.partition_spec_id]
    if manifest.partitions:
        types = partition_types(spec, schemas_newest_first(context.metadata))
        for field, field_type, summary in zip(spec.fields, types, manifest.partitions, strict=True):
            if field.source_id == field_id and str(field.transform) == "identity":
                stated += [(summary.lower_bound, field_type), (summary.upper_bound, field_type)]
    return any(
        scope.names_bound(from_bound(bound, of_type, location=manifest.manifest_path))
        for bound, of_type in stated
        if bound is not None
    )


def _in_metadata(
    metadata: TableMetadata, metadata_location: str, io: FileIO, scope: ErasureScope
) -> Iterator[NotReached]:
    for location in (metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)):
        try:
            document = metadata_document(read_bytes(io, location), location, inflated_bytes_max(io.properties))
        except CorruptFileError as error:
            if exists(io, location):
                yield NotReached(location=location, reason=f"it cannot be read: {error}")
            continue  # A commit in the meantime has removed a file of the log.
        for path in in_document(document, scope):
            yield NotReached(location=f"{location}#{path}", reason=_advice(path))


def in_document(document: dict[str, Any], scope: ErasureScope) -> list[str]:
    """The entries of table metadata that name the scope. Numbers are counts and ids, and schemas have no rows."""
    found = list(in_leaves(scope, document, _NUMBERS))
    for number, schema in enumerate(document.get("schemas") or ()):
        found += [f"schemas[{number}].{path}" for path in in_leaves(scope, _texts_of(schema))]
    return found


def _texts_of(schema: Any) -> Any:
    """Defaults and comments of columns, which may have values; names are not values of rows."""
    fields = schema.get("fields") or ()
    return {
        str(field.get("id")): {name: json.dumps(field[name]) for name in ("doc", "initial-default") if name in field}
        for field in fields
    }


def _advice(path: str) -> str:
    if path.startswith("refs"):
        return "a branch or tag is named after it. Rename it: create it under another name, and drop this one"
    if path.startswith("properties"):
        return "a table property has it. Set or remove the property"
    if path.startswith("snapshots"):
        return "the summary of a snapshot needs it. Expire the snapshot"
    return "table metadata has it. Change it with the operation that set it"
