"""Reads key columns of one data file: bounds of its row groups, and values of chosen row groups."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat
from numpy.typing import NDArray
from pyiceberg.types import PrimitiveType

from tableformat.keys.encoding import AFTER_MARKER, encode_column
from tableformat.keys.families import KeyFamily, arrow_type_of, family_of
from tableformat.keys.microseconds import without_finer_digits
from tableformat.parquet.missing_column import MissingColumn
from tableformat.parquet.parquet_columns import LeafColumn
from tableformat.parquet.parquet_file import OpenedFile

_UNDECODABLE: Final = (UnicodeDecodeError, ValueError, OverflowError, decimal.InvalidOperation, pa.ArrowException)


@dataclass(frozen=True, slots=True, eq=False)
class KeyReader:
    """One opened data file, with the values of columns that it lacks."""

    file: OpenedFile
    missing: Callable[[int], MissingColumn]
    """DA-6: by field id, the value of a column that the file lacks."""
    last_read: dict[int, tuple[tuple[int, ...], pa.ChunkedArray]] = field(default_factory=dict)
    """By field id, the row groups that were read last and their values: range deletes of the file read the columns that
    its equality deletes have just read."""

    def columns(self, field_ids: Sequence[int], row_groups: Sequence[int]) -> list[pa.ChunkedArray]:
        """The concatenated values of the columns in the row groups, in the types of the file."""
        held = {field_id: self.last_read[field_id] for field_id in field_ids if self._holds(field_id, row_groups)}
        unread = [field_id for field_id in field_ids if field_id not in held]
        if unread:
            # Released first, so that alternately read row groups are not in memory together.
            self.last_read.clear()
            self.last_read.update(held)
            groups = tuple(row_groups)
            for field_id, column in zip(unread, self._read(unread, groups), strict=True):
                self.last_read[field_id] = held[field_id] = groups, column
        return [self._part(*held[field_id], row_groups) for field_id in field_ids]

    def _holds(self, field_id: int, row_groups: Sequence[int]) -> bool:
        return field_id in self.last_read and set(row_groups) <= set(self.last_read[field_id][0])

    def _read(self, field_ids: Sequence[int], row_groups: tuple[int, ...]) -> Iterator[pa.ChunkedArray]:
        for field_id, column in zip(field_ids, self.file.read(field_ids, row_groups), strict=True):
            yield self.missing(field_id).read(self.file, row_groups) if column is None else column

    def _part(self, held: tuple[int, ...], column: pa.ChunkedArray, row_groups: Sequence[int]) -> pa.ChunkedArray:
        """The rows of some of the cached row groups of a column."""
        if len(held) == len(row_groups):
            return column
        starts = self.file.row_group_starts
        offsets = np.cumsum([0, *(starts[group + 1] - starts[group] for group in held)]).tolist()
        places = map(held.index, row_groups)
        parts = [column.slice(offsets[place], offsets[place + 1] - offsets[place]) for place in places]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], column.type)

    def bounds(self, field_ids: Sequence[int], key_types: Sequence[PrimitiveType]) -> tuple[list[bytes], list[bytes]]:
        """RD-10: for each row group two encoded cuts that enclose all its keys, for any order of rows.

        Statistics are bounds and need not be values that occur: writers truncate them. A side ends at the first column
        with an unknown null count or bound. Bounds of floats are unknown, because statistics leave NaN out.
        """
        group_count = self.file.row_group_count
        lower, upper = [b""] * group_count, [b""] * group_count
        is_open = np.ones(group_count, np.bool_)
        for field_id, key_type in zip(field_ids, key_types, strict=True):
            column_lower, column_upper, known = self._column_bounds(field_id, key_type)
            is_open &= known
            if not is_open.any():
                break
            encoded = encode_column(column_lower, key_type), encode_column(column_upper, key_type)
            for group in np.flatnonzero(is_open).tolist():
                lower[group] += encoded[0][group].as_py()
                upper[group] += encoded[1][group].as_py()
        return lower, [cut + AFTER_MARKER for cut in upper]

    def _column_bounds(self, field_id: int, key_type: PrimitiveType) -> tuple[pa.Array, pa.Array, NDArray[np.bool_]]:
        """Smallest and largest value of a column in each row group (null if a null is one), and whether they are
        known."""
        arrow_type = arrow_type_of(key_type)
        leaf = self.file.leaves.get(field_id)
        if leaf is None:
            missing, count = self.missing(field_id), self.file.row_group_count
            every = pa.repeat(missing.value, count).cast(arrow_type)
            lowest = every if missing.struct_id is None else pa.nulls(count, arrow_type)
            return lowest, every, np.ones(count, np.bool_)
        has_bounds = family_of(key_type) is not KeyFamily.FLOAT
        pairs = [
            _statistics_bounds(self.file.metadata.row_group(group).column(leaf.index), leaf, has_bounds=has_bounds)
            for group in range(self.file.row_group_count)
        ]
        lower = _array([None if pair is None else pair[0] for pair in pairs], leaf.arrow_type, arrow_type)
        upper = _array([None if pair is None else pair[1] for pair in pairs], leaf.arrow_type, arrow_type)
        return lower, upper, np.array([pair is not None for pair in pairs], np.bool_)


def _statistics_bounds(chunk: pq.ColumnChunkMetaData, leaf: LeafColumn, *, has_bounds: bool) -> tuple[Any, Any] | None:
    """Bounds of one column chunk, with null as the smallest value; None if they are unknown."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    if statistics.null_count == chunk.num_values:
        return None, None
    if not has_bounds or not statistics.has_min_max:
        return None
    try:
        if pat.is_temporal(leaf.arrow_type):
            # As stored numbers, because Python's dates and times have a smaller range.
            lower, upper = statistics.min_raw, statistics.max_raw
        else:
            lower, upper = statistics.min, statistics.max
    except _UNDECODABLE:
        # A string that its writer truncated within a character.
        return None
    return (None if statistics.null_count else lower), upper


def _array(values: list[Any], stored_type: pa.DataType, arrow_type: pa.DataType) -> pa.Array:
    if isinstance(stored_type, pa.BaseExtensionType):
        stored_type = stored_type.storage_type
    if pat.is_temporal(stored_type):
        integers = pa.array(values, pa.int32() if stored_type.bit_width == 32 else pa.int64())
        return without_finer_digits(integers.cast(stored_type), arrow_type).cast(arrow_type)
    if pat.is_dictionary(stored_type):
        stored_type = stored_type.value_type
    return pa.array(values, stored_type).cast(arrow_type)
