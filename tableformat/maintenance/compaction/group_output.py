"""Writes the sorted rows of a compaction group, in row groups and files of even size (MT-44, MT-45)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from tableformat.keys.table_key import key_names
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.array_forms import as_type
from tableformat.parquet.parquet_output import DictionaryChoice
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.rows import partitions_of_rows
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles
from tableformat.write.data_files.partition_writer import PartitionWriter
from tableformat.write.data_files.stored_columns import refuse_unwritten_types, stored_schema
from tableformat.write.rows.conform import table_arrow_schema

_MEMORY_PARTS: Final = 12
"""Half of the memory is for row groups. Up to six exist at once: collected, waiting, being written, and as pages."""


def output_file_count(alive_bytes: float, target_file_size_bytes: int) -> int:
    """MT-44: the number of files that comes nearest to the target size if rows are spread evenly: 0.75 to 1.5 times the
    target size each."""
    return max(1, round(alive_bytes / target_file_size_bytes))


def row_groups(batches: Iterator[pa.RecordBatch], write: WriteContext) -> Iterator[pa.RecordBatch]:
    """The rows in batches of one row group each, with as many rows as the limit and the memory allow."""
    room = max(write.memory_bytes // _MEMORY_PARTS, 1)
    gathered: list[pa.RecordBatch] = []
    row_count = size = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            fitting = max(int((room - size) * rest.num_rows / max(rest.nbytes, 1)), 0 if gathered else 1)
            part = rest.slice(0, min(fitting, write.row_group_limit - row_count))
            gathered.append(part)
            row_count, size = row_count + part.num_rows, size + part.nbytes
            rest = rest.slice(part.num_rows)
            if rest.num_rows or row_count == write.row_group_limit:
                yield pa.concat_batches(gathered)
                gathered, row_count, size = [], 0, 0
    if gathered:
        yield pa.concat_batches(gathered)


class GroupOutput:
    """MT-45: writes the files of one group. The number of rows in a file follows from the bytes per row written so
    far."""

    def __init__(
        self,
        write: WriteContext,
        created: CreatedFiles,
        *,
        partition: tuple[object, ...],
        target_file_size_bytes: int,
        row_count: int,
        bytes_per_row: float,
    ) -> None:
        """`row_count` is the expected number of rows; `bytes_per_row` is their size, used until rows have been
        written."""
        refuse_unwritten_types(write.schema)
        self._write = write
        self._created = created
        self._partition = partition
        self._target_file_size_bytes = target_file_size_bytes
        self._schema = _stored_schema(write)
        self._key_names = key_names(write.schema, write.key_field_ids)
        self._dictionaries = DictionaryChoice(stored_schema(self._schema))
        self._bytes_per_row = bytes_per_row
        self._rows_left = row_count
        self._rows_in_file = 0
        self._writer: PartitionWriter | None = None
        self._files: list[DataFile] = []

    def __enter__(self) -> GroupOutput:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def write(self, rows: pa.RecordBatch) -> None:
        """Add sorted rows that follow the rows added before."""
        rest = _as_stored(rows, self._schema)
        while rest.num_rows:
            room = max(self._rows_per_file() - self._rows_in_file, 1)
            part, rest = rest.slice(0, room), rest.slice(room)
            self._write_part(part)
            if self._rows_in_file >= self._rows_per_file():
                self._close()

    def finish(self) -> list[DataFile]:
        self._close()
        return self._files

    def _rows_per_file(self) -> int:
        """The number of rows per file if the rows of the open file and the remaining rows are spread evenly over
        files."""
        row_count = self._rows_in_file + self._rows_left
        count = output_file_count(row_count * self._bytes_per_row, self._target_file_size_bytes)
        return -(-row_count // count)

    def _write_part(self, rows: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = PartitionWriter(
                self._write,
                self._created,
                self._schema,
                self._key_names,
                partition=self._partition,
                dictionaries=self._dictionaries,
                row_group_bytes=self._write.memory_bytes / _MEMORY_PARTS,
            )
        self._writer.write([rows])
        self._rows_in_file += rows.num_rows
        self._rows_left -= rows.num_rows
        if self._writer.open_file_bytes:
            self._bytes_per_row = self._writer.open_file_bytes / self._rows_in_file

    def _close(self) -> None:
        if self._writer is not None:
            self._files += self._writer.finish()
            self._writer, self._rows_in_file = None, 0


class DividedOutput:
    """RP-16: writes the files of a group whose rows are in several range partitions, with one output for each."""

    def __init__(self, ranges: DefinedPartitions, new_output: Callable[[], GroupOutput]) -> None:
        self._ranges = ranges
        self._new_output = new_output
        self._outputs: dict[tuple[int, int], GroupOutput] = {}

    def __enter__(self) -> DividedOutput:
        return self

    def __exit__(self, *exception: object) -> None:
        for output in self._outputs.values():
            output.__exit__(*exception)

    def write(self, rows: pa.RecordBatch) -> None:
        """Add sorted rows that follow the rows added before."""
        columns = [rows.column(name) for name in self._ranges.key.names]
        places, codes = partitions_of_rows(self._ranges, columns)
        for number, place in enumerate(places):
            if place not in self._outputs:
                self._outputs[place] = self._new_output()
            self._outputs[place].write(rows.filter(pa.array(codes == number)))

    def finish(self) -> list[DataFile]:
        return [file for output in self._outputs.values() for file in output.finish()]


def _stored_schema(write: WriteContext) -> pa.Schema:
    """The schema of the files: field ids on every field, and strings and binaries with 32-bit offsets, as in the rows
    that are read."""
    small = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    fields = table_arrow_schema(write.schema)
    return pa.schema([field.with_type(small.get(field.type, field.type)) for field in fields])


def _as_stored(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Nested columns get the offsets and field ids of the files' schema. Other columns are the same arrays."""
    columns = [
        as_type(column, field.type) if pat.is_nested(field.type) else column
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
