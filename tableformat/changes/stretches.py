"""Stretches of a range: snapshots that follow each other, each of which only added files of its own age.

What such snapshots deleted is told from their deletes alone: a row went with the first of them that reaches it, if it
was alive before. Streams write nothing else; jobs and verbs that take files away end a stretch.
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

STRETCH_SNAPSHOTS: Final = 1000
STRETCH_DELETES: Final = 1_000_000
"""Records of delete files of one stretch, which are in memory together."""
STRETCH_FILES: Final = 100_000
_FIRST_SNAPSHOTS: Final = 8


Filters: TypeAlias = Mapping[ChangeType, BooleanExpression]
"""What is left of the feed's filter for the deleted and the inserted rows of a snapshot; nothing for what it rules
out."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A snapshot, and what it added to its parent and took away."""

    ordinal: int
    """Its number in the range."""
    snapshot: Snapshot
    filters: Filters
    parent: Snapshot | None
    diff: TableDiff

    @property
    def only_adds(self) -> bool:
        """Whether no file went, and every file that came is as old as the snapshot."""
        if self.diff.removed_data_files or self.diff.removed_delete_files:
            return False
        added = chain(self.diff.added_data_files, self.diff.added_delete_files)
        return all(file.sequence_number == (self.snapshot.sequence_number or 0) for file in added)


@dataclass(frozen=True)
class Stretch:
    """Snapshots of one line, each the child of the one before, that only added files; at least one."""

    differences: tuple[Difference, ...]

    @property
    def before(self) -> Snapshot | None:
        """What the first of them was committed on top of."""
        return self.differences[0].parent

    @cached_property
    def data_files(self) -> list[DataFile]:
        return [data for each in self.differences for data in each.diff.added_data_files]

    @cached_property
    def delete_files(self) -> list[DeleteFile]:
        return [delete for each in self.differences for delete in each.diff.added_delete_files]


Part: TypeAlias = Stretch | Difference
"""Of a range: what is told together."""


def parts_of(
    view: SnapshotView, snapshots: Sequence[tuple[int, Snapshot, Filters]], *, is_hasty: bool = False
) -> Iterator[Part]:
    """The snapshots, each with its number in the range and its filters, in their order: as stretches, and those alone
    that are none.
    `is_hasty`: few rows may be enough, so that the first stretches are short.

    Reads the manifests in which a snapshot and its parent differ. SnapshotNotFoundError where a parent has expired.
    """
    gathered: list[Difference] = []
    longest = min(_FIRST_SNAPSHOTS, STRETCH_SNAPSHOTS) if is_hasty else STRETCH_SNAPSHOTS
    deletes = files = 0
    for ordinal, snapshot, filters in snapshots:
        parent = parent_of(view, snapshot)
        diff = diff_snapshots(view.io, view.metadata, parent, snapshot)
        difference = Difference(ordinal, snapshot, filters, parent, diff)
        new_deletes = sum(delete.record_count for delete in diff.added_delete_files)
        deletes, files = deletes + new_deletes, files + len(diff.added_data_files)
        is_next = bool(gathered) and parent is not None and parent.snapshot_id == gathered[-1].snapshot.snapshot_id
        fits = len(gathered) < longest and deletes <= STRETCH_DELETES and files <= STRETCH_FILES
        if gathered and not (is_next and fits and difference.only_adds):
            yield Stretch(tuple(gathered))
            longest = min(2 * longest, STRETCH_SNAPSHOTS)
            gathered, deletes, files = [], new_deletes, len(diff.added_data_files)
        if difference.only_adds:
            gathered.append(difference)
        else:
            yield difference
    if gathered:
        yield Stretch(tuple(gathered))
