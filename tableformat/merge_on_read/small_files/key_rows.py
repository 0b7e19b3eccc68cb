"""`KeyRows`: a data file with its delete columns in memory, and several of them end to end.

file           0            1         2
rows       |0 1 2 3 4|  |0 1 2|  |0 1 2 3|        positions within each file
end to end  0 1 2 3 4    5 6 7    8 9 10 11
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tableformat.deletes.positions import PositionSet, expanded
from tableformat.merge_on_read.task import FileScanTask


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """All rows of one data file, in file order, in the columns by which its deletes match them."""

    task: FileScanTask
    row_count: int
    sorted_by: tuple[int, ...]
    """RD-11: field ids of the file's own marker; empty without a marker."""
    columns: Mapping[int, pa.ChunkedArray]
    """By field id, in the types of the file. A column that the file lacks has the value that its rows read as
    (DA-6)."""

    def stored_types(self, field_ids: Sequence[int]) -> tuple[pa.DataType, ...]:
        """The Arrow types of some of the columns. Columns of several files are concatenated if their types are
        equal."""
        return tuple(self.columns[field_id].type for field_id in field_ids)


def end_to_end(files: Sequence[KeyRows], field_ids: Sequence[int]) -> list[pa.ChunkedArray]:
    """Columns of files with the same stored types, one file after the other."""
    return [
        pa.chunked_array(
            [chunk for file in files for chunk in file.columns[field_id].chunks], files[0].columns[field_id].type
        )
        for field_id in field_ids
    ]


def starts_of(row_counts: Iterable[int]) -> NDArray[np.int64]:
    """The begin of each file among all rows, and finally the number of rows."""
    return np.cumsum([0, *row_counts], dtype=np.int64)


def joined(positions: Sequence[PositionSet], starts: NDArray[np.int64]) -> PositionSet:
    """Converts positions in each file to positions among all rows. Positions at or after a file's end name no row."""
    if not any(positions):
        return PositionSet.empty()
    run_counts = [each.run_count for each in positions]
    begins, row_counts = np.repeat(starts[:-1], run_counts), np.repeat(np.diff(starts), run_counts)
    run_starts = np.minimum(np.concatenate([each.starts for each in positions]), row_counts)
    run_ends = np.minimum(np.concatenate([each.ends for each in positions]), row_counts)
    return PositionSet.from_runs(run_starts + begins, run_ends + begins)


def parted(positions: PositionSet, starts: NDArray[np.int64]) -> list[PositionSet]:
    """Converts positions among all rows to positions in each file."""
    first = np.searchsorted(positions.ends, starts[:-1], side="right")
    stop = np.searchsorted(positions.starts, starts[1:], side="left")
    # A run that continues in the next file belongs to both.
    run_counts = np.where(starts[:-1] < starts[1:], stop - first, 0)
    runs = expanded(first, first + run_counts)
    begins, ends = np.repeat(starts[:-1], run_counts), np.repeat(starts[1:], run_counts)
    run_starts = np.maximum(positions.starts[runs], begins) - begins
    run_ends = np.minimum(positions.ends[runs], ends) - begins
    bounds = pairwise(np.cumsum([0, *run_counts]).tolist())
    return [PositionSet(run_starts[begin:end], run_ends[begin:end]) for begin, end in bounds]
