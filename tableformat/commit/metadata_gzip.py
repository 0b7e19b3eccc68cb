"""A compressed file of which a part that files before it had too is deflated once, and stands in each as it is.

Deflate is a row of blocks. Those of a text that ends with a full flush look back to nothing before them and end with a
whole byte, so they may stand anywhere in a stream:

    header | blocks of what is new | blocks of the older snapshots | blocks of what is new | ... | checksum, size

That is one gzip member (RFC 1952), which gzip, Java, DuckDB and PyIceberg were seen to read; several members would be
simpler, and some readers stop after the first.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, no name and no time, of no system: the same text is the same file."""
_RAW: Final = -zlib.MAX_WBITS
_ONCE: Final = 6
_EACH_TIME: Final = 1


@dataclass(frozen=True, slots=True)
class DeflatedText:
    """A text and its blocks."""

    text: bytes = b""
    blocks: bytes = b""
    before: int = 0
    """The checksum of what stands before it in its file."""
    crc32: int = 0
    """That of the file with it."""

    def continued(self, text: bytes, before: int) -> DeflatedText:
        """That of `text`, of which only what goes on behind this one is deflated."""
        if text is self.text and before == self.before:
            return self
        if not text.startswith(self.text):
            return DeflatedText().continued(text, before)
        added = text[len(self.text) :]
        crc32 = zlib.crc32(added, self.crc32) if before == self.before else zlib.crc32(text, before)
        return DeflatedText(text, self.blocks + _blocks(added, _ONCE) if added else self.blocks, before, crc32)


class GzipFile:
    """Puts the parts of a file together, one after the other."""

    def __init__(self) -> None:
        self._parts = [_HEADER]
        self._waiting: list[bytes] = []
        self._size = 0
        self._crc32 = 0

    def add(self, *texts: bytes) -> None:
        """What is deflated for this file alone."""
        self._waiting += texts

    def add_kept(self, text: bytes, known: DeflatedText) -> DeflatedText:
        """What the next file will have as well, where `known` is what this call returned for the last one."""
        if not text:
            return known
        self._deflate()
        deflated = known.continued(text, self._crc32)
        self._parts.append(deflated.blocks)
        self._crc32 = deflated.crc32
        self._size += len(text)
        return deflated

    def finish(self) -> tuple[bytes, ...]:
        """The file, in parts."""
        self._deflate()
        end = zlib.compressobj(wbits=_RAW).flush()
        return (*self._parts, end, self._crc32.to_bytes(4, "little"), (self._size % 2**32).to_bytes(4, "little"))

    def _deflate(self) -> None:
        text = b"".join(self._waiting)
        self._waiting.clear()
        self._parts.append(_blocks(text, _EACH_TIME))
        self._crc32 = zlib.crc32(text, self._crc32)
        self._size += len(text)


def _blocks(text: bytes, level: int) -> bytes:
    deflate = zlib.compressobj(level, wbits=_RAW)
    return deflate.compress(text) + deflate.flush(zlib.Z_FULL_FLUSH)
