"""Lookup of many int64 codes among few sorted ones."""

from __future__ import annotations

from typing import Final

import numpy as np

from tableformat.keys.sort_words import Codes

_BUCKETS_PER_CODE: Final = 32
_MIN_BUCKET_BITS: Final = 12
_MAX_BUCKET_BITS: Final = 22
_FEW_CODES: Final = 8


class CodeIndex:
    """Sorted distinct codes, cut into equal buckets: where a bucket holds no code, the bucket alone is the answer.

    numpy's search costs a cache miss and a mispredicted branch a step, the bucket table one load. Skewed codes crowd
    into few buckets; rows that fall there are searched, which is slower and never wrong.
    """

    __slots__ = ("_below", "_codes", "_is_shared", "_shift", "_smallest")

    def __init__(self, codes: Codes) -> None:
        self._codes = codes
        self._below: Codes | None = None
        if len(codes) <= _FEW_CODES:
            return
        smallest, largest = int(codes[0]), int(codes[-1])
        wanted_bits = (len(codes) * _BUCKETS_PER_CODE).bit_length()
        bucket_bits = min(max(wanted_bits, _MIN_BUCKET_BITS), _MAX_BUCKET_BITS)
        shift = max((largest - smallest).bit_length() - bucket_bits, 0)
        bucket_count = ((largest - smallest) >> shift) + 1
        bucket_of_code = _distance(codes, smallest) >> np.uint64(shift)
        occupants = np.bincount(bucket_of_code.astype(np.int64), minlength=bucket_count)
        # The last entry is for codes above all of ours.
        self._below = np.concatenate([[0], np.cumsum(occupants)])
        self._is_shared = np.append(occupants > 0, False)
        self._shift, self._smallest = np.uint64(shift), smallest

    def find(self, codes: Codes) -> tuple[Codes, Codes]:
        """For each code the number of ours below it, and the positions (in the input) of those that equal one of
        ours.
        """
        ours = self._codes
        if len(ours) == 0:
            return np.zeros(len(codes), np.int64), np.zeros(0, np.int64)
        if len(ours) == 1:
            return (codes > ours[0]).astype(np.int64), np.flatnonzero(codes == ours[0])
        if self._below is None:
            below = np.searchsorted(ours, codes).astype(np.int64, copy=False)
            return below, np.flatnonzero(ours[np.minimum(below, len(ours) - 1)] == codes)
        bucket = np.minimum(_distance(codes, self._smallest) >> self._shift, np.uint64(len(self._is_shared) - 1))
        bucket = bucket.view(np.int64)
        below = self._below[bucket]
        # The distance of a code below all of ours wraps to a huge one.
        below[codes < self._smallest] = 0
        unsure = np.flatnonzero(self._is_shared[bucket])
        searched = np.searchsorted(ours, codes[unsure])
        below[unsure] = searched
        return below, unsure[ours[np.minimum(searched, len(ours) - 1)] == codes[unsure]]


def _distance(codes: Codes, smallest: int) -> np.typing.NDArray[np.uint64]:
    """codes - smallest as unsigned numbers: differences of int64 do not fit int64."""
    return np.ascontiguousarray(codes).view(np.uint64) - np.uint64(smallest % (1 << 64))
