"""Ranks of cuts: small integers in the order of the cuts, so that span algebra is integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType

from tableformat.deletes.spans.cuts import CutArray
from tableformat.keys.sort_words import level_count, sort_words_of

_MAX_SORT_LEVELS: Final = 4
"""Up to this many sort words numpy sorts them in half the time that Arrow needs for the byte strings."""


@dataclass(frozen=True, slots=True, eq=False)
class CutRanks:
    """Dense ranks of the lower and upper cuts of n spans: equal cuts share a rank, 0 is the smallest."""

    lower: npt.NDArray[np.int64]
    upper: npt.NDArray[np.int64]
    rank_count: int
    _all_cuts: CutArray
    _holder: npt.NDArray[np.int64]
    """For each rank the index of a cut that has it."""

    def cuts_at(self, ranks: npt.NDArray[np.int64]) -> CutArray:
        """One cut for each of the given ranks."""
        return self._all_cuts.take(self._holder[ranks])


def rank_cuts(lower: CutArray, upper: CutArray) -> CutRanks:
    """RD-1: the ranks of the lower and upper cuts of n spans, of one key, in the common order of all of them."""
    cuts = CutArray.concat([lower, upper])
    order, is_new = _sorted_order(cuts.encoded)
    rank_in_order = np.cumsum(is_new)
    ranks = np.empty(len(order), np.int64)
    ranks[order] = rank_in_order
    rank_count = int(rank_in_order[-1]) + 1 if len(order) else 0
    holder = order[np.searchsorted(rank_in_order, np.arange(rank_count))]
    return CutRanks(ranks[: len(lower)], ranks[len(lower) :], rank_count, cuts, holder)


def _sorted_order(encoded: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The indices in the order of the values, and whether each value there differs from the one before."""
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
