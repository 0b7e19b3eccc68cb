"""A compressed file whose repeated parts are deflated once and copied into each later file.

Deflate data is a sequence of blocks. The blocks of a text that ends with a full flush do not refer to earlier data and
end with a whole byte, so they may be placed anywhere in a stream:

    header | blocks of new text | blocks of the older snapshots | blocks of new text | ... | checksum, size

The result is one gzip member (RFC 1952), which gzip, Java, DuckDB and PyIceberg can read (tested). Several members
would be simpler, but some readers stop after the first one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""Deflate, without name, time or operating system: the same text gives the same file."""
_RAW: Final = -zlib.MAX_WBITS
_ONCE: Final = 6
_EACH_TIME: Final = 1


@dataclass(frozen=True, slots=True)
class DeflatedText:
    """A text and its blocks."""

    text: bytes = b""
    blocks: bytes = b""
    before: int = 0
    """The checksum of everything before it in its file."""
    crc32: int = 0
    """The checksum of the file including it."""

    def continued(self, text: bytes, before: int) -> DeflatedText:
        """The blocks of `text`. If it starts with the known text, only the rest is deflated."""
        if text is self.text and before == self.before:
            return self
        if not text.startswith(self.text):
            return DeflatedText().continued(text, before)
        added = text[len(self.text) :]
        crc32 = zlib.crc32(added, self.crc32) if before == self.before else zlib.crc32(text, before)
        return DeflatedText(text, self.blocks + _blocks(added, _ONCE) if added else self.blocks, before, crc32)


class GzipFile:
    """Concatenates the parts of a file."""

    def __init__(self) -> None:
        self._parts = [_HEADER]
        self._waiting: list[bytes] = []
        self._size = 0
        self._crc32 = 0

    def add(self, *texts: bytes) -> None:
        """Add text that is deflated for this file only."""
        self._waiting += texts

    def add_kept(self, text: bytes, known: DeflatedText) -> DeflatedText:
        """Add text that the next file will contain, too. `known` is the value that this call returned for the previous
        file."""
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
