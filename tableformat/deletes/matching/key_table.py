"""Distinct keys, in which the keys of rows are looked up by their hashes.

    hash of a row  0b 0110 1001 ...
                      |    +-- the keys from `first[0b0110]` on: compared, until one is equal or the bits differ
                      +------- flags: whether some key begins with these bits; most rows of most files end here

Nearly all rows without a key cost only their hash and one lookup in the flags, which fit into the processor's cache.
The remaining rows are compared value by value, so two keys with the same hash cost time but do not change the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.types import PrimitiveType

from tableformat.deletes.matching.comparable_values import comparable
from tableformat.deletes.matching.key_chunks import key_chunks
from tableformat.deletes.matching.key_hashes import Hashes, KeyWords

_FLAGS_PER_KEY: Final = 16
_FLAG_BITS_MIN: Final = 12
_FLAG_BITS_MAX: Final = 23
_HASHED_AT_ONCE: Final = 1 << 15
"""Number of rows whose words and hashes stay in the processor's cache."""
_HASH_BITS: Final = 64

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class KeyTable:
    """Distinct keys. Immutable; thread-safe."""

    types: tuple[PrimitiveType, ...]
    words: KeyWords
    """The words of the keys, in their original order: rows are mostly sorted like the keys."""
    hashes: Hashes
    """The hashes of the keys, ascending. Different keys may have the same hash."""
    numbers: Rows
    """For each hash, the number of its key."""
    first: Rows
    """For each value of the leading bits, the index of the first hash that begins with it or with a larger value; at
    the end, the number of keys."""
    is_possible: NDArray[np.bool_]
    """For each value of a longer prefix of bits, whether the hash of some key begins with it."""

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], types: Sequence[PrimitiveType]) -> tuple[KeyTable, Rows, Rows]:
        """The table, ascending example rows (one for each key), and the key of each row.

        `columns` are results of `comparable`, in `types`. DA-4: null equals null.
        """
        words = KeyWords.of(columns, types)
        hashes = words.hashes(slice(0, len(columns[0])))
        numbers, examples, keys = _distinct(words, hashes)
        if len(examples) < len(hashes):
            chosen = pa.array(examples)
            words = KeyWords.of([column.take(chosen) for column in columns], types, words)
        in_order = hashes[examples[numbers]]
        first_bits = max(len(examples).bit_length(), 1)
        counts = np.bincount((in_order >> _shift(first_bits)).view(np.int64), minlength=1 << first_bits)
        flag_bits = min(max((len(examples) * _FLAGS_PER_KEY).bit_length(), _FLAG_BITS_MIN), _FLAG_BITS_MAX)
        is_possible = np.zeros(1 << flag_bits, np.bool_)
        is_possible[(in_order >> _shift(flag_bits)).view(np.int64)] = True
        table = cls(tuple(types), words, in_order, numbers, np.append(0, np.cumsum(counts)), is_possible)
        return table, examples, keys

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def size_bytes(self) -> int:
        """Memory of the table in bytes, without the values of the keys."""
        return int(self.hashes.nbytes + self.numbers.nbytes + self.first.nbytes + self.is_possible.nbytes)

    def find(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Offsets, ascending, of the rows whose values equal a key, and the index of that key.

        `columns` are in the order of the types, each in its own type or in a type that was promoted to it, dictionary
        encoded or not. Raises pyarrow.ArrowInvalid or pyarrow.ArrowNotImplementedError for a column of another type.
        """
        return self._find(
            [comparable(column, kind) for column, kind in zip(chunk, self.types, strict=True)]
            for chunk in key_chunks(columns)
        )

    def find_comparable(self, columns: Sequence[pa.ChunkedArray]) -> tuple[Rows, Rows]:
        """Like `find`, for columns that are `comparable` already, as for `of`."""
        return self._find(key_chunks(columns))

    def _find(self, chunks: Iterable[Sequence[pa.ChunkedArray]]) -> tuple[Rows, Rows]:
        rows, keys = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        begin = 0
        for chunk in chunks if len(self) else ():
            words = KeyWords.of(chunk, self.types, self.words)
            row_count = len(chunk[0])
            found_rows, found_keys = self._look_up(words, *self._possible_rows(words, row_count))
            rows.append(found_rows + begin)
            keys.append(found_keys)
            begin += row_count
        return np.concatenate(rows), np.concatenate(keys)

    def _possible_rows(self, words: KeyWords, row_count: int) -> tuple[Rows, Hashes]:
        """The rows that the flags do not rule out, with their hashes."""
        shift = _shift(len(self.is_possible).bit_length() - 1)
        rows, found = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
        for start in range(0, row_count, _HASHED_AT_ONCE):
            hashes = words.hashes(slice(start, min(start + _HASHED_AT_ONCE, row_count)))
            possible = np.flatnonzero(self.is_possible.take((hashes >> shift).view(np.int64)))
            rows.append(possible + start)
            found.append(hashes[possible])
        return np.concatenate(rows), np.concatenate(found)

    def _look_up(self, words: KeyWords, rows: Rows, hashes: Hashes) -> tuple[Rows, Rows]:
        """The rows whose values equal a key, and these keys. In each round, all remaining rows are compared with their
        next key."""
        leading = (hashes >> _shift(len(self.first).bit_length() - 1)).view(np.int64)
        places, ends = self.first[leading], self.first[leading + 1]
        keys = np.full(len(rows), -1)
        open_rows = np.flatnonzero(places < ends)
        while len(open_rows):
            place = places[open_rows]
            alike = np.flatnonzero(self.hashes[place] == hashes[open_rows])
            candidates = self.numbers[place[alike]]
            is_equal = words.equal_rows(rows[open_rows[alike]], self.words, candidates)
            keys[open_rows[alike[is_equal]]] = candidates[is_equal]
            is_open = place + 1 < ends[open_rows]
            is_open[alike[is_equal]] = False
            places[open_rows] += 1
            open_rows = open_rows[is_open]
        found = keys >= 0
        return rows[found], keys[found]


def _shift(bits: int) -> np.uint64:
    return np.uint64(_HASH_BITS - bits)


def _distinct(words: KeyWords, hashes: Hashes) -> tuple[Rows, Rows, Rows]:
    """The numbers of the distinct keys in the order of their hashes, a row for each key in the order of the rows, and
    for each row the number of its key.

    Rows with the same hash are compared with the first of them. Different ones, which occur once in billions of keys,
    are then compared with the first remaining row, until all rows are assigned.
    """
    pending = np.argsort(hashes)
    example_of = np.empty(len(hashes), np.int64)
    while len(pending):
        ordered = hashes[pending]
        is_first = np.append(True, ordered[1:] != ordered[:-1])
        examples = pending[is_first][np.cumsum(is_first) - 1]
        is_equal = is_first.copy()
        others = np.flatnonzero(~is_first)
        is_equal[others] = words.equal_rows(pending[others], words, examples[others])
        example_of[pending[is_equal]] = examples[is_equal]
        pending = pending[~is_equal]
    is_example = example_of == np.arange(len(hashes))
    examples = np.flatnonzero(is_example)
    number_of = np.cumsum(is_example) - 1
    return np.argsort(hashes[examples]), examples, number_of[example_of]
