"""A theta sketch: the smallest hashes of the values of a column, from which the number of distinct values is estimated.

The stored form is a compact sketch of Apache DataSketches (serialization version 3, ordered), which its libraries for
Java, C++ and Python read. It is the blob type `apache-datasketches-theta-v1` of Iceberg's Puffin specification.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.types import PrimitiveType

from tableformat.metadata.sketches.murmur3 import murmur3
from tableformat.metadata.sketches.value_bytes import distinct_value_bytes

THETA_V1: Final = "apache-datasketches-theta-v1"
NDV: Final = "ndv"
"""The property of a blob that contains the estimate."""
_SEED: Final = 9001
"""The default of DataSketches. Only sketches with the same seed can be united."""
_MOST_HASHES: Final = 4096
"""The default of DataSketches. The standard error is 1.6 %."""
_EVERYTHING: Final = (1 << 63) - 1

_SERIALIZATION: Final = 3
_COMPACT_FAMILY: Final = 3
_READ_ONLY: Final = 2
_EMPTY: Final = 4
_COMPACT: Final = 8
_ORDERED: Final = 16
_SINGLE: Final = 32
_PREAMBLE: Final = struct.Struct("<BBBBBBH")
"""Preamble in words of 8 bytes, version, family, two unused sizes, flags, and the hash of the seed if there are hashes.
"""
_COUNT: Final = struct.Struct("<If")
"""Number of hashes, and the fraction of values that were sampled before."""


@dataclass(frozen=True, slots=True)
class ThetaSketch:
    """The distinct hashes below `theta`. These are all hashes if `theta` is the largest number of 63 bits."""

    hashes: npt.NDArray[np.uint64]
    """Ascending, at most 4096."""
    theta: int = _EVERYTHING

    @staticmethod
    def empty() -> ThetaSketch:
        return ThetaSketch(np.empty(0, np.uint64))

    @staticmethod
    def of(values: pa.ChunkedArray, column_type: PrimitiveType) -> ThetaSketch:
        """SP-39: the sketch of the values of a column, without nulls. DataSketches ignores empty strings too."""
        groups = distinct_value_bytes(values, column_type)
        hashes = [murmur3(rows, _SEED) >> np.uint64(1) for rows in groups if rows.size]
        found = np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.uint64)
        return _bounded(found[found > 0], _EVERYTHING)

    @staticmethod
    def united(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
        """The sketch of the values of all sketches together."""
        given = list(sketches)
        theta = min((each.theta for each in given), default=_EVERYTHING)
        hashes = np.unique(np.concatenate([np.empty(0, np.uint64), *(each.hashes for each in given)]))
        return _bounded(hashes[hashes < theta] if theta < _EVERYTHING else hashes, theta)

    @property
    def estimate(self) -> int:
        """The approximate number of distinct values; exact up to 4096."""
        return int(len(self.hashes) / (self.theta / _EVERYTHING))

    def to_bytes(self) -> bytes:
        """The sketch in the stored form of DataSketches."""
        flags = _READ_ONLY | _COMPACT | _ORDERED
        count = len(self.hashes)
        is_exact = self.theta == _EVERYTHING
        if count == 0 and is_exact:
            return _PREAMBLE.pack(1, _SERIALIZATION, _COMPACT_FAMILY, 0, 0, flags | _EMPTY, 0)
        hashes = self.hashes.astype("<u8").tobytes()
        if count == 1 and is_exact:
            return self._preamble(1, flags | _SINGLE) + hashes
        counted = self._preamble(2 if is_exact else 3, flags) + _COUNT.pack(count, 1.0)
        return counted + (b"" if is_exact else struct.pack("<Q", self.theta)) + hashes

    @staticmethod
    def _preamble(words: int, flags: int) -> bytes:
        return _PREAMBLE.pack(words, _SERIALIZATION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)


def _bounded(hashes: npt.NDArray[np.uint64], theta: int) -> ThetaSketch:
    """`hashes` are ascending. If they are too many, the first one that does not fit is the new bound."""
    if len(hashes) <= _MOST_HASHES:
        return ThetaSketch(hashes, theta)
    return ThetaSketch(hashes[:_MOST_HASHES].copy(), int(hashes[_MOST_HASHES]))


_SEED_HASH: Final = int(murmur3(np.frombuffer(struct.pack("<Q", _SEED), np.uint8).reshape(1, 8), 0)[0]) & 0xFFFF
