"""Sort words of long values: a bounded number of levels for values of any length.

    values of cuts      levels
    up to 136 bytes     one for each 8 bytes, then the length                                (`sort_words`)
    longer              16 for the first 128 bytes, the length up to 129, then the rank among the long values of cuts

A level costs about ten calls of numpy, so a common prefix of 100,000 bytes would take 12,500 levels. Most values differ
in the first levels. The rank compares whole values, for the few that do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tableformat.keys.byte_search import SortedStrings
from tableformat.keys.sort_words import ByteWords, Codes, DictionaryWords, Flags, RowChoice, SortWords

HEAD_LEVELS: Final = 16
WORD_BYTES: Final = 8
_HEAD_BYTES: Final = WORD_BYTES * HEAD_LEVELS
LONG_LEVELS: Final = HEAD_LEVELS + 2
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_COMPARED_BYTES: Final = 16 * 1024 * 1024
"""The number of bytes that are copied and compared at once."""


@dataclass(frozen=True, slots=True)
class LongWords:
    """A column that is compared with cuts, some of which have long values."""

    words: ByteWords
    long_values: SortedStrings
    """The distinct long values of all cuts."""

    @property
    def valid(self) -> Flags | None:
        """False for null values; None if there are no nulls."""
        return self.words.valid

    def level(self, index: int, level_count: int, rows: RowChoice) -> Codes:  # noqa: ARG002 (always `LONG_LEVELS`)
        """A word of eight bytes, the length, or the rank of the chosen rows; 0 for null rows."""
        if index < HEAD_LEVELS:
            return self.words.level(index, LONG_LEVELS, rows)
        lengths: Codes = self.words.ends[rows] - self.words.starts[rows]
        if self.valid is not None:
            lengths = np.where(self.valid[rows], lengths, 0)
        if index == HEAD_LEVELS:
            return cast("Codes", np.minimum(lengths, _HEAD_BYTES + 1))
        return self._ranks(rows, lengths)

    def _ranks(self, rows: RowChoice, lengths: Codes) -> Codes:
        """Odd numbers for values of cuts, even numbers for values between two of them, 0 for values that are not
        long."""
        numbers = np.arange(len(self.words.starts))[rows]
        ranks = np.zeros(len(numbers), np.int64)
        is_long = np.flatnonzero(lengths > _HEAD_BYTES)
        for piece in _pieces(is_long, lengths[is_long]):
            values = _values(self.words, numbers[piece])
            below = self.long_values.search(values, right=False)
            ranks[piece] = below + self.long_values.search(values, right=True)
        return ranks


def long_values_of(columns: Sequence[SortWords]) -> SortedStrings:
    """The distinct values of the columns that are longer than the first levels."""
    found = [_long_values(words) for words in columns]
    values = pa.chunked_array(found, pa.large_binary()).unique()
    return SortedStrings.of(values.take(pc.sort_indices(values)))


def with_long_values(words: SortWords, long_values: SortedStrings) -> SortWords:
    """The same column in `LONG_LEVELS` levels."""
    if isinstance(words, DictionaryWords):
        return replace(words, dictionary=with_long_values(words.dictionary, long_values), levels_of_entries={})
    return LongWords(words, long_values) if isinstance(words, ByteWords) else words


def tail_hashes(words: ByteWords, level_end: int, rows: Codes) -> npt.NDArray[np.uint64]:
    """For each of the rows, which are not null, a hash of the words after the first 128 bytes, up to that level."""
    counts = np.clip(-(-(words.ends[rows] - words.starts[rows]) // WORD_BYTES), HEAD_LEVELS, level_end) - HEAD_LEVELS
    hashes = np.zeros(len(rows), np.uint64)
    for piece in _pieces(np.flatnonzero(counts), counts[counts > 0] * WORD_BYTES):
        ends = np.cumsum(counts[piece])
        place = np.arange(ends[-1]) - np.repeat(ends - counts[piece], counts[piece])
        found = words.words_at(np.repeat(rows[piece], counts[piece]), HEAD_LEVELS + place)
        found ^= found >> np.uint64(32)
        powers = np.cumprod(np.full(int(counts[piece].max()), _ODD))
        hashes[piece] = np.add.reduceat(found * powers[place], ends - counts[piece])
    return hashes


def same_values(mine: SortWords, rows: Codes, other: SortWords, candidates: Codes) -> Flags:
    """For each of the rows whether its value equals that of its candidate. Both are null, or neither is."""
    same = np.ones(len(rows), np.bool_)
    for piece in _pieces(np.arange(len(rows)), _lengths(mine, rows) + 1):
        equal = pc.equal(_values(mine, rows[piece]), _values(other, candidates[piece]))
        same[piece] = np.asarray(equal.fill_null(True))
    return same


def _lengths(words: SortWords, rows: Codes) -> Codes:
    if isinstance(words, DictionaryWords):
        return _lengths(words.dictionary, words.indices[rows])
    return words.ends[rows] - words.starts[rows] if isinstance(words, ByteWords) else np.zeros(len(rows), np.int64)


def _long_values(words: SortWords) -> pa.LargeBinaryArray:
    if isinstance(words, DictionaryWords):
        return _long_values(words.dictionary)
    if not isinstance(words, ByteWords):
        return pa.array([], pa.large_binary())
    is_long = words.ends - words.starts > _HEAD_BYTES
    if words.valid is not None:
        is_long &= words.valid
    return _values(words, np.flatnonzero(is_long))


def _values(words: SortWords, rows: Codes) -> pa.LargeBinaryArray:
    if isinstance(words, DictionaryWords):
        values = _values(words.dictionary, words.indices[rows])
        return values if words.valid is None else pc.if_else(pa.array(words.valid[rows]), values, None)
    if not isinstance(words, ByteWords):
        return pa.nulls(len(rows), pa.large_binary())
    assert words.array is not None, "whole columns are compared, not the remainders of their values"
    return words.array.take(pa.array(rows)).cast(pa.large_binary())


def _pieces(rows: Codes, lengths: Codes) -> Iterator[Codes]:
    """The rows in groups that have about as many bytes as are compared at once."""
    if len(rows):
        piece = np.cumsum(lengths) // _COMPARED_BYTES
        yield from np.split(rows, np.flatnonzero(piece[1:] != piece[:-1]) + 1)
