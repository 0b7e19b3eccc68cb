"""Computes the block of a filter in which a value is looked up, and the bits that the value sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from tableformat.parquet.bloom_filters.xxhash64 import xxhash64

BLOCK_BYTES: Final = 32
WORDS: Final = 8
Blocks = npt.NDArray[np.uint32]
"""n blocks of one or several filters, shape (n, WORDS)."""
_SALT: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """One value, for filters of any size."""

    high: int
    """The upper half of the hash, which chooses the block."""
    mask: npt.NDArray[np.uint32]
    """The bit in each word."""

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(stored: bytes) -> Probe:
        """The probe of a value in its stored bytes."""
        hashed = xxhash64(stored)
        low = np.uint32(hashed & 0xFFFFFFFF)
        return Probe(hashed >> 32, np.uint32(1) << ((low * _SALT) >> np.uint32(27)))

    def block_of(self, block_counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The number of the block in filters with these numbers of blocks, fewer than 2**31 each."""
        return (self.high * block_counts) >> 32

    def is_in(self, blocks: Blocks, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """For each of the blocks with these numbers whether the value may be in it. Each word excludes most remaining
        blocks, so few blocks are read completely."""
        left = np.arange(len(numbers))
        for word, bit in enumerate(self.mask):
            left = left[(blocks[numbers[left], word] & bit) != 0]
        found = np.zeros(len(numbers), np.bool_)
        found[left] = True
        return found
