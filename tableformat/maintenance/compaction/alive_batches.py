"""Reads the alive rows of one data file in file order, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.alive_rows import alive_rows
from tableformat.merge_on_read.task import FileScanTask
from tableformat.parquet.parquet_file import OpenedFile, unreadable_as_corrupt
from tableformat.parquet.projection import FileProjection, identity_constants
from tableformat.scan.context import ReadContext
from tableformat.scan.row_lineage_columns import with_inherited_lineage

_ROWS_MAX: Final = 65_536
_BUFFER_BYTES_MIN: Final = 64 * 1024
_MEASURED_ROWS: Final = 256
"""The number of rows from which the width of rows with dictionary codes is measured."""
_WIDER: Final = 4
"""A batch that exceeds its size limit by this factor makes the next batches smaller."""
_VARIABLE_WIDTH_BYTES: Final = 24
"""The least size of a string or a nested value in Arrow. Dictionary codes are far smaller than the values."""


def alive_batches(
    task: FileScanTask, deleted: PositionSet, context: ReadContext, batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """The rows whose positions are not in `deleted`, in `context.arrow_schema`, in batches of about `batch_bytes`.

    A row group is decoded one batch at a time, so it may be larger than the memory. Raises CorruptFileError, with the
    location, if the file cannot be read.
    """
    with context.merge.open_data_file(task.data_file) as file:
        constants = identity_constants(task.data_file, context.merge.metadata.specs()[task.data_file.spec_id])
        projection = FileProjection.of(
            file.schema, context.selected, file.location, constants, result=context.arrow_schema
        )
        starts = file.row_group_starts.tolist()
        width = _RowWidth(_row_bytes_min(projection.schema))
        for group in range(file.row_group_count):
            row_count = starts[group + 1] - starts[group]
            if deleted.count(starts[group], row_count) == row_count:
                continue
            start_row = starts[group]
            for stored in _stored_batches(file, projection, group, batch_bytes, width):
                rows = projection.apply(pa.Table.from_batches([stored]), stored.num_rows)
                rows = with_inherited_lineage(rows, context.row_lineage, task.data_file, start_row)
                yield from (part for part in alive_rows(rows, deleted, start_row).to_batches() if part.num_rows)
                start_row += stored.num_rows


def is_sorted_by(task: FileScanTask, context: ReadContext, field_ids: tuple[int, ...]) -> bool:
    """RD-11: whether our own marker in the file states that its rows are sorted by these columns."""
    with context.merge.open_data_file(task.data_file) as file:
        return file.sorted_by is not None and file.sorted_by[: len(field_ids)] == field_ids


@dataclass(slots=True)
class _RowWidth:
    """Arrow bytes per row of one file, measured from the rows read so far."""

    row_bytes: float
    """A lower bound."""
    is_measured: bool = False

    def rows_in(self, size_bytes: int, stored_width: float) -> int:
        """The number of rows that fit in `size_bytes`, at least one. `stored_width` is the bytes per row by the file's
        footer."""
        return min(max(int(size_bytes / max(stored_width, self.row_bytes)), 1), _ROWS_MAX)

    def note(self, batch: pa.RecordBatch) -> None:
        self.row_bytes = max(self.row_bytes, batch.nbytes / max(batch.num_rows, 1))
        self.is_measured = True


def _stored_batches(
    file: OpenedFile, projection: FileProjection, group: int, batch_bytes: int, width: _RowWidth
) -> Iterator[pa.RecordBatch]:
    """The columns that the projection needs, for every row of one row group.

    If a column has a dictionary, the footer holds the sizes of the dictionary codes. The width of such rows is measured
    on a few rows. After a batch that is far larger than its limit, the batches are made smaller (MT-63).
    """
    row_group = file.metadata.row_group(group)
    leaves = list(projection.leaf_indices)
    # A file may have none of the columns. Its rows are then built from defaults, and any column gives their number.
    leaves_read = leaves or [0]
    chunks = [row_group.column(leaf) for leaf in leaves_read]
    stored_width = sum(chunk.total_uncompressed_size for chunk in chunks) / max(row_group.num_rows, 1)
    is_large = sum(chunk.total_compressed_size for chunk in chunks) > batch_bytes
    buffer_bytes = max(batch_bytes // len(chunks), _BUFFER_BYTES_MIN) if is_large else 0
    has_codes = any(chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY" for chunk in chunks)
    read = 0
    while read < row_group.num_rows:
        is_measuring = has_codes and not width.is_measured
        row_count = width.rows_in(batch_bytes, stored_width)
        if is_measuring:
            row_count = min(row_count, _MEASURED_ROWS)
        end = 0
        with unreadable_as_corrupt(file.location):
            reader = file.reader(buffer_bytes=buffer_bytes).reader
            batches = reader.iter_batches(row_count, row_groups=[group], column_indices=leaves_read, use_threads=True)
            for batch in batches:
                start, end = end, end + batch.num_rows
                if end <= read:
                    continue
                width.note(batch)
                yield batch.slice(read - start)
                read = end
                if is_measuring or row_count > _WIDER * width.rows_in(batch_bytes, stored_width):
                    break
            else:
                return


def _row_bytes_min(schema: pa.Schema) -> int:
    """Arrow bytes of a row with short values."""
    widths = (
        field.type.bit_width // 8 + 1 if pa.types.is_primitive(field.type) else _VARIABLE_WIDTH_BYTES
        for field in schema
    )
    return max(sum(widths), 1)
