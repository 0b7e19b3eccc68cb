"""Writes the rows of one partition to files of the target size, each sorted by the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from tableformat.keys.sort_marker import SORTED_BY, marker_bytes
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.parquet_output import DictionaryChoice, ParquetOutput
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles
from tableformat.write.data_files.data_file_entry import data_file_entry
from tableformat.write.data_files.partitions import PartitionValues
from tableformat.write.data_files.stored_columns import stored_rows, stored_schema
from tableformat.write.rows.one_batch import one_batch
from tableformat.write.rows.sorting import follows, order_of_batches

_ROWS_MIN: Final = 1_024
"""The minimum number of rows in a row group: smaller ones cost more in footers than an exact file size is worth."""
_FULL_SHARE: Final = 0.9
"""A file this close to its target size is full. Another row group for the rest would be tiny."""
_UNEVEN: Final = 1.5
"""The factor by which row groups may be larger, if rows are wider than the average of their run."""
_COMPRESSED_SHARE: Final = 0.5
"""Parquet bytes for each Arrow byte, until a file shows its own ratio."""


class PartitionWriter:
    """Writes sorted runs of rows. A run that continues the previous one is written to the same file."""

    def __init__(
        self,
        context: WriteContext,
        created: CreatedFiles,
        schema: pa.Schema,
        key_names: Sequence[str],
        *,
        partition: PartitionValues,
        dictionaries: DictionaryChoice,
        row_group_bytes: float,
    ) -> None:
        """`row_group_bytes`: the maximum Arrow bytes of a row group, except for a single larger row."""
        self.partition = partition
        self._row_group_bytes = row_group_bytes
        self._context = context
        self._created = created
        self._schema = stored_schema(schema)
        self._key_names = list(key_names)
        self._dictionaries = dictionaries
        self._files: list[DataFile] = []
        self._output: ParquetOutput | None = None
        self._location = ""
        self._nan_counts: dict[int, int] = {}
        self._last_key: list[pa.Scalar] | None = None
        self._bytes_per_row: float | None = None

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Sort the rows and write them. Files that become full are closed. Empties the list.

        Rows that are already sorted are concatenated by row group; only their keys are compared before.
        """
        rows = pa.Table.from_batches(batches)
        order = order_of_batches(batches, self._key_names) if self._key_names else None
        if order is not None:
            del rows
            rows = one_batch(batches)
        batches.clear()
        if self._output is not None and not self._continues(rows, order):
            self._close()
        if self._bytes_per_row is None:
            self._bytes_per_row = max(rows.nbytes * _COMPRESSED_SHARE / max(rows.num_rows, 1), 1.0)
        rows_in_memory = max(int(self._row_group_bytes * rows.num_rows / max(rows.nbytes, 1)), 1)
        start = 0
        while start < rows.num_rows:
            count = min(self._row_group_rows(rows.num_rows - start), rows_in_memory)
            self._write_within_memory(
                one_batch(rows.slice(start, count).to_batches())
                if order is None
                else rows.take(order.slice(start, count))
            )
            start += count

    def finish(self) -> list[DataFile]:
        self._close()
        return self._files

    @property
    def open_file_bytes(self) -> int:
        """The size of the row groups in the open file, in bytes; 0 between files."""
        return 0 if self._output is None else self._output.size_bytes

    def abandon(self) -> None:
        if self._output is not None:
            self._output.abandon()
            self._output = None

    def _continues(self, rows: pa.RecordBatch | pa.Table, order: pa.Array | None) -> bool:
        """Whether the open file stays sorted if these rows follow."""
        if not self._key_names or rows.num_rows == 0:
            return True
        assert self._last_key is not None
        first = 0 if order is None else order[0].as_py()
        return follows(self._last_key, [rows.column(name)[first] for name in self._key_names])

    def _row_group_rows(self, remaining: int) -> int:
        """The number of rows in the next row group: the limit, or as many as fit the file or the memory."""
        assert self._bytes_per_row is not None
        written = 0 if self._output is None else self._output.size_bytes
        room = int((self._context.target_file_size_bytes - written) / self._bytes_per_row)
        return min(remaining, self._context.row_group_limit, max(room, _ROWS_MIN))

    def _write_within_memory(self, rows: pa.RecordBatch) -> None:
        """Halves a group that is wider than the rows around it."""
        if rows.num_rows == 1 or rows.nbytes <= _UNEVEN * self._row_group_bytes:
            self._write_row_group(rows)
            return
        half = rows.num_rows // 2
        self._write_within_memory(rows.slice(0, half))
        self._write_within_memory(rows.slice(half))

    def _write_row_group(self, rows: pa.RecordBatch) -> None:
        if self._output is not None and not self._output.has_room_in_pages(rows):
            self._close()
        if self._output is None:
            self._output = self._opened(rows)
        self._output.write_row_group(stored_rows(rows, self._schema))
        for field_id, count in nan_counts(rows, self._context.schema).items():
            self._nan_counts[field_id] = self._nan_counts.get(field_id, 0) + count
        self._last_key = [rows.column(name)[rows.num_rows - 1] for name in self._key_names]
        size = self._output.size_bytes
        self._bytes_per_row = max(size / self._output.row_count, 0.01)
        if size >= _FULL_SHARE * self._context.target_file_size_bytes:
            self._close()

    def _opened(self, first_rows: pa.RecordBatch) -> ParquetOutput:
        """RD-11: the marker says that rows are sorted. Files of a table without a key have no marker."""
        context = self._context
        self._location = self._created.new_location("", context.spec.spec_id, self.partition)
        marker = {SORTED_BY: marker_bytes(context.key_field_ids)} if self._key_names else None
        self._nan_counts = {}
        return ParquetOutput(
            context.io,
            self._location,
            self._schema,
            context.properties,
            key_value_metadata=marker,
            dictionary_columns=self._dictionaries.columns(stored_rows(first_rows, self._schema)),
            write_page_index=True,
            bloom_filters=context.bloom_filters,
            first_rows=first_rows,
        )

    def _close(self) -> None:
        if self._output is None:
            return
        output, self._output = self._output, None
        written = output.finish()
        self._files.append(
            data_file_entry(
                self._context,
                self._location,
                written.metadata,
                written.size_bytes,
                partition=self.partition,
                nan_value_counts=self._nan_counts,
            )
        )


def nan_counts(rows: pa.RecordBatch, schema: Schema) -> Mapping[int, int]:
    """NaNs by field id of every floating point column that is not inside a list or a map."""
    counts: dict[int, int] = {}
    for position, field in enumerate(schema.fields):
        for field_id, values in _floating(field.field_id, rows.column(position), field.field_type):
            counts[field_id] = pc.sum(pc.is_nan(values)).as_py() or 0
    return counts


def _floating(field_id: int, column: pa.Array, field_type: Any) -> Iterator[tuple[int, pa.Array]]:
    if pa.types.is_floating(column.type):
        yield field_id, column
    elif pa.types.is_struct(column.type):
        for child, values in zip(field_type.fields, column.flatten(), strict=True):
            yield from _floating(child.field_id, values, child.field_type)
