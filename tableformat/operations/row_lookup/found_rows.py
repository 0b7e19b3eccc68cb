"""Live rows found in planned files, numbered in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.task import RowTask, only_rows
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.staging.covered_positions import in_threads
from tableformat.scan.context import ReadContext
from tableformat.scan.matching_positions import matching_positions


@dataclass(frozen=True, slots=True)
class FoundRows:
    """Rows in the order of their files and positions."""

    tasks: list[RowTask]
    positions: list[PositionSet]

    @classmethod
    def of(cls, tasks: Iterable[RowTask], view: SnapshotView) -> FoundRows:
        """The live rows of the tasks that match their filters."""
        context = ReadContext.of(view)
        found = [each for each in in_threads(tasks, lambda task: matching_positions(task, context)) if each[1]]
        return cls([task for task, _ in found], [positions for _, positions in found])

    def to_read(self) -> list[RowTask]:
        """Tasks that read only these rows."""
        return [only_rows(task, found) for task, found in zip(self.tasks, self.positions, strict=True)]

    @property
    def starts(self) -> np.ndarray:
        """The number of the first row of each task, and the total number of rows."""
        return np.cumsum([0, *map(len, self.positions)])

    def chosen(self, rows: np.ndarray) -> Iterator[tuple[RowTask, PositionSet]]:
        """The tasks that hold the rows with these numbers (ascending), each with their positions."""
        cuts = np.searchsorted(rows, self.starts)
        for number, (task, found) in enumerate(zip(self.tasks, self.positions, strict=True)):
            local = rows[cuts[number] : cuts[number + 1]] - self.starts[number]
            if len(local):
                yield task, PositionSet.from_array(found.to_array()[local])
