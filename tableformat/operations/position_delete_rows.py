"""`position_deletes`: the rows of position delete files and deletion vectors, with the columns of Iceberg's table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, StructType

from tableformat.deletes.codecs.position_rows import FILE_PATH, FILE_PATH_FIELD_ID, POSITION, POSITION_FIELD_ID
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import DeleteFile, DeleteKind, FileContent
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.metadata_tables import live_files_in
from tableformat.metadata.partition_column import partition_column
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.parquet_columns import field_id_of
from tableformat.parquet.parquet_file import open_parquet, unreadable_as_corrupt
from tableformat.parquet.projection import FileProjection

_ROW_FIELD_ID: Final = 2147483544
"""Field id of the deleted row in a position delete file. Iceberg's specification allows a writer to keep the row."""
_OF_VECTORS: Final = 3
"""The format version from which delete files have an offset and a size."""


def position_delete_files(view: SnapshotView) -> list[DeleteFile]:
    """The live files that delete by position."""
    live = live_files_in(view, manifests_of(view), ManifestContent.DELETES)
    return [file for file in live if isinstance(file, DeleteFile) and file.content is FileContent.POSITION_DELETES]


def position_deletes_table(view: SnapshotView) -> pa.Table:
    """`file_path`, `pos`, `row`, `partition` if the table has partition fields, `spec_id`, `delete_file_path`, and from
    format version 3 on `content_offset` and `content_size_in_bytes`.

    Rows are in the order of the delete files, and within a file by data file and position. `row` holds the values of
    the deleted row in the current columns of the table, if the writer of the delete file kept them. Otherwise it is
    NULL: the row is in the data file. Raises CorruptFileError for an unreadable file.
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
    """The type with nullable fields: in Arrow, a NULL struct has NULL in each of its fields."""
    return pa.struct(
        [pa.field(each.name, _nullable(each.type) if pa.types.is_struct(each.type) else each.type) for each in struct]
    )


def _batches(
    view: SnapshotView, loader: DeleteLoader, delete: DeleteFile, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """One batch for each data file from which the file deletes rows."""
    constants: dict[str, Any] = {
        # `pa.scalar(None, ...)` does not support a nested type that contains a uuid.
        "row": pa.nulls(1, schema.field("row").type)[0],
        "spec_id": pa.scalar(delete.spec_id, pa.int32()),
        "delete_file_path": delete.file_path,
        "content_offset": pa.scalar(delete.content_offset, pa.int64()),
        "content_size_in_bytes": pa.scalar(delete.content_size_bytes, pa.int64()),
    }
    partition = partition_column(view.metadata, [delete])
    if partition is not None:
        constants["partition"] = partition[0]
    kept = None if delete.kind is DeleteKind.DELETION_VECTOR else _kept_rows(view, delete, schema)
    if kept is not None:
        yield from _filled(kept, constants, schema).to_batches()
        return
    for path, positions in sorted(loader.positions_by_file(delete).items()):
        rows = pa.table({"pos": positions.to_array()})
        yield from _filled(rows, {**constants, "file_path": path}, schema).to_batches()


def _filled(rows: pa.Table, constants: Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    columns = [
        rows.column(name) if name in rows.column_names else pa.repeat(constants[name], len(rows))
        for name in schema.names
    ]
    return pa.table(columns, schema=schema)


def _kept_rows(view: SnapshotView, delete: DeleteFile, schema: pa.Schema) -> pa.Table | None:
    """`file_path`, `pos` and `row`, by data file and position; None if the file keeps no rows."""
    wanted = Schema(
        NestedField(FILE_PATH_FIELD_ID, FILE_PATH, StringType(), required=True),
        NestedField(POSITION_FIELD_ID, POSITION, LongType(), required=True),
        NestedField(_ROW_FIELD_ID, "row", _optional(view.metadata.schema().as_struct()), required=False),
    )
    with open_parquet(view.io, delete) as file:
        if _ROW_FIELD_ID not in map(field_id_of, file.schema):
            return None
        result = pa.schema([schema.field(field.name) for field in wanted.fields])
        projection = FileProjection.of(file.schema, wanted, delete.file_path, {}, result=result)
        with unreadable_as_corrupt(delete.file_path):
            stored = file.reader().reader.read_row_groups(
                list(range(file.row_group_count)), column_indices=list(projection.leaf_indices), use_threads=True
            )
        rows = projection.apply(stored, file.row_count)
    order = pc.sort_indices(rows.select([FILE_PATH, POSITION]), [(FILE_PATH, "ascending"), (POSITION, "ascending")])
    return rows.take(order)


def _optional(struct: StructType) -> StructType:
    """The type with optional fields. A file that is older than a column lacks it, even if rows of the table require a
    value."""
    return StructType(
        *(
            NestedField(
                each.field_id,
                each.name,
                _optional(each.field_type) if isinstance(each.field_type, StructType) else each.field_type,
                required=False,
            )
            for each in struct.fields
        )
    )
