"""A Parquet file opened for the columns that decide which of its rows are deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.table.name_mapping import NameMapping

from tableformat.cached_property import cached_property
from tableformat.errors import CorruptFileError, TableFormatError, UnsupportedFeatureError
from tableformat.keys.sort_marker import sorted_by
from tableformat.metadata.content_file import (
    PARQUET,
    PARQUET_MAGIC,
    RANGE_DELETES_MAGIC,
    RANGE_DELETES_PARQUET,
    ContentFile,
    DeleteFile,
)
from tableformat.parquet.parquet_columns import LeafColumn, leaf_columns, struct_columns, with_field_ids
from tableformat.storage.loading_cache import LoadingCache
from tableformat.storage.outage import raise_unless_damage
from tableformat.storage.storage import open_input, read_bytes

FooterCache = LoadingCache[tuple[str, int], pq.FileMetaData]
"""Footers by location and size of the file."""

_DICTIONARY_BYTES_PER_ROW: Final = 3
"""The encoded size up to which a string column is assumed to be dictionary encoded completely. Reading it as codes is
then eight times as fast. A column that fell back to plain strings would have to be hashed."""


_READ_AT_ONCE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """One Parquet file: its footer, its columns by field id, and reading by row group. Not thread-safe."""

    location: str
    metadata: pq.FileMetaData
    source: pa.NativeFile
    name_mapping: NameMapping | None = None
    verifies_checksums: bool = False
    """Whether page checksums are verified, if they exist (DA-11)."""
    whole: pq.ParquetFile | None = None
    """The reader that read the footer, for a file in memory."""

    @property
    def row_count(self) -> int:
        return int(self.metadata.num_rows)

    @property
    def row_group_count(self) -> int:
        return int(self.metadata.num_row_groups)

    @cached_property
    def row_group_starts(self) -> NDArray[np.int64]:
        """Position of the first row of each row group, and finally the row count."""
        counts = [self.metadata.row_group(group).num_rows for group in range(self.row_group_count)]
        return np.cumsum([0, *counts], dtype=np.int64)

    @cached_property
    def sorted_by(self) -> tuple[int, ...] | None:
        """RD-11: field ids by which the rows are sorted, from our own marker only; None without a marker."""
        return sorted_by(self.metadata.metadata)

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The schema as the file has it."""
        with unreadable_as_corrupt(self.location):
            return self.metadata.schema.to_arrow_schema()

    @cached_property
    def schema(self) -> pa.Schema:
        """The file's schema with field ids (`PARQUET:field_id`), from the name mapping if needed."""
        return with_field_ids(self.stored_schema, self.name_mapping, self.location)

    @cached_property
    def leaves(self) -> dict[int, LeafColumn]:
        """Primitive columns outside of lists and maps, by field id."""
        return leaf_columns(self.schema, self.metadata.num_columns, self.location)

    @cached_property
    def structs(self) -> dict[int, LeafColumn]:
        """Structs outside of lists and maps, by field id."""
        return struct_columns(self.schema)

    def reader(self, dictionary_columns: Sequence[str] = (), *, buffer_bytes: int = 0) -> pq.ParquetFile:
        """A pyarrow reader of the file. The footer is not read again.

        With `buffer_bytes`, a column is read in pieces of that size while it is decoded.
        """
        return pq.ParquetFile(
            self.source,
            metadata=self.metadata,
            read_dictionary=list(dictionary_columns),
            # pyarrow's default of reading column chunks ahead would override the buffer. For a local file it is not
            # faster, and it needs pyarrow's threads, which scanners of datasets occupy while they wait for these rows.
            pre_buffer=buffer_bytes == 0 and not isinstance(self.source, (pa.OSFile, pa.BufferReader)),
            buffer_size=buffer_bytes,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=self.verifies_checksums,
        )

    def read(self, field_ids: Sequence[int], row_groups: Sequence[int]) -> list[pa.ChunkedArray | None]:
        """DA-6: the primitive columns with these field ids, with the rows of the row groups concatenated, in the types
        of the file.

        None for a column that the file lacks. Strings may be dictionary encoded. If a parent struct is null, the value
        is null. Raises CorruptFileError, which names the file.
        """
        present = [self.leaves[field_id] for field_id in field_ids if field_id in self.leaves]
        if not present:
            return [None] * len(field_ids)
        reader = self.reader([".".join(leaf.path) for leaf in present if self._is_cheaper_as_codes(leaf)])
        with unreadable_as_corrupt(self.location):
            rows = reader.reader.read_row_groups(
                list(row_groups), column_indices=sorted({leaf.index for leaf in present}), use_threads=True
            )
            return [
                leaf_values(rows, self.leaves[field_id].path) if field_id in self.leaves else None
                for field_id in field_ids
            ]

    def read_whole(self, leaf_indices: Sequence[int]) -> pa.Table:
        """All rows of the Parquet columns with these numbers, in the types of the file, from a file in memory.

        The calling thread decodes them: for a few rows, threads take longer than decoding. Raises CorruptFileError,
        which names the file.
        """
        assert self.whole is not None, f"{self.location} is not in memory"
        with unreadable_as_corrupt(self.location):
            return self.whole.reader.read_all(column_indices=list(leaf_indices), use_threads=False)

    def _is_cheaper_as_codes(self, leaf: LeafColumn) -> bool:
        if not (pa.types.is_string(leaf.arrow_type) or pa.types.is_binary(leaf.arrow_type)) or not self.row_group_count:
            return False
        chunk = self.metadata.row_group(0).column(leaf.index)
        is_small = chunk.total_uncompressed_size <= _DICTIONARY_BYTES_PER_ROW * max(chunk.num_values, 1)
        return bool(chunk.has_dictionary_page and is_small)


def leaf_values(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """The column at a path of names. If a parent struct is null, the value is null."""
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


@contextlib.contextmanager
def open_parquet(
    io: FileIO,
    file: ContentFile,
    *,
    name_mapping: NameMapping | None = None,
    footers: FooterCache | None = None,
    verify_checksums: bool = False,
) -> Iterator[OpenedFile]:
    """The file, closed at the end of the block.

    DA-11: page checksums of a delete file are always verified, those of a data file with `verify_checksums`. Raises
    UnsupportedFeatureError for another format than Parquet, and CorruptFileError for a missing or unreadable file. Both
    name the file.
    """
    _check_is_parquet(file)
    with unreadable_as_corrupt(file.file_path):
        at_once = file.file_size_bytes <= _READ_AT_ONCE_BYTES or file.file_format == RANGE_DELETES_PARQUET
        source = _in_memory(io, file) if at_once else open_input(io, file.file_path, file.file_size_bytes)
    with source:
        is_delete = isinstance(file, DeleteFile)
        with unreadable_as_corrupt(file.file_path):
            metadata = _footer(source, file, footers)
        if is_delete:
            _check_row_count(metadata, file)
        yield OpenedFile(file.file_path, metadata, source, name_mapping, is_delete or verify_checksums)


def read_parquet(
    io: FileIO,
    file: ContentFile,
    *,
    name_mapping: NameMapping | None = None,
    verify_checksums: bool = False,
) -> OpenedFile:
    """The result of `open_parquet` for a small file. Its bytes are read at once and kept in memory. Its footer is not
    cached, because decoding it is as fast as a cache lookup."""
    _check_is_parquet(file)
    is_delete = isinstance(file, DeleteFile)
    with unreadable_as_corrupt(file.file_path):
        source = _in_memory(io, file)
        reader = pq.ParquetFile(
            source,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=is_delete or verify_checksums,
        )
    metadata = reader.metadata
    if is_delete:
        _check_row_count(metadata, file)
    return OpenedFile(file.file_path, metadata, source, name_mapping, is_delete or verify_checksums, reader)


def _check_is_parquet(file: ContentFile) -> None:
    if file.file_format not in {PARQUET, RANGE_DELETES_PARQUET}:
        raise UnsupportedFeatureError(
            f"{file.file_path} is an {file.file_format} file, but only Parquet files can be read. Rewrite it as "
            "Parquet with the engine that wrote it."
        )


def _check_row_count(metadata: pq.FileMetaData, file: ContentFile) -> None:
    """DA-11: a footer, which has no checksum, that omits rows of a delete file."""
    stored = sum(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    if stored != metadata.num_rows or stored < file.record_count:
        raise CorruptFileError(
            file.file_path,
            f"its footer states {metadata.num_rows} rows, its row groups {stored} and its manifest entry "
            f"{file.record_count}.",
        )


def _in_memory(io: FileIO, file: ContentFile) -> pa.BufferReader:
    """Read a small file or a range delete file at once. Parquet would request the footer and every column chunk
    separately."""
    data = read_bytes(io, file.file_path, file.file_size_bytes)
    if len(data) < file.file_size_bytes:
        raise CorruptFileError(
            file.file_path,
            f"it has {len(data)} bytes, but the metadata states {file.file_size_bytes}; it was cut off.",
        )
    return pa.BufferReader(plain_parquet(data) if file.file_format == RANGE_DELETES_PARQUET else data)


def plain_parquet(data: bytes) -> bytes:
    """RD-6: a range delete file as Parquet. Files before format version 0.2 are already Parquet."""
    if not data.endswith(RANGE_DELETES_MAGIC):
        return data
    return data[: -len(RANGE_DELETES_MAGIC)] + PARQUET_MAGIC


def footer_size_bytes(metadata: pq.FileMetaData) -> int:
    """The estimated memory of a footer: its Thrift form is about a third of the parsed form."""
    return 3 * int(metadata.serialized_size)


@contextlib.contextmanager
def unreadable_as_corrupt(location: str) -> Iterator[None]:
    """DA-8: any error in the block means that the file cannot be read. Raises CorruptFileError, which names it.

    Errors of this library are raised unchanged, because they name a file and say more. Unreachable storage, and a
    process without threads or file descriptors, raise StorageError. A MemoryError is raised unchanged.
    """
    try:
        yield
    except TableFormatError:
        raise
    except Exception as error:
        raise_unless_damage(location, error)
        raise CorruptFileError(location, f"the file cannot be read: {error!r}.") from error


def _footer(source: pa.NativeFile, file: ContentFile, footers: FooterCache | None) -> pq.FileMetaData:
    if footers is None:
        return pq.read_metadata(source)
    return footers.get_or_load((file.file_path, file.file_size_bytes), lambda: pq.read_metadata(source))
