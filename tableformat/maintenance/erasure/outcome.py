"""What the erasure does to each file of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tableformat.commit.change import FileKey
from tableformat.deletes.positions import PositionSet
from tableformat.metadata.content_file import DataFile, DeleteFile


@dataclass(frozen=True, slots=True)
class ErasedRows:
    """A data file with rows of the scope."""

    before: DataFile
    positions: PositionSet
    """The rows that are erased. Empty if the file has only traces of the scope, for example in a dictionary."""
    after: DataFile | None = None
    """The file without the rows; None if no row is left, and for a dry run."""

    @property
    def is_dropped(self) -> bool:
        return len(self.positions) == self.before.record_count

    def moved(self, positions: PositionSet) -> PositionSet:
        """Positions of the file before, without those of erased rows, as positions of the file after."""
        return moved_positions(positions, self.positions)


@dataclass(slots=True)
class Outcomes:
    """The files that change. Files that are in neither mapping stay as they are."""

    data: dict[str, ErasedRows] = field(default_factory=dict)
    """By location."""
    deletes: dict[FileKey, DeleteFile | None] = field(default_factory=dict)
    """None for a delete file without remaining deletes."""
    deletes_before: dict[FileKey, DeleteFile] = field(default_factory=dict)

    @property
    def row_count(self) -> int:
        return sum(len(each.positions) for each in self.data.values())


def moved_positions(positions: PositionSet, erased: PositionSet) -> PositionSet:
    """MT-114: the positions in a file that is written again without the erased rows.

    >>> import numpy as np
    >>> from tableformat.deletes.positions import PositionSet
    >>> before, erased = (PositionSet.from_array(np.array(each)) for each in ([0, 2, 5, 6], [1, 5]))
    >>> moved_positions(before, erased).to_array().tolist()
    [0, 1, 4]
    """
    left = positions.minus(erased)
    before = np.concatenate(([0], np.cumsum(erased.ends - erased.starts)))
    shift = before[np.searchsorted(erased.ends, left.starts, side="right")]
    return PositionSet.from_runs(left.starts - shift, left.ends - shift)
