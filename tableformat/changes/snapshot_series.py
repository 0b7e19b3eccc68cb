"""Series of a range: consecutive snapshots, which only added files with their own sequence number.

The rows that they deleted follow from their deletes alone: a row was deleted by the first snapshot that reaches it, if
it was alive before. Streams only write such snapshots. Maintenance jobs and operations that remove files end a series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table.snapshots import Snapshot

from tableformat.cached_property import cached_property
from tableformat.changes.plan import ChangeType
from tableformat.changes.range import parent_of
from tableformat.commit.table_diff import TableDiff, diff_snapshots
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView

SERIES_SNAPSHOTS: Final = 1000
SERIES_DELETES: Final = 1_000_000
"""Maximum number of delete file records in one series, which are in memory together."""
SERIES_FILES: Final = 100_000
_FIRST_SNAPSHOTS: Final = 8


Filters: TypeAlias = Mapping[ChangeType, BooleanExpression]
"""The residual filters of the feed for the deleted and the inserted rows of a snapshot. A kind of change that the
filter rules out has no entry."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A snapshot, and the files that it added to its parent and removed from it."""

    ordinal: int
    """The number of the snapshot in the range."""
    snapshot: Snapshot
    filters: Filters
    parent: Snapshot | None
    diff: TableDiff

    @property
    def only_adds(self) -> bool:
        """Whether no file was removed, and every added file has the sequence number of the snapshot."""
        if self.diff.removed_data_files or self.diff.removed_delete_files:
            return False
        added = chain(self.diff.added_data_files, self.diff.added_delete_files)
        return all(file.sequence_number == (self.snapshot.sequence_number or 0) for file in added)


@dataclass(frozen=True)
class SnapshotSeries:
    """One or more consecutive snapshots that only added files."""

    differences: tuple[Difference, ...]

    @property
    def before(self) -> Snapshot | None:
        """The parent of the first snapshot."""
        return self.differences[0].parent

    @cached_property
    def data_files(self) -> list[DataFile]:
        return [data for each in self.differences for data in each.diff.added_data_files]

    @cached_property
    def delete_files(self) -> list[DeleteFile]:
        return [delete for each in self.differences for delete in each.diff.added_delete_files]


Part: TypeAlias = SnapshotSeries | Difference
"""A part of a range that is processed together."""


def parts_of(
    view: SnapshotView, snapshots: Sequence[tuple[int, Snapshot, Filters]], *, is_hasty: bool = False
) -> Iterator[Part]:
    """The snapshots in order, grouped into series. A snapshot that is not part of a series is returned alone. The
    input has the number of each snapshot in the range, and its filters.

    With `is_hasty`, the first series are short, because the caller may need only a few rows. Reads the manifests
    that differ between a snapshot and its parent. Raises SnapshotNotFoundError if a parent has expired.
    """
    gathered: list[Difference] = []
    longest = min(_FIRST_SNAPSHOTS, SERIES_SNAPSHOTS) if is_hasty else SERIES_SNAPSHOTS
    deletes = files = 0
    for ordinal, snapshot, filters in snapshots:
        parent = parent_of(view, snapshot)
        diff = diff_snapshots(view.io, view.metadata, parent, snapshot)
        difference = Difference(ordinal, snapshot, filters, parent, diff)
        new_deletes = sum(delete.record_count for delete in diff.added_delete_files)
        deletes, files = deletes + new_deletes, files + len(diff.added_data_files)
        is_next = bool(gathered) and parent is not None and parent.snapshot_id == gathered[-1].snapshot.snapshot_id
        fits = len(gathered) < longest and deletes <= SERIES_DELETES and files <= SERIES_FILES
        if gathered and not (is_next and fits and difference.only_adds):
            yield SnapshotSeries(tuple(gathered))
            longest = min(2 * longest, SERIES_SNAPSHOTS)
            gathered, deletes, files = [], new_deletes, len(diff.added_data_files)
        if difference.only_adds:
            gathered.append(difference)
        else:
            yield difference
    if gathered:
        yield SnapshotSeries(tuple(gathered))
