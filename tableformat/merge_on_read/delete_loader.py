"""Loads delete files, each once for all data files to which it applies (DA-8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import PrimitiveType

from tableformat.deletes.codecs.deletion_vector import decode_vector
from tableformat.deletes.codecs.inline_spans import decode_spans, decode_spans_of_files
from tableformat.deletes.codecs.position_rows import (
    FILE_PATH,
    FILE_PATH_FIELD_ID,
    POSITION,
    POSITION_FIELD_ID,
    path_texts,
    positions_by_path,
)
from tableformat.deletes.codecs.range_file import spans_from_parquets
from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.skyline import skyline
from tableformat.deletes.spans.spans import SpanArray
from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.delete_columns import history_schema
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.puffin import read_blob
from tableformat.parquet.parquet_columns import LeafColumn
from tableformat.parquet.parquet_file import OpenedFile, leaf_values, open_parquet, read_parquet, unreadable_as_corrupt
from tableformat.properties import name_mapping
from tableformat.storage.loading_cache import LoadingCache
from tableformat.storage.side_by_side import read_side_by_side

CACHE_BYTES: Final = 128 * 1024 * 1024
"""Memory for the contents of delete files: positions, equality keys and spans each."""
_WHOLE_FILE_BYTES: Final = 8 * 1024 * 1024
"""Position delete files up to this size are read completely, for all data files that they name. From larger files only
row groups that may name the wanted data file are read."""
_SMALL_FILE_BYTES: Final = 1024 * 1024
"""Equality and position delete files up to this size are read completely: for a few rows, threads cost more than they
save."""
_POSITION_COLUMNS: Final = (FILE_PATH_FIELD_ID, POSITION_FIELD_ID)
_ENTRY_BYTES: Final = 200
"""The cost of a dictionary entry in addition to the arrays."""
_Content = TypeVar("_Content")

POSITION_DELETE_COLUMNS: Final = NameMapping(
    [
        MappedField.model_validate({"field-id": FILE_PATH_FIELD_ID, "names": [FILE_PATH]}),
        MappedField.model_validate({"field-id": POSITION_FIELD_ID, "names": [POSITION]}),
    ]
)
"""For files whose writer omitted the reserved field ids."""

DeleteColumns = tuple[pa.ChunkedArray, ...]


def _positions_size(found: Mapping[str, PositionSet]) -> int:
    return sum(positions.size_bytes + len(path) + _ENTRY_BYTES for path, positions in found.items())


def _columns_size(columns: DeleteColumns) -> int:
    return int(sum(column.nbytes for column in columns)) + _ENTRY_BYTES


def _keys_size(keys: EqualityKeys) -> int:
    return keys.size_bytes + _ENTRY_BYTES


def _spans_size(spans: SpanArray) -> int:
    columns = (*spans.lower.columns, *spans.upper.columns)
    # Half as much again for the encoded form, which is made when the spans are first compared.
    return 3 * int(sum(column.nbytes for column in columns)) // 2 + 32 * len(spans) + _ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class DeleteCaches:
    """Contents of immutable delete files. Thread-safe; may be shared by all scans of a process."""

    positions: LoadingCache[tuple[str, str | None], Mapping[str, PositionSet]] = field(
        default_factory=lambda: LoadingCache(CACHE_BYTES, _positions_size)
    )
    """By delete file and, for a large one, by data file."""
    delete_columns: LoadingCache[tuple[object, ...], DeleteColumns] = field(
        default_factory=lambda: LoadingCache(CACHE_BYTES, _columns_size)
    )
    equality_keys: LoadingCache[tuple[object, ...], EqualityKeys] = field(
        default_factory=lambda: LoadingCache(CACHE_BYTES, _keys_size)
    )
    spans: LoadingCache[tuple[object, ...], SpanArray] = field(
        default_factory=lambda: LoadingCache(CACHE_BYTES, _spans_size)
    )


@dataclass(frozen=True, slots=True)
class DeleteLoader:
    """Reads delete files of one table. Thread-safe.

    DA-8: every method that reads a delete file raises CorruptFileError, which names the file, if it does not exist or
    cannot be read. It is never treated as empty. Raises UnsupportedFeatureError for other formats than Parquet and
    Puffin.
    """

    io: FileIO
    schema: Schema | None = None
    """Every column in the history of the table, in its newest type (`history_schema`). None reads the spans of range
    delete files in their stored types."""
    name_mapping: NameMapping | None = None
    """The table's name mapping, for equality delete files without field ids."""
    caches: DeleteCaches = field(default_factory=DeleteCaches)

    @classmethod
    def of(cls, metadata: TableMetadata, io: FileIO, caches: DeleteCaches | None = None) -> DeleteLoader:
        """A loader that knows the columns of the table (DA-6)."""
        return cls(io, history_schema(metadata), name_mapping(metadata.properties), caches or DeleteCaches())

    def positions(self, delete: DeleteFile, data_path: str) -> PositionSet:
        """DA-1, DA-10: the rows of the data file that a position delete file names."""
        found = self._positions(delete, None if delete.file_size_bytes <= _WHOLE_FILE_BYTES else data_path)
        return found.get(data_path, PositionSet.empty())

    def named_among(self, deletes: Sequence[DeleteFile], numbers: Mapping[str, int]) -> list[NDArray[np.int64] | None]:
        """DA-10: for each position delete file, the numbers of the data files that it names, from `numbers` by path;
        None for one that is too large to read completely. Positions are kept within the limits of the cache."""

        def of_one(delete: DeleteFile) -> NDArray[np.int64] | None:
            if delete.file_size_bytes > _WHOLE_FILE_BYTES:
                return None
            named = self._positions(delete, None)
            return np.array([numbers[path] for path in named if path in numbers], np.int64)

        return _read_side_by_side(of_one, deletes)

    def _positions(self, delete: DeleteFile, wanted: str | None) -> Mapping[str, PositionSet]:
        """By data file; only `wanted` if it is given."""
        key = (delete.file_path, wanted)
        return self.caches.positions.get_or_load(key, lambda: self._read_positions(delete, wanted))

    def positions_by_file(self, delete: DeleteFile) -> Mapping[str, PositionSet]:
        """DA-10: all rows that a position delete file or a deletion vector names, by data file. Nothing is cached."""
        if delete.kind is not DeleteKind.DELETION_VECTOR:
            return self._read_positions(delete, None)
        if delete.referenced_data_file is None:
            raise CorruptFileError(delete.file_path, "the manifest entry of the deletion vector names no data file.")
        return {delete.referenced_data_file: self.vector(delete)}

    def named_paths(self, delete: DeleteFile) -> frozenset[str]:
        """DA-10: the data files that a position delete file names. Reads the column of paths and caches nothing."""
        with self._opened(delete, POSITION_DELETE_COLUMNS) as file, unreadable_as_corrupt(delete.file_path):
            found: set[str] = set()
            for group in range(file.row_group_count):
                (paths,) = self._read_all(file, (FILE_PATH_FIELD_ID,), (group,))
                found.update(path_texts(pc.unique(paths)))
        return frozenset(found)

    def vector(self, delete: DeleteFile) -> PositionSet:
        """DA-7: the rows of a deletion vector, in one ranged read. Their number has to equal that of the entry."""
        location = delete.file_path
        if delete.content_offset is None or delete.content_size_bytes is None:
            raise CorruptFileError(location, "the manifest entry of the deletion vector lacks its offset or its size.")
        with unreadable_as_corrupt(location):
            blob = read_blob(
                self.io,
                location,
                offset=delete.content_offset,
                length_bytes=delete.content_size_bytes,
                file_size_bytes=delete.file_size_bytes,
            )
        positions = decode_vector(blob, location)
        if len(positions) != delete.record_count:
            raise CorruptFileError(
                location,
                f"the deletion vector contains {len(positions)} positions, but its manifest entry states "
                f"{delete.record_count}.",
            )
        return positions

    def equality_keys(
        self, deletes: Sequence[DeleteFile], types: Mapping[int, PrimitiveType], digest: bytes | None = None
    ) -> EqualityKeys:
        """DA-2: the combined keys of delete files with one set of equality ids, in ascending order of the ids.

        `types` is the type in which each delete column is compared (DA-6). `digest` identifies the delete files, if it
        is known.
        """
        field_ids = tuple(sorted(types))
        compared = tuple(str(types[field_id]) for field_id in field_ids)
        key = (
            digest or frozenset((delete.file_path, committed_sequence_number(delete)) for delete in deletes),
            field_ids,
            compared,
        )

        def load() -> EqualityKeys:
            columns = _read_side_by_side(lambda delete: self.delete_columns(delete, field_ids, types), deletes)
            numbers = [committed_sequence_number(delete) for delete in deletes]
            return EqualityKeys.collapse(
                field_ids, [types[field_id] for field_id in field_ids], list(zip(columns, numbers, strict=True))
            )

        return self.caches.equality_keys.get_or_load(key, load)

    def range_spans(self, delete: DeleteFile) -> SpanArray:
        """RD-8: the spans of one range delete file, each with its sequence number."""
        return SpanArray.concat(self.numbered_spans([delete]))

    def numbered_spans(self, deletes: Sequence[DeleteFile]) -> list[SpanArray]:
        """RD-8, RD-13: the spans of files with one list of columns, from the entries that carry them or from the
        files."""
        carried = [delete for delete in deletes if delete.range_spans is not None]
        stored = [delete for delete in deletes if delete.range_spans is None]
        return [*decode_spans(carried, self.schema), *(self._stored_spans(stored) if stored else ())]

    def spans_of_files(self, deletes: Sequence[DeleteFile]) -> list[SpanArray]:
        """RD-8, RD-13: the result of `range_spans` for each file; all files have one list of columns."""
        carried = [delete for delete in deletes if delete.range_spans is not None]
        stored = [delete for delete in deletes if delete.range_spans is None]
        of_carried = iter(decode_spans_of_files(carried, self.schema))
        of_stored = iter(self._stored_spans(stored) if stored else ())
        return [next(of_stored if delete.range_spans is None else of_carried) for delete in deletes]

    def _stored_spans(self, deletes: Sequence[DeleteFile]) -> list[SpanArray]:
        """The spans of each file, all with one list of columns. Files that are not cached are decoded together."""
        types = self._types_of(deletes[0])
        keys = [(delete.file_path, committed_sequence_number(delete), types) for delete in deletes]
        found = {key: spans for key in keys if (spans := self.caches.spans.held(key)) is not None}
        missing = [(key, delete) for key, delete in zip(keys, deletes, strict=True) if key not in found]
        paths = [delete.file_path for _, delete in missing]
        rows = _read_side_by_side(self._span_rows, [delete for _, delete in missing])
        loaded = spans_from_parquets(rows, paths, self.schema)
        for (key, _), spans in zip(missing, loaded, strict=True):
            found[key] = spans.with_sequence_number(key[1])
            self.caches.spans.hold(key, found[key])
        return [found[key] for key in keys]

    def range_fragments(self, deletes: Sequence[DeleteFile]) -> SpanArray:
        """RD-9: the spans of range delete files with one list of columns, cut into disjoint fragments."""
        numbered = frozenset((delete.file_path, committed_sequence_number(delete)) for delete in deletes)
        return self.caches.spans.get_or_load(
            (numbered, self._types_of(deletes[0])), lambda: skyline(SpanArray.concat(self.numbered_spans(deletes)))
        )

    def _span_rows(self, delete: DeleteFile) -> pa.Table:
        if delete.file_size_bytes <= _WHOLE_FILE_BYTES:
            file = read_parquet(self.io, delete)
            return file.read_whole(range(file.metadata.num_columns))
        with self._opened(delete) as opened, unreadable_as_corrupt(delete.file_path):
            return opened.reader().read()

    def _types_of(self, delete: DeleteFile) -> tuple[str, ...]:
        """The promoted types of the columns decide the form of the spans."""
        if self.schema is None:
            return ()
        columns = (self.schema.find_column_name(field_id) for field_id in delete.equality_ids or ())
        return tuple("" if name is None else str(self.schema.find_type(name)) for name in columns)

    def _opened(
        self, delete: DeleteFile, name_mapping: NameMapping | None = None
    ) -> AbstractContextManager[OpenedFile]:
        # Footers of delete files are not cached: what is read of them is.
        return open_parquet(self.io, delete, name_mapping=name_mapping)

    def _read_positions(self, delete: DeleteFile, wanted: str | None) -> Mapping[str, PositionSet]:
        if wanted is None and delete.file_size_bytes <= _SMALL_FILE_BYTES:
            paths, positions = self._stored_columns(delete, _POSITION_COLUMNS, POSITION_DELETE_COLUMNS)
        else:
            with self._opened(delete, POSITION_DELETE_COLUMNS) as file, unreadable_as_corrupt(delete.file_path):
                paths, positions = self._read_all(file, _POSITION_COLUMNS, _groups_naming(file, wanted))
        with unreadable_as_corrupt(delete.file_path):
            rows = pa.table({FILE_PATH: paths, POSITION: positions})
            return positions_by_path(rows, None if wanted is None else {wanted})

    def delete_columns(
        self, delete: DeleteFile, field_ids: tuple[int, ...], types: Mapping[int, PrimitiveType]
    ) -> DeleteColumns:
        """DA-2: the keys of an equality delete file, in the order of `field_ids`, comparable in `types` (DA-6)."""

        def load() -> DeleteColumns:
            columns = self._stored_columns(delete, field_ids, self.name_mapping)
            with unreadable_as_corrupt(delete.file_path):
                return tuple(
                    comparable(column, types[field_id]) for column, field_id in zip(columns, field_ids, strict=True)
                )

        key = (delete.file_path, field_ids, tuple(str(types[field_id]) for field_id in field_ids))
        return self.caches.delete_columns.get_or_load(key, load)

    def _stored_columns(
        self, delete: DeleteFile, field_ids: tuple[int, ...], name_mapping: NameMapping | None
    ) -> list[pa.ChunkedArray]:
        """The columns with these field ids. A small file is read at once and decoded by the calling thread."""
        if delete.file_size_bytes > _SMALL_FILE_BYTES:
            with self._opened(delete, name_mapping) as file, unreadable_as_corrupt(delete.file_path):
                return self._read_all(file, field_ids, range(file.row_group_count))
        file = read_parquet(self.io, delete, name_mapping=name_mapping)
        leaves = [_leaf(file, field_id) for field_id in field_ids]
        rows = file.read_whole(sorted({leaf.index for leaf in leaves}))
        return [leaf_values(rows, leaf.path) for leaf in leaves]

    @staticmethod
    def _read_all(file: OpenedFile, field_ids: Sequence[int], row_groups: Sequence[int]) -> list[pa.ChunkedArray]:
        for field_id in field_ids:
            _leaf(file, field_id)
        return [column for column in file.read(field_ids, row_groups) if column is not None]


def _read_side_by_side(read: Callable[[DeleteFile], _Content], deletes: Sequence[DeleteFile]) -> list[_Content]:
    return read_side_by_side(read, deletes, attrgetter("file_path"), attrgetter("file_size_bytes"))


def _leaf(file: OpenedFile, field_id: int) -> LeafColumn:
    if field_id not in file.leaves:
        raise CorruptFileError(file.location, f"the delete column with field id {field_id} is not in the file.")
    return file.leaves[field_id]


def _groups_naming(file: OpenedFile, wanted: str | None) -> list[int]:
    """Row groups whose bounds of the path do not exclude the data file; all if none is given."""
    groups = list(range(file.row_group_count))
    leaf = file.leaves.get(FILE_PATH_FIELD_ID)
    if wanted is None or leaf is None:
        return groups
    path = wanted.encode()
    found = []
    for group in groups:
        statistics = file.metadata.row_group(group).column(leaf.index).statistics
        is_bounded = statistics is not None and statistics.has_min_max
        if not is_bounded or statistics.min_raw <= path <= statistics.max_raw:
            found.append(group)
    return found
