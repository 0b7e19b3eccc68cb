"""The bytes of one deletion vector, blob type `deletion-vector-v1`.

    length    4 bytes, big endian: bytes of magic and vector
    magic     D1 D3 39 64
    vector    Roaring bitmap of 64-bit positions in the portable format
    checksum  4 bytes, big endian: CRC-32 of magic and vector

Source: Puffin specification, blob type `deletion-vector-v1`; Roaring format specification, extension for 64-bit.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from typing import Final

import numpy as np
from pyroaring import BitMap64

from tableformat.deletes.positions import MAX_POSITION, PositionSet, expanded
from tableformat.errors import CorruptFileError

MAGIC: Final = bytes.fromhex("D1D33964")

_FRAME_BYTES: Final = 12
_WINDOW_POSITIONS: Final = 1 << 22
"""Maximum number of positions that are expanded at once: a run of two billion takes four bytes in the file."""
_LONG_RUN: Final = 16
"""Runs of at least this length are added one by one, shorter runs all at once as positions. Each way is the faster one
for its lengths."""


def decode_vector(blob: bytes, location: str) -> PositionSet:
    """The positions of the blob.

    Raises CorruptFileError, which names `location`, if a length, the magic, the checksum or a bitmap's key is wrong.
    """
    if len(blob) < _FRAME_BYTES:
        raise CorruptFileError(location, f"a deletion vector of {len(blob)} bytes is shorter than its frame.")
    (length,) = struct.unpack_from(">I", blob)
    if length != len(blob) - 8:
        raise CorruptFileError(location, f"the deletion vector states {length} bytes and has {len(blob) - 8}.")
    if blob[4:8] != MAGIC:
        raise CorruptFileError(location, f"the deletion vector begins with {blob[4:8].hex()} instead of {MAGIC.hex()}.")
    (checksum,) = struct.unpack_from(">I", blob, len(blob) - 4)
    if checksum != zlib.crc32(blob[4:-4]):
        raise CorruptFileError(location, "the checksum of the deletion vector does not match its bytes.")
    return decode_positions(blob[8:-4], location)


def decode_positions(vector: bytes, location: str) -> PositionSet:
    """The positions of a Roaring bitmap in the portable 64-bit format. Raises CorruptFileError naming `location`."""
    try:
        bitmap = BitMap64.deserialize(vector)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(location, "the deletion vector is not a 64-bit Roaring bitmap.") from error
    # The upper 32 bits are the key of a 32-bit bitmap, which the reference implementation reads as a signed number.
    if len(bitmap) and bitmap.max() > MAX_POSITION:
        raise CorruptFileError(location, f"the deletion vector contains position {bitmap.max()}, above {MAX_POSITION}.")
    return _runs_of(bitmap)


def encode_vector(positions: PositionSet) -> bytes:
    """The blob with the positions. It has the same bytes as the reference implementation writes for the same set."""
    bitmap = _bitmap_of(positions)
    # Use run containers where they are the smallest form.
    bitmap.run_optimize()
    framed = MAGIC + bitmap.serialize()
    return struct.pack(">I", len(framed)) + framed + struct.pack(">I", zlib.crc32(framed))


def _runs_of(bitmap: BitMap64) -> PositionSet:
    """Process one window at a time. The next window begins at the next position, so large gaps cost nothing."""
    windows = []
    stop = bitmap.max() + 1 if len(bitmap) else 0
    end = 0
    while end < stop:
        first = bitmap.next_set_bit(end)
        # Do not cross the border of two 32-bit bitmaps: there `contains_range` is true for ranges with a gap.
        end = min(first + _WINDOW_POSITIONS, ((first >> 32) + 1) << 32, stop)
        if bitmap.contains_range(first, end):
            windows.append(PositionSet.from_runs(np.array([first]), np.array([end])))
        else:
            window = bitmap & BitMap64(range(first, end))
            windows.append(PositionSet.from_array(np.frombuffer(window.to_array(), np.int64)))
    return PositionSet.union_of(windows)


def _bitmap_of(positions: PositionSet) -> BitMap64:
    long = positions.ends - positions.starts >= _LONG_RUN
    # pyroaring reads an `array` without a Python object for each element, four times as fast as a numpy array.
    bitmap = BitMap64(array("Q", expanded(positions.starts[~long], positions.ends[~long]).tobytes()))
    for start, end in zip(positions.starts[long].tolist(), positions.ends[long].tolist(), strict=True):
        bitmap.add_range(start, end)
    return bitmap
