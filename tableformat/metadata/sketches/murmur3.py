"""MurmurHash3 (x64, 128 bits), the first 64 bits of it, of many byte strings at once.

Source: Austin Appleby's MurmurHash3, public domain; Apache DataSketches hashes with it, little endian.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_C1: Final = np.uint64(0x87C37B91114253D5)
_C2: Final = np.uint64(0x4CF5AD432745937F)
_BLOCK_BYTES: Final = 16

Words = npt.NDArray[np.uint64]


def murmur3(rows: npt.NDArray[np.uint8], seed: int) -> Words:
    """One hash for each row of a matrix of bytes; rows of one length, which may be 0."""
    count, length = rows.shape
    padded = np.zeros((count, -(-length // _BLOCK_BYTES) * _BLOCK_BYTES), np.uint8)
    padded[:, :length] = rows
    words = padded.view("<u8").astype(np.uint64)
    first = np.full(count, seed, np.uint64)
    second = first.copy()
    whole = length // _BLOCK_BYTES
    for block in range(whole):
        low, high = words[:, 2 * block], words[:, 2 * block + 1]
        first = (_rotated(first ^ _low(low), 27) + second) * np.uint64(5) + np.uint64(0x52DCE729)
        second = (_rotated(second ^ _high(high), 31) + first) * np.uint64(5) + np.uint64(0x38495AB5)
    if length % _BLOCK_BYTES:
        # A word of zeros changes nothing, so that short tails need no branch.
        first, second = first ^ _low(words[:, 2 * whole]), second ^ _high(words[:, 2 * whole + 1])
    first, second = first ^ np.uint64(length), second ^ np.uint64(length)
    first = first + second
    second = second + first
    return _finished(first) + _finished(second)


def _low(word: Words) -> Words:
    return _rotated(word * _C1, 31) * _C2


def _high(word: Words) -> Words:
    return _rotated(word * _C2, 33) * _C1


def _rotated(word: Words, bits: int) -> Words:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


def _finished(word: Words) -> Words:
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))
