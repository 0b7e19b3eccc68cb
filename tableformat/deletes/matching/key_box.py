"""Distinct keys of numbers in a narrow range: each key has an index in an array, computed from all its columns.

    columns     id: 100 to 104     part: 0 to 2, and null        a row (103, 1)
    lengths     5                  4                             (103 - 100) * 4 + (1 - 0 + 1) = 14
    key_at      -1  -1  0  -1 ...  2  ... -1                     the key at index 14, or -1

Nothing is hashed, sorted or compared: a key is found by one access to its index. Rows are mostly sorted like the keys,
so these accesses go through the array in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import (
    DateType,
    IntegerType,
    LongType,
    PrimitiveType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

from tableformat.deletes.matching.comparable_values import comparable, decoded
from tableformat.deletes.matching.key_chunks import key_chunks
from tableformat.keys.arrow_columns import single_array

_NUMBERS: Final = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)
"""Types whose values are integers of 32 or 64 bits."""
_PLACES_PER_ROW: Final = 8
_PLACES_MIN: Final = 1 << 16
"""Maximum number of entries of a box: the first for each row that its keys come from, the second if that is more."""
_AT_ONCE: Final = 1 << 16
"""Number of rows whose indexes stay in the processor's cache."""
_ROWS_MAX: Final = np.iinfo(np.int32).max

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Side:
    """The values of one key column: all integers from `lowest` to `highest`, preceded by null if some key has it."""

    lowest: int
    highest: int
    has_null: bool

    @classmethod
    def of(cls, column: pa.Array) -> _Side:
        extremes = pc.min_max(_bits(column)).as_py()
        has_null = column.null_count > 0
        if extremes["min"] is None:
            return cls(0, -1, has_null)
        return cls(extremes["min"], extremes["max"], has_null)

    @property
    def length(self) -> int:
        return self.highest - self.lowest + 1 + self.has_null

    def steps(self, column: pa.Array) -> tuple[Rows, NDArray[np.bool_]]:
        """DA-4: for each row, the offset of its value on the side, and whether the value is on the side at all. Null is
        a value."""
        bits = _bits(column)
        values = (bits.fill_null(0) if bits.null_count else bits).to_numpy().astype(np.int64, copy=False)
        steps = values - np.int64(self.lowest) + self.has_null  # Beyond 64 bits where it is not on the side.
        is_on = (values >= self.lowest) & (values <= self.highest)
        if bits.null_count:
            is_null = bits.is_null().to_numpy(zero_copy_only=False)
            steps[is_null] = 0
            is_on[is_null] = self.has_null
        return steps, is_on


@dataclass(frozen=True, slots=True, eq=False)
class KeyBox:
    """Distinct keys. Immutable; thread-safe."""

    types: tuple[PrimitiveType, ...]
    sides: tuple[_Side, ...]
    key_at: NDArray[np.int32]
    """For each index, the number of its key, or -1. The last entry stands for all values outside of the box."""
    key_count: int

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], types: Sequence[PrimitiveType]) -> tuple[KeyBox, Rows, Rows] | None:
        """Like `KeyTable.of`. None if a column does not have integers, or if the keys are too far apart."""
        row_count = len(columns[0])
        if not row_count or row_count > _ROWS_MAX or not all(isinstance(kind, _NUMBERS) for kind in types):
            return None
        arrays = [single_array(column) for column in columns]
        place_count = 1
        sides = []
        for array in arrays:
            sides.append(_Side.of(array))
            place_count *= sides[-1].length
            if place_count > max(_PLACES_PER_ROW * row_count, _PLACES_MIN):
                return None
        places = _places(sides, arrays)
        key_at = np.full(place_count + 1, -1, np.int32)
        rows = np.arange(row_count, dtype=np.int32)
        key_at[places[::-1]] = rows[
            ::-1
        ]  # Of rows with one place the last that is assigned, which is the first, stays.
        is_example = key_at[places] == rows
        examples = np.flatnonzero(is_example)
        key_at[places[examples]] = np.arange(len(examples), dtype=np.int32)
        return cls(tuple(types), tuple(sides), key_at, len(examples)), examples, key_at[places].astype(np.int64)

    def __len__(self) -> int:
        return self.key_count

    @property
    def size_bytes(self) -> int:
        """Memory that the box holds."""
        return int(self.key_at.nbytes)

    def find(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Like `KeyTable.find`."""
        return self._find(
            [decoded(comparable(column, kind)) for column, kind in zip(chunk, self.types, strict=True)]
            for chunk in key_chunks(columns)
        )

    def find_comparable(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Like `KeyTable.find_comparable`."""
        return self._find([decoded(column) for column in chunk] for chunk in key_chunks(columns))

    def _find(self, chunks: Iterable[Sequence[pa.ChunkedArray]]) -> tuple[Rows, Rows]:
        rows, keys = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        begin = 0
        for chunk in chunks:
            arrays = [single_array(column) for column in chunk]
            row_count = len(arrays[0])
            for start in range(0, row_count, _AT_ONCE):
                found_keys = self.key_at[_places(self.sides, [array.slice(start, _AT_ONCE) for array in arrays])]
                found = np.flatnonzero(found_keys >= 0)
                rows.append(found + (begin + start))
                keys.append(found_keys[found].astype(np.int64))
            begin += row_count
        return np.concatenate(rows), np.concatenate(keys)


def _bits(column: pa.Array) -> pa.Array:
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def _places(sides: Sequence[_Side], columns: Sequence[pa.Array]) -> Rows:
    """The index of each row in `key_at`; the last index if one of its values is not on its side."""
    places = np.zeros(len(columns[0]), np.int64)
    is_inside = np.ones(len(columns[0]), np.bool_)
    place_count = 1
    for side, column in zip(sides, columns, strict=True):
        steps, is_on = side.steps(column)
        places *= side.length
        places += steps
        is_inside &= is_on
        place_count *= side.length
    places[~is_inside] = place_count
    return places
