"""The rows of a position delete file, grouped by the data file that they name (DA-10)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tableformat.deletes.positions import PositionSet

FILE_PATH_FIELD_ID: Final = 2147483546
POSITION_FIELD_ID: Final = 2147483545
"""The two columns of a position delete file. Source: Iceberg table specification, "Reserved Field IDs"."""
FILE_PATH: Final = "file_path"
POSITION: Final = "pos"


def positions_by_path(rows: pa.Table, wanted: Collection[str] | None = None) -> dict[str, PositionSet]:
    """DA-10: the positions that `rows` name in each data file, by the exact path; no other spelling of a path matches.

    `rows` has the columns `file_path` (string, dictionary encoded or not) and `pos` (integer), in any order of rows.
    `wanted` limits the paths that are looked at; a wanted path without rows is not in the result.
    Raises ValueError for a null or a negative position: the rows then mean nothing.
    """
    if rows[FILE_PATH].null_count or rows[POSITION].null_count:
        raise ValueError("a row names no data file or no position")
    positions = rows[POSITION].cast(pa.int64()).to_numpy()
    if len(positions) and positions.min() < 0:
        raise ValueError(f"position {positions.min()} is negative")
    paths, codes = _path_codes(rows[FILE_PATH])
    starts, ends = _code_runs(codes)
    order = np.argsort(codes[starts], kind="stable")
    bounds = np.searchsorted(codes[starts][order], np.arange(len(paths) + 1))
    found = {}
    for code, path in enumerate(paths):
        runs = order[bounds[code] : bounds[code + 1]]
        if len(runs) and (wanted is None or path in wanted):
            found[path] = PositionSet.from_array(np.concatenate([positions[starts[run] : ends[run]] for run in runs]))
    return found


def _path_codes(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct paths, and for each row which of them it names."""
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
    """DA-10: paths as text, also of a file that does not call its bytes a string. ArrowInvalid for no UTF-8."""
    values = paths.dictionary_decode() if pa.types.is_dictionary(paths.type) else paths
    texts: list[str] = values.cast(pa.string()).to_pylist()
    return texts


def _code_runs(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of rows with one code: the specification sorts rows by path, so there is about one for each path."""
    if not len(codes):
        return codes, codes
    breaks = np.flatnonzero(np.diff(codes)) + 1
    return np.concatenate(([0], breaks)), np.concatenate((breaks, [len(codes)]))
