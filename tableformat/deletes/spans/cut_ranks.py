"""Ranks of cuts: small integers in the order of the cuts, so that the span algebra is integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.keys.sort_words import ByteWords, level_count, sort_words_of

_MAX_SORT_LEVELS: Final = 4
"""Maximum number of sort words up to which numpy sorts them in half the time that Arrow needs for the byte strings."""
_WORD_BYTES: Final = 8
_ALL_BITS: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, eq=False)
class CutRanks:
    """Dense ranks of the lower and upper cuts of n spans: equal cuts share a rank, 0 is the smallest."""

    lower: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    rank_count: int
    _all_cuts: CutArray
    _holder: npt.NDArray[np.int64]
    """For each rank, the index of a cut with this rank."""

    def cuts_at(self, ranks: npt.NDArray[np.int64]) -> CutArray:
        """One cut for each of the given ranks."""
        return self._all_cuts.take(self._holder[ranks])


def rank_cuts(lower: CutArray, upper: CutArray) -> CutRanks:
    """RD-1: the ranks of the lower and upper cuts of n spans of one key, in the common order of all cuts."""
    cuts = CutArray.concat([lower, upper])
    order, is_new = _sorted_order(cuts.encoded)
    rank_in_order = np.cumsum(is_new)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = rank_in_order
    rank_count = int(rank_in_order[-1]) + 1 if len(order) else 0
    holder = order[np.searchsorted(rank_in_order, np.arange(rank_count))]
    return CutRanks(ranks[: len(lower)], ranks[len(lower) :], rank_count, cuts, holder)


def _sorted_order(encoded: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The indices in the order of the values, and for each of them whether its value differs from the previous one."""
    by_word = _order_by_one_word(encoded)
    if by_word is not None:
        return by_word
    sort_words = sort_words_of(encoded, BinaryType(), len(encoded))
    count = level_count(sort_words, BinaryType())
    is_new = np.zeros(len(encoded), np.bool_)
    if count > _MAX_SORT_LEVELS:
        order = np.asarray(pc.sort_indices(encoded)).astype(np.int64)
        ordered = encoded.take(pa.array(order))
        is_new[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
        return order, is_new
    levels = [sort_words.level(index, count, slice(None)) for index in range(count)]
    order = np.lexsort(levels[::-1])
    for level in levels:
        ordered_level = level[order]
        is_new[1:] |= ordered_level[1:] != ordered_level[:-1]
    return order, is_new


def _order_by_one_word(
    encoded: pa.LargeBinaryArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
    """The same for strings that differ only in eight bytes after a common prefix, such as the cuts of a column of
    numbers. None for other strings.

    >>> order, is_new = _order_by_one_word(pa.array([b"key 7", b"key 3", b"key 7"], pa.large_binary()))
    >>> order[0], is_new.tolist()
    (np.int64(1), [False, True, False])
    >>> _order_by_one_word(pa.array([b"key", b"key\\0"], pa.large_binary())) is None
    True
    """
    if not len(encoded):
        return None
    words = sort_words_of(encoded, BinaryType(), len(encoded))
    assert isinstance(words, ByteWords), "strings of bytes have words of bytes"
    lengths = words.ends - words.starts
    first = words.level(0, 2, slice(None))
    differing = int(np.bitwise_or.reduce(first ^ first[0])) & _ALL_BITS
    shared = min((64 - differing.bit_length()) // 8, int(lengths.min()))
    if int(lengths.max()) - shared > _WORD_BYTES:
        return None
    word = words.from_byte(shared).level(0, 2, slice(None))
    order = np.argsort(word)
    ordered, ordered_lengths = word[order], lengths[order]
    is_new = np.zeros(len(encoded), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    if (is_new[1:] | (ordered_lengths[1:] == ordered_lengths[:-1])).all():
        return order, is_new
    return None  # Zeros at the end of some tell them apart from others.
