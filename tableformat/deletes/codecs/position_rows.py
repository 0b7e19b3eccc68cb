"""The rows of a position delete file, grouped by the data file that they name (DA-10)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tableformat.deletes.positions import MAX_POSITION, PositionSet

FILE_PATH_FIELD_ID: Final = 2147483546
POSITION_FIELD_ID: Final = 2147483545
"""The two columns of a position delete file. Source: Iceberg table specification, "Reserved Field IDs"."""
FILE_PATH: Final = "file_path"
POSITION: Final = "pos"


def positions_by_path(rows: pa.Table, wanted: Collection[str] | None = None) -> dict[str, PositionSet]:
    """DA-10: the positions that `rows` has for each data file. Paths must be equal; other spellings of a path do not
    match.

    `rows` has the columns `file_path` (string, dictionary encoded or not) and `pos` (integer), in any order of rows.
    `wanted` limits the result to these paths; a wanted path without rows is not in the result. Raises ValueError for a
    null and for a position that no row can have, because the file is invalid then.
    """
    if rows[FILE_PATH].null_count or rows[POSITION].null_count:
        raise ValueError("a row names no data file or no position")
    positions = rows[POSITION].cast(pa.int64()).to_numpy()
    if len(positions) and positions.min() < 0:
        raise ValueError(f"position {positions.min()} is negative")
    if len(positions) and positions.max() > MAX_POSITION:
        raise ValueError(f"position {positions.max()} is above {MAX_POSITION}")
    paths, codes = _path_codes(rows[FILE_PATH])
    codes, positions = _in_order(codes, positions)
    steps = (np.diff(positions) != 1) | (np.diff(codes) != 0)
    gaps = np.flatnonzero(steps) + 1
    starts = np.concatenate(([0], gaps)) if len(codes) else gaps
    ends = np.concatenate((gaps, [len(codes)])) if len(codes) else gaps
    begun, ended = positions[starts], positions[ends - 1] + 1
    bounds = pairwise(np.searchsorted(codes[starts], np.arange(len(paths) + 1)).tolist())
    # Copies, so that the positions kept for one data file do not keep the rows of all files in memory.
    return {
        path: PositionSet(begun[begin:end].copy(), ended[begin:end].copy())
        for path, (begin, end) in zip(paths, bounds, strict=True)
        if begin < end and (wanted is None or path in wanted)
    }


def _path_codes(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct paths, and for each row the index of its path."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    if not column.num_chunks:
        return [], np.empty(0, np.int64)
    codes = pa.chunked_array([chunk.indices for chunk in column.chunks]).to_numpy().astype(np.int64, copy=False)
    distinct = pc.unique(column.chunk(0).dictionary)
    if len(distinct) != len(column.chunk(0).dictionary):
        codes = pc.index_in(column.chunk(0).dictionary, value_set=distinct).to_numpy().astype(np.int64)[codes]
    return path_texts(distinct), codes


def path_texts(paths: pa.Array) -> list[str]:
    """DA-10: paths as strings, even if the file stores them as bytes. Raises ArrowInvalid if they are not UTF-8."""
    texts: list[str] = paths.cast(pa.string()).to_pylist()
    return texts


def _in_order(codes: NDArray[np.int64], positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows, sorted by code and position. The specification requires this order; most writers keep it."""
    code_steps, position_steps = np.diff(codes), np.diff(positions)
    if np.all((code_steps > 0) | ((code_steps == 0) & (position_steps > 0))):
        return codes, positions
    order = np.lexsort((positions, codes))
    codes, positions = codes[order], positions[order]
    is_first = np.ones(len(codes), np.bool_)
    is_first[1:] = (np.diff(codes) != 0) | (np.diff(positions) != 0)
    return codes[is_first], positions[is_first]
