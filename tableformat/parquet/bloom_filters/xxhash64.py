"""XXH64, the hash function of Bloom filters in Parquet, with seed 0.

A filter is queried for the literals of a predicate, at most a few dozen. A dependency in C would pay off for thousands.
Source: "xxHash fast digest algorithm", doc/xxhash_spec.md of xxHash.
"""

from __future__ import annotations

import struct
from typing import Final

_ALL: Final = 0xFFFFFFFFFFFFFFFF
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_STRIPE_BYTES: Final = 32


def xxhash64(value: bytes) -> int:
    """The hash, 0 to 2**64 - 1.

    >>> hex(xxhash64(b"abc"))
    '0x44bc2cf5ad770999'
    """
    striped = len(value) // _STRIPE_BYTES * _STRIPE_BYTES
    hashed = (_of_stripes(value[:striped]) if striped else _P5) + len(value)
    rest = memoryview(value)[striped:]
    words = len(rest) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", rest[:words]):
        hashed = (_rotated(hashed ^ _round(0, word), 27) * _P1 + _P4) & _ALL
    rest = rest[words:]
    if len(rest) >= 4:
        (half,) = struct.unpack_from("<I", rest)
        hashed = (_rotated(hashed ^ (half * _P1) & _ALL, 23) * _P2 + _P3) & _ALL
        rest = rest[4:]
    for byte in rest:
        hashed = (_rotated(hashed ^ (byte * _P5) & _ALL, 11) * _P1) & _ALL
    hashed = ((hashed ^ hashed >> 33) * _P2) & _ALL
    hashed = ((hashed ^ hashed >> 29) * _P3) & _ALL
    return hashed ^ hashed >> 32


def _of_stripes(value: bytes) -> int:
    lanes = [(_P1 + _P2) & _ALL, _P2, 0, -_P1 & _ALL]
    for stripe in struct.iter_unpack("<4Q", value):
        lanes = [_round(lane, word) for lane, word in zip(lanes, stripe, strict=True)]
    turned = zip(lanes, (1, 7, 12, 18), strict=True)
    hashed = sum(_rotated(lane, count) for lane, count in turned) & _ALL
    for lane in lanes:
        hashed = ((hashed ^ _round(0, lane)) * _P1 + _P4) & _ALL
    return hashed


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _P2) & _ALL, 31) * _P1) & _ALL


def _rotated(word: int, count: int) -> int:
    word &= _ALL
    return (word << count | word >> (64 - count)) & _ALL
