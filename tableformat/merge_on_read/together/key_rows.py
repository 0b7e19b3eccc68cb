"""`KeyRows`: a data file with its delete columns in memory, and several of them end to end.

file           0            1         2
rows       |0 1 2 3 4|  |0 1 2|  |0 1 2 3|        positions within each file
end to end  0 1 2 3 4    5 6 7    8 9 10 11
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.task import FileScanTask


@dataclass(frozen=True, slots=True, eq=False)
class KeyRows:
    """All rows of one data file, in file order, in the columns by which its deletes find them."""

    task: FileScanTask
    row_count: int
    sorted_by: tuple[int, ...]
    """RD-11: field ids of the file's own marker; empty without one."""
    columns: Mapping[int, pa.ChunkedArray]
    """By field id, in the types of the file; a column that the file does not have is there with the value that its rows
    read as (DA-6)."""

    def stored_types(self, field_ids: Sequence[int]) -> tuple[pa.DataType, ...]:
        """The Arrow types of some of the columns: columns of several files are put together where they agree."""
        return tuple(self.columns[field_id].type for field_id in field_ids)


def end_to_end(files: Sequence[KeyRows], field_ids: Sequence[int]) -> list[pa.ChunkedArray]:
    """Columns of files of the same stored types, one file after the other."""
    return [
        pa.chunked_array(
            [chunk for file in files for chunk in file.columns[field_id].chunks], files[0].columns[field_id].type
        )
        for field_id in field_ids
    ]


def starts_of(row_counts: Iterable[int]) -> NDArray[np.int64]:
    """Where each file begins in the rows of all, and at the end the number of rows."""
    return np.cumsum([0, *row_counts], dtype=np.int64)


def joined(positions: Sequence[PositionSet], starts: NDArray[np.int64]) -> PositionSet:
    """Positions of each file as positions in the rows of all; those at or beyond a file's end name no row."""
    found = [
        (each.runs(0, row_count), start)
        for each, start, row_count in zip(positions, starts[:-1].tolist(), np.diff(starts).tolist(), strict=True)
        if each
    ]
    if not found:
        return PositionSet.empty()
    run_starts = np.concatenate([runs[0] + start for runs, start in found])
    return PositionSet.from_runs(run_starts, np.concatenate([runs[1] + start for runs, start in found]))


def parted(positions: PositionSet, starts: NDArray[np.int64]) -> list[PositionSet]:
    """Positions in the rows of all files as positions of each."""
    return [
        PositionSet(*positions.runs(start, row_count))
        for start, row_count in zip(starts[:-1].tolist(), np.diff(starts).tolist(), strict=True)
    ]
