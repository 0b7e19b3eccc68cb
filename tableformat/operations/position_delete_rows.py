"""`position_deletes`: the rows of position delete files and deletion vectors, with the columns of Iceberg's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.metadata_tables import live_files_in
from tableformat.metadata.partition_column import partition_column
from tableformat.metadata.snapshot_view import SnapshotView

_OF_VECTORS: Final = 3
"""The format version from which files of deletes have an offset and a size."""


def position_delete_files(view: SnapshotView) -> list[DeleteFile]:
    """The live files that delete by position."""
    live = live_files_in(view, manifests_of(view), ManifestContent.DELETES)
    return [file for file in live if isinstance(file, DeleteFile) and file.content is FileContent.POSITION_DELETES]


def position_deletes_table(view: SnapshotView) -> pa.Table:
    """`file_path`, `pos`, `row`, `partition` where there are partition fields, `spec_id`, `delete_file_path`, and from
    format version 3 on `content_offset` and `content_size_in_bytes`.

    In the order of the delete files, of a file by data file and position. `row` is NULL: what a row held is in the
    data file. CorruptFileError for a file that cannot be read.
    """
    loader = DeleteLoader.of(view.metadata, view.io)
    deletes = position_delete_files(view)
    schema = _schema(view, deletes)
    return pa.Table.from_batches(
        [batch for delete in deletes for batch in _batches(view, loader, delete, schema)], schema
    )


def _schema(view: SnapshotView, deletes: list[DeleteFile]) -> pa.Schema:
    partition = partition_column(view.metadata, deletes)
    fields = [
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("pos", pa.int64(), nullable=False),
        pa.field("row", _nullable(pa.struct(list(arrow_schema(view.metadata.schema()))))),
    ]
    if partition is not None:
        fields.append(pa.field("partition", partition.type, nullable=False))
    fields.append(pa.field("spec_id", pa.int32(), nullable=False))
    fields.append(pa.field("delete_file_path", pa.string(), nullable=False))
    if view.metadata.format_version >= _OF_VECTORS:
        fields += [pa.field("content_offset", pa.int64()), pa.field("content_size_in_bytes", pa.int64())]
    return pa.schema(fields)


def _nullable(struct: pa.StructType) -> pa.StructType:
    """Arrow's NULL of a struct has NULL in each of its fields."""
    return pa.struct(
        [pa.field(each.name, _nullable(each.type) if pa.types.is_struct(each.type) else each.type) for each in struct]
    )


def _batches(
    view: SnapshotView, loader: DeleteLoader, delete: DeleteFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """One for each data file of which the file deletes rows."""
    constants: dict[str, Any] = {
        "row": pa.scalar(None, schema.field("row").type),
        "spec_id": pa.scalar(delete.spec_id, pa.int32()),
        "delete_file_path": delete.file_path,
        "content_offset": pa.scalar(delete.content_offset, pa.int64()),
        "content_size_in_bytes": pa.scalar(delete.content_size_bytes, pa.int64()),
    }
    partition = partition_column(view.metadata, [delete])
    if partition is not None:
        constants["partition"] = partition[0]
    for path, positions in sorted(loader.positions_by_file(delete).items()):
        values = {**constants, "file_path": path}
        count = len(positions)
        columns = [
            pa.array(positions.to_array()) if name == "pos" else pa.repeat(values[name], count) for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
