"""Deleted positions in the form that `DeletedRows` of the Java side decodes."""

from __future__ import annotations

from typing import Final

import numpy as np
from pyroaring import BitMap

from tableformat.deletes.positions import PositionSet
from tableformat.errors import UnsupportedFeatureError

_ROARING: Final = b"\x00"
_RUNS: Final = b"\x01"
_RUN_BYTES: Final = 8
_POSITION_BYTES: Final = 2
"""Maximum size of a position in a roaring bitmap, excluding containers."""
_POSITIONS_END: Final = 1 << 32


def position_bytes(positions: PositionSet) -> bytes:
    """The positions as runs if those are shorter, otherwise as a roaring bitmap. The first byte is the format.

    Raises UnsupportedFeatureError for positions beyond 32 bits.
    """
    if positions and positions.ends[-1] > _POSITIONS_END:
        raise UnsupportedFeatureError(
            f"a data file has more than {_POSITIONS_END} rows, for which Spark cannot apply deletes."
        )
    if positions.run_count * _RUN_BYTES <= len(positions) * _POSITION_BYTES and positions.ends[-1] < _POSITIONS_END:
        runs = np.stack((positions.starts, positions.ends), axis=1).astype("<u4")
        return _RUNS + runs.tobytes()
    bitmap = BitMap(positions.to_array().astype(np.uint32))
    return _ROARING + bytes(bitmap.serialize())
