"""Reads the filter of a column chunk, or only the blocks in which values are looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tableformat.errors import CorruptFileError
from tableformat.parquet.bloom_filters.probe import BLOCK_BYTES, WORDS, Blocks, Probe
from tableformat.parquet.parquet_file import unreadable_as_corrupt

HELD_BYTES_MAX: Final = 128 * 1024
"""Larger filters are read block by block and not cached."""
_HEADER_BYTES_MAX: Final = 32
_SIZE_FIELD: Final = 0x15
_KNOWN_ALGORITHM: Final = bytes.fromhex("1c1c00001c1c00001c1c000000")
"""Thrift's compact form of: split blocks, XXH64, not compressed, end of the header. A filter with another header is not
used."""


class StoredFilter:
    """A filter in an open file."""

    def __init__(self, source: pa.NativeFile, location: str, chunk: pq.ColumnChunkMetaData) -> None:
        self._source = source
        self._location = location
        self._offset: int = chunk.bloom_filter_offset
        known = chunk.bloom_filter_length
        is_whole = known is not None and known <= HELD_BYTES_MAX + _HEADER_BYTES_MAX
        self._head = self._read(known if is_whole else _HEADER_BYTES_MAX, self._offset)
        self._header_bytes, self.size_bytes = _header(self._head)

    @property
    def is_understood(self) -> bool:
        return self.size_bytes > 0

    def whole(self) -> Blocks | None:
        """All blocks; None for a filter that is too large to cache."""
        if self.size_bytes > HELD_BYTES_MAX:
            return None
        end = self._header_bytes + self.size_bytes
        data = self._head[:end] if len(self._head) >= end else self._read(end, self._offset)
        return self._blocks(data[self._header_bytes :], self.size_bytes)

    def may_hold(self, probes: Sequence[Probe]) -> bool:
        """Whether one of the values may be in the filter. Reads one block for each value."""
        counts = np.array([self.size_bytes // BLOCK_BYTES])
        for probe in probes:
            start = self._header_bytes + int(probe.block_of(counts)[0]) * BLOCK_BYTES
            block = self._blocks(self._read(BLOCK_BYTES, self._offset + start), BLOCK_BYTES)
            if probe.is_in(block, np.arange(len(block))).any():
                return True
        return False

    def _read(self, size_bytes: int, offset: int) -> bytes:
        with unreadable_as_corrupt(self._location):
            data: bytes = self._source.read_at(size_bytes, offset)
        return data

    def _blocks(self, data: bytes, size_bytes: int) -> Blocks:
        if len(data) < size_bytes:
            raise CorruptFileError(self._location, "one of its Bloom filters extends beyond the end of the file.")
        return np.frombuffer(data, "<u4").reshape(-1, WORDS)


def _header(data: bytes) -> tuple[int, int]:
    """The length of the header, and the size of the filter, 0 for one that cannot be used."""
    if data[:1] != bytes([_SIZE_FIELD]):
        return 0, 0
    zigzag = shift = 0
    for length, byte in enumerate(data[1:6], start=2):
        zigzag |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            end = length + len(_KNOWN_ALGORITHM)
            size = zigzag >> 1
            is_known = not zigzag & 1 and size % BLOCK_BYTES == 0 and data[length:end] == _KNOWN_ALGORITHM
            return (end, size) if is_known else (0, 0)
    return 0, 0
