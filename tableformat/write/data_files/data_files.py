"""Writes rows to data files: by partition, sorted by the key, in bounded memory, with exact metrics.

    batches -> conformed -> staged -> split by partition -> buffers -> sorted -> row groups -> files of the target size

Rows of a table without partitions go directly to their buffer, and sorted rows are never concatenated.

Everything is written or nothing: a failure removes the files of the call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tableformat.keys.table_key import key_names
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.parquet_output import DictionaryChoice
from tableformat.write.context import WriteContext
from tableformat.write.created_files import CreatedFiles, removed_on_failure
from tableformat.write.data_files.partition_writer import PartitionWriter
from tableformat.write.data_files.partitions import Place, RowRouter, row_router, split
from tableformat.write.data_files.stored_columns import refuse_unwritten_types, stored_schema
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.one_batch import one_batch
from tableformat.write.rows.rows import as_reader
from tableformat.write.staged import StagedFiles

Through = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Receives the conformed batches before they are written, and may drop or change rows."""

_STAGE_SHARE: Final = 8
"""Batches are split into partitions together when they fill this fraction of the memory, so that small batches share
one pass."""
_BUFFER_SHARE: Final = 3 / 8
"""The fraction of the memory for buffered rows. Concatenating the buffer of a partition for sorting copies it."""
_ROW_GROUP_SHARE: Final = 1 / 8
"""The fraction of the memory for one row group: its sorted rows, its pages, and their compressed form exist together.
"""
_PARALLEL_FROM_PARTITIONS: Final = 4
_THREADS_MAX: Final = 4


def write_data_files(
    context: WriteContext,
    rows: Any,
    *,
    on_refused: str = "fail",
    through: Through | None = None,
    router: RowRouter | None = None,
) -> StagedFiles:
    """Write rows to new data files under the table's default spec. Nothing is committed.

    `rows` is ConformedRows, or an argument of `as_reader`. With `on_refused="divert"`, rows that do not fit are
    returned in `StagedFiles.refused`; with "fail" they raise RowsRefusedError. Reads `rows` once, stays within
    `context.memory_bytes` (MT-63), and removes its files after a failure.
    """
    schema = table_arrow_schema(context.schema)
    conformed = (
        rows
        if isinstance(rows, ConformedRows)
        else ConformedRows(as_reader(rows, schema=schema), context.schema, on_refused=on_refused)
    )
    batches: Iterator[pa.RecordBatch] = iter(conformed)
    if through is not None:
        batches = through(batches)
    return _write(context, batches, router, lambda: conformed.refused)


def write_conformed(
    context: WriteContext, batches: Iterable[pa.RecordBatch], *, router: RowRouter | None = None
) -> StagedFiles:
    """Write batches in the table's schema: from ConformedRows, or from `last_row_per_key` after it."""
    return _write(context, iter(batches), router, lambda: None)


def _write(
    context: WriteContext,
    batches: Iterator[pa.RecordBatch],
    router: RowRouter | None,
    refused: Callable[[], pa.Table | None],
) -> StagedFiles:
    with removed_on_failure(context) as created:
        sink = DataFileSink(context, created, router or row_router(context))
        try:
            for batch in batches:
                sink.add(batch)
            files = sink.finish()
        except BaseException:
            sink.abandon()
            raise
        return StagedFiles(
            data_files=tuple(files),
            row_count=sum(file.record_count for file in files),
            written_bytes=sum(file.file_size_bytes for file in files),
            refused=refused(),
        )


@dataclass(slots=True)
class _Buffer:
    """Rows of one target that are not written yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size_bytes: int = 0


class DataFileSink:
    """Writes conformed batches to data files within `context.memory_bytes` (MT-63)."""

    def __init__(self, context: WriteContext, created: CreatedFiles, router: RowRouter) -> None:
        refuse_unwritten_types(context.schema)
        self._context = context
        self._created = created
        self._router = router
        self._schema = table_arrow_schema(context.schema)
        self._key_names = key_names(context.schema, context.key_field_ids) if context.sorts_rows else []
        self._dictionaries = DictionaryChoice(stored_schema(self._schema))
        self._staged = _Buffer()
        self._buffers: dict[Place, _Buffer] = {}
        self._buffered_bytes = 0
        self._files: list[DataFile] = []
        self._open: PartitionWriter | None = None
        self._open_place: Place | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """When the memory is full, writes files of the largest partition first."""
        only = self._router.only_place
        if only is None:
            self._stage(batch)
        elif batch.num_rows:
            self._buffer(only, batch)
        while self._buffered_bytes > _BUFFER_SHARE * self._context.memory_bytes:
            self._flush_largest()

    def finish(self) -> list[DataFile]:
        """Write the remaining rows and return all files."""
        self._split_staged()
        places = list(self._buffers)
        if len(places) >= _PARALLEL_FROM_PARTITIONS:
            self._close_open()
            threads = min(len(places), os.cpu_count() or 1, _THREADS_MAX)
            with ThreadPoolExecutor(threads) as pool:
                for files in pool.map(partial(self._write_alone, writer_count=threads), places):
                    self._files += files
        else:
            for place in places:
                self._flush(place)
        self._buffers.clear()
        self._close_open()
        return self._files

    def abandon(self) -> None:
        """Close the open file after a failure."""
        if self._open is not None:
            self._open.abandon()
            self._open = None

    def _stage(self, batch: pa.RecordBatch) -> None:
        self._staged.batches.append(batch)
        self._staged.size_bytes += batch.nbytes
        if self._staged.size_bytes * _STAGE_SHARE >= self._context.memory_bytes:
            self._split_staged()

    def _split_staged(self) -> None:
        if not self._staged.batches:
            return
        batch = one_batch(self._staged.batches)
        self._staged = _Buffer()
        for place, rows in split(batch, self._router.route(batch)):
            if rows.num_rows:
                self._buffer(place, rows)

    def _buffer(self, place: Place, rows: pa.RecordBatch) -> None:
        buffer = self._buffers.setdefault(place, _Buffer())
        buffer.batches.append(rows)
        buffer.size_bytes += rows.nbytes
        self._buffered_bytes += rows.nbytes

    def _flush_largest(self) -> None:
        self._flush(max(self._buffers, key=lambda place: self._buffers[place].size_bytes))

    def _flush(self, place: Place) -> None:
        """Write the buffer of a target. Its last file stays open in case its next rows continue the order."""
        if self._open is None or self._open_place != place:
            self._close_open()
            self._open, self._open_place = self._writer(place), place
        self._open.write(self._taken(place))

    def _write_alone(self, place: Place, writer_count: int) -> list[DataFile]:
        writer = self._writer(place, writer_count)
        try:
            writer.write(self._taken(place))
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise

    def _taken(self, place: Place) -> list[pa.RecordBatch]:
        """Remove and return the buffered rows."""
        buffer = self._buffers.pop(place)
        self._buffered_bytes -= buffer.size_bytes
        return buffer.batches

    def _writer(self, place: Place, writer_count: int = 1) -> PartitionWriter:
        return PartitionWriter(
            self._context,
            self._created,
            self._schema,
            self._key_names,
            partition=place.partition,
            dictionaries=self._dictionaries,
            row_group_bytes=_ROW_GROUP_SHARE * self._context.memory_bytes / writer_count,
        )

    def _close_open(self) -> None:
        if self._open is not None:
            self._files += self._open.finish()
            self._open = None
