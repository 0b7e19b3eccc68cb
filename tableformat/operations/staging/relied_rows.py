"""Existing rows that make a draft skip an insert; checked again at commit (CP-38)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from tableformat.deletes.positions import PositionSet
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.staging.reached_rows import ReachedRows

FindRows: TypeAlias = Callable[[], Iterable[tuple[DataFile, PositionSet]]]
"""Finds rows by their positions in committed data files."""
_UNFOUND_ROWS_MAX: Final = 1_000_000
"""Maximum number of rows whose keys are held until a commit meets another head, and that are only found then."""


class ReliedRows:
    """These rows, and the deletes of others that remove some of them. Few commits need them, so finding the rows may be
    postponed until then."""

    def __init__(self) -> None:
        self._unfound: list[FindRows] = []
        self._unfound_rows = 0
        self._files: dict[str, DataFile] = {}
        self._positions: dict[str, PositionSet] = {}
        self._reached = ReachedRows()

    def add(self, find: FindRows, row_count: int) -> None:
        """Add rows. `row_count` is the number of rows whose keys `find` holds."""
        self._unfound.append(find)
        self._unfound_rows += row_count
        if self._unfound_rows > _UNFOUND_ROWS_MAX:
            self._find()

    def data_files(self) -> tuple[DataFile, ...]:
        """The files that hold the rows."""
        self._find()
        return tuple(self._files.values())

    def reached(
        self, head: SnapshotView, deletes: Sequence[DeleteFile], data_files: Sequence[DataFile]
    ) -> frozenset[str]:
        """The paths of the files in which one of the deletes removes one of the rows. All of the files are live in
        `head`."""
        return self._reached.files(head, deletes, data_files, self._positions)

    def _find(self) -> None:
        for find in self._unfound:
            for data, positions in find():
                known = self._positions.get(data.file_path, PositionSet.empty())
                self._files[data.file_path] = data
                self._positions[data.file_path] = known.union(positions)
        self._unfound.clear()
        self._unfound_rows = 0
