"""Decompresses metadata files up to a limit: a file of 3 MB may hold 3 GB of one letter."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Callable
from typing import Any, Final

from tableformat.errors import CorruptFileError
from tableformat.properties import INFLATED_BYTES_MAX, INFLATED_BYTES_MAX_DEFAULT

_GZIP_MAGIC: Final = b"\x1f\x8b"
_STEP_BYTES: Final = 4 * 1024 * 1024
_INPUT_BYTES: Final = 64 * 1024


class Inflater:
    """FM-32: decompresses the blocks of one file. Raises CorruptFileError if they hold more than the limit together.

    Invalid bytes raise the errors of the decompressors.
    """

    def __init__(self, location: str, bytes_max: int = INFLATED_BYTES_MAX_DEFAULT) -> None:
        self._location = location
        self._bytes_max = bytes_max
        self._left = bytes_max

    def gunzipped(self, data: bytes) -> bytes:
        """The content of a gzip file with one or several members. Bytes that are not gzip are returned unchanged."""
        if not data.startswith(_GZIP_MAGIC):
            return data
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return self._within(file.read)

    def stored(self, block: bytes) -> bytes:
        """A block that is not compressed."""
        return block

    def deflate(self, block: bytes) -> bytes:
        """zlib's raw format."""
        return self._within(_Deflated(block).read)

    def snappy(self, block: bytes) -> bytes:
        """Snappy's raw format, followed by a checksum of the uncompressed bytes."""
        size = shift = 0
        for byte in block[:10]:
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        self._take(size)
        import pyarrow as pa

        records: bytes = pa.Codec("snappy").decompress(block[:-4], decompressed_size=size, asbytes=True)
        if zlib.crc32(records) != int.from_bytes(block[-4:], "big"):
            raise ValueError("the checksum of a compressed block does not match")
        return records

    def zstandard(self, block: bytes) -> bytes:
        return self._stream(block, "zstd")

    def lz4(self, block: bytes) -> bytes:
        return self._stream(block, "lz4")

    def bzip2(self, block: bytes) -> bytes:
        with bz2.BZ2File(io.BytesIO(block)) as file:
            return self._within(file.read)

    def _stream(self, block: bytes, codec: str) -> bytes:
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(block), codec) as stream:
            return self._within(stream.read)

    def _within(self, read: Callable[[int], Any]) -> bytes:
        """Read everything in pieces."""
        first: bytes = read(_STEP_BYTES)
        self._take(len(first))
        found: bytearray | None = None
        while piece := read(_STEP_BYTES):
            self._take(len(piece))
            found = bytearray(first) if found is None else found
            found += piece
        return first if found is None else bytes(found)

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise CorruptFileError(
                self._location,
                f"its decompressed content is larger than {self._bytes_max:,} bytes, which is unusual for table "
                "metadata. If the file is correct, open the catalog with a larger value of the option "
                f"{INFLATED_BYTES_MAX!r}.",
            )


class _Deflated:
    """A block of raw deflate, read in pieces."""

    def __init__(self, block: bytes) -> None:
        self._block = memoryview(block)
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self._at = 0

    def read(self, size: int) -> bytes:
        """At most this many bytes; nothing at the end. Raises EOFError if the block ends too early."""
        inflater = self._inflater
        while not inflater.eof:
            given: bytes | memoryview = inflater.unconsumed_tail
            if not given:
                given = self._block[self._at : self._at + _INPUT_BYTES]
                self._at += len(given)
            piece = inflater.decompress(given, size)
            if piece:
                return piece
            if not given and not inflater.eof:
                raise EOFError("a compressed block ends too early")
        return b""
