"""The rows of one data file that are alive, in file order, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.scan.alive_rows import alive_rows
from tableformat.scan.parquet_file import OpenedFile, open_parquet, unreadable_as_corrupt
from tableformat.scan.projection import FileProjection, identity_constants
from tableformat.scan.reader import ReadContext
from tableformat.scan.row_lineage import with_inherited_lineage
from tableformat.scan.task import FileScanTask

_ROWS_MAX: Final = 65_536
_BUFFER_BYTES_MIN: Final = 64 * 1024
_VARIABLE_WIDTH_BYTES: Final = 24
"""What a string or a nested value takes at least, in Arrow: dictionary codes are far smaller than the values."""


def alive_batches(
    task: FileScanTask, deleted: PositionSet, context: ReadContext, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows whose positions are not in `deleted`, in `context.arrow_schema`, in batches of about `batch_bytes`.

    A row group is decoded a batch at a time, so one that is larger than the memory does no harm. CorruptFileError names
    a file that cannot be read.
    """
    with _opened(task, context) as file:
        constants = identity_constants(task.data_file, context.resolve.metadata.specs()[task.data_file.spec_id])
        projection = FileProjection.of(
            file.schema, context.selected, file.location, constants, result=context.arrow_schema
        )
        starts = file.row_group_starts.tolist()
        for group in range(file.row_group_count):
            row_count = starts[group + 1] - starts[group]
            if deleted.count(starts[group], row_count) == row_count:
                continue
            start_row = starts[group]
            for stored in _stored_batches(file, projection, group, batch_bytes):
                rows = projection.apply(pa.Table.from_batches([stored]), stored.num_rows)
                rows = with_inherited_lineage(rows, context.row_lineage, task.data_file, start_row)
                yield from (part for part in alive_rows(rows, deleted, start_row).to_batches() if part.num_rows)
                start_row += stored.num_rows


def is_sorted_by(task: FileScanTask, context: ReadContext, field_ids: tuple[int, ...]) -> bool:
    """RD-11: whether the file says, in our own marker, that its rows are in the order of these columns."""
    with _opened(task, context) as file:
        return file.sorted_by is not None and file.sorted_by[: len(field_ids)] == field_ids


def _stored_batches(
    file: OpenedFile, projection: FileProjection, group: int, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The columns that the projection needs, of every row of one row group."""
    row_group = file.metadata.row_group(group)
    leaves = list(projection.leaf_indices)
    # A file may have none of the columns: its rows are made of defaults, and any column tells how many they are.
    leaves_read = leaves or [0]
    chunks = [row_group.column(leaf) for leaf in leaves_read]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    row_bytes = max(size // max(row_group.num_rows, 1), _row_bytes_min(projection.schema))
    row_count = min(max(batch_bytes // row_bytes, 1), _ROWS_MAX)
    is_large = sum(chunk.total_compressed_size for chunk in chunks) > batch_bytes
    buffer_bytes = max(batch_bytes // len(chunks), _BUFFER_BYTES_MIN) if is_large else 0
    with unreadable_as_corrupt(file.location):
        yield from file.reader(buffer_bytes=buffer_bytes).reader.iter_batches(
            row_count, row_groups=[group], column_indices=leaves_read, use_threads=True
        )


def _row_bytes_min(schema: pa.Schema) -> int:
    """Arrow bytes of a row of short values."""
    widths = (
        field.type.bit_width // 8 + 1 if pa.types.is_primitive(field.type) else _VARIABLE_WIDTH_BYTES
        for field in schema
    )
    return max(sum(widths), 1)


def _opened(task: FileScanTask, context: ReadContext) -> AbstractContextManager[OpenedFile]:
    resolving = context.resolve
    return open_parquet(
        resolving.io, task.data_file, name_mapping=resolving.name_mapping, footers=resolving.caches.footers
    )
