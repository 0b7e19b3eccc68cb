"""Hashes of whole keys: one number for all columns of a row. Equal keys have equal hashes.

Each column provides a word: a number itself, a hash of the bytes for longer values, or the word of the dictionary entry
for a dictionary-encoded column. A multiplication and a shift mix the words of a row. Values are sort words, so values
that are equal by DA-4 to DA-6 have equal words. Rows with equal hashes must still be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.types import LongType, PrimitiveType

from tableformat.keys.families import KeyFamily, family_of
from tableformat.keys.long_words import HEAD_LEVELS, same_values, tail_hashes
from tableformat.keys.sort_words import ByteWords, DictionaryWords, SortWords, level_count, sort_words_of

Hashes = NDArray[np.uint64]

_WORD_BYTES: Final = 8
_NULL_WORD: Final = np.uint64(0x6A09E667F3BCC909)
_SEED: Final = np.uint64(0xBB67AE8584CAA73B)
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier that spreads numbers over the high bits: Knuth's multiplicative hash, the golden ratio of 64 bits."""
_HALF: Final = np.uint64(32)
_SAMPLE_ROWS: Final = 4_096
_ROWS_PER_VALUE: Final = 4
"""Rows per distinct value, among the first rows, from which a dictionary of the strings saves more than it costs."""
_TEXT: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


@dataclass(frozen=True, slots=True, eq=False)
class KeyWords:
    """The key columns of some rows, as words to hash and to compare."""

    columns: tuple[SortWords, ...]
    level_counts: tuple[int, ...]
    """For each column, the number of words that distinguish the keys from every other value."""
    entries: tuple[Hashes | None, ...]
    """For a dictionary-encoded column, the word of each entry."""

    @classmethod
    def of(
        cls, columns: Sequence[pa.ChunkedArray], types: Sequence[PrimitiveType], keys: KeyWords | None = None
    ) -> KeyWords:
        """`columns` are results of `comparable` in the types. `keys` are the keys that rows are compared with; None for
        the keys themselves."""
        word_types = [LongType() if family_of(kind) is KeyFamily.FLOAT else kind for kind in types]
        words = tuple(
            sort_words_of(_coded(column), word_type, len(column))
            for column, word_type in zip(columns, word_types, strict=True)
        )
        counts = tuple(map(level_count, words, word_types)) if keys is None else keys.level_counts
        return cls(words, counts, tuple(map(_entry_words, words, counts)))

    def hashes(self, rows: slice) -> Hashes:
        """A hash of each of the rows. Keys without columns are not supported."""
        hashes = np.full(rows.stop - rows.start, _SEED)
        for words, count, entries in zip(self.columns, self.level_counts, self.entries, strict=True):
            _mix(hashes, _column_words(words, count, entries, rows))
        hashes *= _MULTIPLIER
        return hashes

    def equal_rows(self, rows: NDArray[np.int64], keys: KeyWords, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """DA-4: for each of the rows, whether its values equal the values of its candidate. Null equals null."""
        equal = np.arange(len(rows))
        for mine, other, count in zip(self.columns, keys.columns, keys.level_counts, strict=True):
            if mine.valid is not None or other.valid is not None:
                equal = equal[_present(mine, rows[equal]) == _present(other, candidates[equal])]
            for level in range(min(count, HEAD_LEVELS)):
                words = mine.level(level, count, rows[equal])
                equal = equal[words == other.level(level, count, candidates[equal])]
            if count > HEAD_LEVELS:
                equal = equal[same_values(mine, rows[equal], other, candidates[equal])]
        mask = np.zeros(len(rows), np.bool_)
        mask[equal] = True
        return mask


def _coded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Repeated strings as a dictionary, so that the words of a value are computed once. Most keys begin with one of a
    few names."""
    if not any(is_kind(column.type) for is_kind in _TEXT) or len(column) < _SAMPLE_ROWS:
        return column
    is_repeated = pc.count_distinct(column.slice(0, _SAMPLE_ROWS)).as_py() * _ROWS_PER_VALUE <= _SAMPLE_ROWS
    return column.dictionary_encode() if is_repeated else column


def _present(words: SortWords, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.ones(len(rows), np.bool_) if words.valid is None else words.valid[rows]


def _mix(hashes: Hashes, words: Hashes) -> None:
    """Mix the words into the hashes, in place."""
    hashes ^= words
    hashes *= _MULTIPLIER
    hashes ^= hashes >> _HALF


def _entry_words(words: SortWords, count: int) -> Hashes | None:
    if not isinstance(words, DictionaryWords):
        return None
    inner = words.dictionary
    return _column_words(inner, count, _entry_words(inner, count), slice(0, _length(inner)))


def _length(words: SortWords) -> int:
    return len(words.starts) if isinstance(words, ByteWords) else len(words.level(0, 1, slice(0, None)))


def _column_words(words: SortWords, count: int, entries: Hashes | None, rows: slice) -> Hashes:
    """One word for each of the rows. The result must not be modified."""
    if isinstance(words, DictionaryWords):
        assert entries is not None, "the words of entries are made with the column"
        found = entries.take(words.indices[rows])
    elif isinstance(words, ByteWords):
        found = _byte_words(words, count, rows)
    else:
        found = words.level(0, count, rows).view(np.uint64)
        for level in range(1, count):
            # A copy, because the words may share memory with the column.
            found = found.copy()
            _mix(found, words.level(level, count, rows).view(np.uint64))
    return found if words.valid is None else np.where(words.valid[rows], found, _NULL_WORD)


def _byte_words(words: ByteWords, count: int, rows: slice) -> Hashes:
    """A hash of each value: its length, mixed with its groups of eight bytes, up to the length of the longest key."""
    lengths = words.ends[rows] - words.starts[rows]
    found = lengths.view(np.uint64) ^ _SEED
    level_end = count - 1 if words.is_variable else count
    for level in range(min(level_end, HEAD_LEVELS)):
        is_longer = lengths > level * _WORD_BYTES
        if is_longer.all():
            _mix(found, words.level(level, count, rows).view(np.uint64))
            continue
        longer = np.flatnonzero(is_longer)
        if not len(longer):
            break
        mixed = found[longer]
        _mix(mixed, words.level(level, count, longer + rows.start).view(np.uint64))
        found[longer] = mixed
    longer = np.flatnonzero(lengths > HEAD_LEVELS * _WORD_BYTES) if level_end > HEAD_LEVELS else np.zeros(0, np.int64)
    if len(longer):
        mixed = found[longer]
        _mix(mixed, tail_hashes(words, level_end, longer + rows.start))
        found[longer] = mixed
    return found
