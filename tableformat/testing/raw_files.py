"""Data and delete files in the style of other writers: no sort marker, rows in any order, few metrics, any column type.

The library's own writers reject much of the content of these files, but its readers have to handle all of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tableformat.deletes.codecs.deletion_vector import encode_vector
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import SpanArray, span_of_bounds, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import PARQUET, PUFFIN, DataFile, DeleteFile, FileContent
from tableformat.metadata.puffin import deletion_vector_metadata, encode_puffin
from tableformat.parquet.parquet_metrics import data_file_metrics
from tableformat.parquet.parquet_output import entry_metrics
from tableformat.storage.storage import write_bytes
from tableformat.testing.json_values import arrow_table
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.range_deletes import write_range_delete_file

_POSITIONS: Final = Schema(
    NestedField(2_147_483_546, "file_path", StringType(), required=True),
    NestedField(2_147_483_545, "pos", LongType(), required=True),
)
Rows: TypeAlias = Sequence[Mapping[str, Any]]


def foreign_data_file(
    context: WriteContext,
    rows: Rows,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    partition: tuple[Any, ...] = (),
    spec_id: int | None = None,
    has_field_ids: bool = True,
    has_metrics: bool = True,
    sequence_number: int | None = None,
    name: str | None = None,
) -> DataFile:
    """A data file with the rows in the given order; `schema` may be an older one of the table.

    `name` is the name of the file without its suffix, by default random. Delete files name data files by path, in the
    order of the paths. A case with several data files therefore determines that order by their names.
    """
    table = arrow_table(rows, schema, columns or [field.name for field in schema.fields])
    location, size, metrics = _write(context, table, schema, has_field_ids=has_field_ids, name=name)
    return DataFile(
        file_path=location,
        file_format=PARQUET,
        spec_id=context.spec.spec_id if spec_id is None else spec_id,
        partition=partition,
        record_count=len(table),
        file_size_bytes=size,
        sequence_number=sequence_number,
        **(metrics if has_metrics and has_field_ids else {}),
    )


def foreign_equality_delete(
    context: WriteContext,
    rows: Rows,
    schema: Schema,
    *,
    equality_columns: Sequence[str],
    spec_id: int,
    partition: tuple[Any, ...] = (),
    has_metrics: bool = True,
    sequence_number: int | None = None,
) -> DeleteFile:
    """An equality delete file with all columns of the rows. `equality_columns` are its delete columns."""
    columns = [field.name for field in schema.fields if field.name in rows[0]]
    location, size, metrics = _write(context, arrow_table(rows, schema, columns), schema)
    return DeleteFile(
        content=FileContent.EQUALITY_DELETES,
        file_path=location,
        file_format=PARQUET,
        spec_id=spec_id,
        partition=partition,
        record_count=len(rows),
        file_size_bytes=size,
        sequence_number=sequence_number,
        equality_ids=tuple(schema.find_field(name).field_id for name in equality_columns),
        **(metrics if has_metrics else {}),
    )


def foreign_position_delete(
    context: WriteContext,
    pairs: Sequence[tuple[str, int]],
    data: DataFile,
    *,
    names_file: bool = False,
    has_metrics: bool = True,
    sequence_number: int | None = None,
) -> DeleteFile:
    """A position delete file in the spec and partition of a data file. Its rows may name any paths, in any order.

    With `names_file`, the entry names only the data file of the first row.
    """
    rows = [{"file_path": path, "pos": position} for path, position in pairs]
    location, size, metrics = _write(context, arrow_table(rows, _POSITIONS, ["file_path", "pos"]), _POSITIONS)
    return DeleteFile(
        content=FileContent.POSITION_DELETES,
        file_path=location,
        file_format=PARQUET,
        spec_id=data.spec_id,
        partition=data.partition,
        record_count=len(rows),
        file_size_bytes=size,
        sequence_number=sequence_number,
        referenced_data_file=pairs[0][0] if names_file else None,
        **(metrics if has_metrics else {}),
    )


def foreign_vectors(context: WriteContext, deleted: Mapping[DataFile, Sequence[int]]) -> list[DeleteFile]:
    """A Puffin file with the vectors in the given order; this library's own writer puts smaller ones first (FM-11)."""
    blobs = {data: encode_vector(PositionSet.from_array(np.array(found, np.int64))) for data, found in deleted.items()}
    content, footer = encode_puffin(
        [(deletion_vector_metadata(data.file_path, len(deleted[data])), blob) for data, blob in blobs.items()]
    )
    location = f"{context.table_location}/data/{uuid.uuid4()}.puffin"
    size = write_bytes(context.io, location, content)
    return [
        DeleteFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format=PUFFIN,
            spec_id=data.spec_id,
            partition=data.partition,
            record_count=len(positions),
            file_size_bytes=size,
            referenced_data_file=data.file_path,
            content_offset=blob.offset,
            content_size_bytes=blob.length_bytes,
        )
        for (data, positions), blob in zip(deleted.items(), footer.blobs, strict=True)
    ]


def raw_range_delete(
    context: WriteContext,
    schema: Schema,
    on: Sequence[str],
    spans: Sequence[Any],
    *,
    spec_id: int,
    partition: tuple[Any, ...] = (),
    sequence_numbers: Sequence[int] | None = None,
) -> DeleteFile:
    """A range delete file of (lower, upper) bounds, or of prefixes, each given as one tuple.

    With `sequence_numbers`, one for each span, the file looks as if maintenance had merged several commits (RD-8).
    """
    key = KeyColumns.of(schema, [schema.find_field(name).field_id for name in on])
    found = [_span(key, schema, span) for span in spans]
    merged = SpanArray.concat(found)
    if sequence_numbers is not None:
        merged = replace(merged, sequence_numbers=np.array(sequence_numbers, np.int64))
    return write_range_delete_file(context, merged, spec_id=spec_id, partition=partition)


def _span(key: KeyColumns, schema: Schema, span: Any) -> SpanArray:
    if isinstance(span, tuple) and len(span) == 2 and all(bound is None or isinstance(bound, tuple) for bound in span):
        return span_of_bounds(key, span[0], span[1])
    names = key.names[: len(span)]
    return spans_of_prefixes(key, arrow_table([dict(zip(names, span, strict=True))], schema, names))


def _write(
    context: WriteContext, table: pa.Table, schema: Schema, *, has_field_ids: bool = True, name: str | None = None
) -> tuple[str, int, dict[str, Any]]:
    """Location, size and manifest metrics of a new Parquet file."""
    if not has_field_ids:
        table = table.cast(pa.schema([pa.field(field.name, field.type) for field in table.schema]))
    sink = pa.BufferOutputStream()
    # Like writers without Arrow: with an Arrow schema, readers would see large strings.
    pq.write_table(table, sink, store_schema=False)
    content = sink.getvalue()
    location = f"{context.table_location}/data/{name or uuid.uuid4()}.parquet"
    size = write_bytes(context.io, location, content.to_pybytes())
    metrics = data_file_metrics(pq.read_metadata(pa.BufferReader(content)), schema)
    fields = entry_metrics(metrics)
    return location, size, {name: value for name, value in fields.items() if name != "record_count"}
