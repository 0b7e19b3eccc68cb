"""Finds the rows that the snapshots of a range inserted and deleted.

snapshots that only added files     together: for each data file, the rows that their deletes reach, and
                                    which delete was the first (CF-10)
other snapshots                     one by one: rows that are alive before or after only (`plan`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.table.snapshots import Snapshot

from tableformat.changes.plan import ChangeTask, ChangeType, change_tasks, entry_of, filters_of, plan_snapshot
from tableformat.changes.snapshot_series import Difference, SnapshotSeries, parts_of
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import live_files, manifests_of_snapshot
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number, delete_is_of_a_later_commit
from tableformat.merge_on_read.applicable_deletes import reached_data_files
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.small_files.first_deletes import Reached, first_deletes
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, only_rows
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import file_filter, match_deletes, plan_scan
from tableformat.storage.side_by_side import reader_count

Entry = tuple[str, int | None]
"""Identifies a data file with a given sequence number."""
Positions: TypeAlias = npt.NDArray[np.int64]
"""Positions of rows in one data file, ascending."""
Deleted: TypeAlias = Mapping[int, Sequence[tuple[DataFile, Positions]]]
"""For each sequence number, the rows that its snapshot deleted."""


@dataclass(frozen=True, slots=True)
class FoundSeries:
    """A series whose deleted rows are known."""

    series: SnapshotSeries
    deleted: Deleted
    view: SnapshotView
    context: MergeContext

    def deletes(self, difference: Difference) -> list[tuple[FileScanTask, Positions]]:
        """The rows that one of the snapshots deleted, without files that the filter rules out. A task has the residual
        filter and no deletes."""
        filters = difference.filters
        rows = self.deleted.get(difference.snapshot.sequence_number or 0, ())
        if not rows or ChangeType.DELETE not in filters:
            return []
        if isinstance(filters[ChangeType.DELETE], AlwaysTrue):
            return [(FileScanTask(data_file=data), positions) for data, positions in rows]
        found = {entry_of(data): positions for data, positions in rows}
        files = [data for data, _ in rows]
        tasks, _ = match_deletes(self.view, files, (), self.context, filters[ChangeType.DELETE])
        return [(task, found[entry_of(task.data_file)]) for task in tasks]

    def inserts(self, difference: Difference) -> Iterator[ChangeTask]:
        """The rows that one of the snapshots added."""
        snapshot, filters, added = difference.snapshot, difference.filters, difference.diff.added_data_files
        if not added or ChangeType.INSERT not in filters:
            return
        after = replace(self.view, snapshot=snapshot)
        plan = plan_scan(after, filters[ChangeType.INSERT], context=self.context, data_files=added)
        whole = (NarrowedTask(scan=task) for task in plan.tasks)
        yield from change_tasks(snapshot, difference.ordinal, ChangeType.INSERT, whole)

    def tasks(self, difference: Difference) -> Iterator[ChangeTask]:
        """CF-6: all tasks of one of the snapshots, deletes first."""
        deletes = (only_rows(task, PositionSet.from_array(rows)) for task, rows in self.deletes(difference))
        yield from change_tasks(difference.snapshot, difference.ordinal, ChangeType.DELETE, deletes)
        yield from self.inserts(difference)


def changed_rows(
    view: SnapshotView,
    snapshots: Sequence[Snapshot],
    where: BooleanExpression | None,
    *,
    context: MergeContext,
) -> Iterator[ChangeTask]:
    """CF-3, CF-6: the same tasks as `plan_changes`, with the same rows in the same order. The deleted rows of snapshots
    that only added files are already known, so files without any have no task.

    `view` selects the table, and the schema of the returned rows. Metadata and delete files are read. Of data files
    that deletes may reach, the columns of these deletes are read too. Raises SnapshotNotFoundError if a parent has
    expired (CF-2).
    """
    for part in found_parts(view, snapshots, where, context=context):
        if isinstance(part, FoundSeries):
            for difference in part.series.differences:
                yield from part.tasks(difference)
        else:
            yield from tasks_alone(part, view, where, context)


def tasks_alone(
    part: Difference, view: SnapshotView, where: BooleanExpression | None, context: MergeContext
) -> Sequence[ChangeTask]:
    """The tasks of a snapshot that does not belong to a series."""
    return plan_snapshot(view, part.snapshot, where, context=context, ordinal=part.ordinal, diff=part.diff)


def found_parts(
    view: SnapshotView,
    snapshots: Sequence[Snapshot],
    where: BooleanExpression | None,
    *,
    context: MergeContext,
    is_hasty: bool = False,
) -> Iterator[FoundSeries | Difference]:
    """The parts of a range in order, without snapshots that have no matching event (`parts_of`)."""
    asked = [
        (ordinal, snapshot, filters)
        for ordinal, snapshot in enumerate(snapshots)
        if not changes_no_row(snapshot) and (filters := filters_of(view, snapshot, where))
    ]
    for part in parts_of(view, asked, is_hasty=is_hasty):
        deleted = _first_deleted(part, view, where, context) if isinstance(part, SnapshotSeries) else None
        if isinstance(part, SnapshotSeries) and deleted is not None:
            yield FoundSeries(part, deleted, view, context)
        else:
            yield from part.differences if isinstance(part, SnapshotSeries) else (part,)


def _first_deleted(
    series: SnapshotSeries, view: SnapshotView, where: BooleanExpression | None, context: MergeContext
) -> Deleted | None:
    """CF-10: the deleted rows of a series. A row was deleted by the snapshot with the first delete that reaches it.
    Rows that were already deleted before the series, or in the commit that added them, are excluded. None if the
    sequence numbers do not distinguish the deletes (`first_deletes`)."""
    deletes = series.delete_files
    wants_deletes = any(ChangeType.DELETE in each.filters for each in series.differences)
    if not (deletes and wants_deletes):
        return {}
    before = replace(view, snapshot=series.before)
    manifests = manifests_of_snapshot(view.io, series.before)
    old = live_files(view.io, view.metadata, manifests, ManifestContent.DATA)
    may_match = file_filter(view, where)
    candidates = [data for data in (*old, *series.data_files) if isinstance(data, DataFile) and may_match(data)]
    reached = reached_data_files(view.metadata, candidates, deletes)
    threads = reader_count(view.metadata.location)
    found = first_deletes(reached, deletes, context, thread_count=threads)
    if found is None:
        return None
    first_number = min(each.snapshot.sequence_number or 0 for each in series.differences)
    hit = [data for data, rows in zip(reached, found, strict=True) if len(rows.positions)]
    dead = _dead_before([data for data in hit if (data.sequence_number or 0) < first_number], before, context, threads)
    deleted: dict[int, list[tuple[DataFile, Positions]]] = {}
    for data, rows in zip(reached, found, strict=True):
        for number, positions in _by_number(data, rows, dead.get(entry_of(data))):
            deleted.setdefault(number, []).append((data, positions))
    return deleted


def _by_number(data: DataFile, rows: Reached, dead: PositionSet | None) -> Iterator[tuple[int, Positions]]:
    """The deleted rows, grouped by the sequence number of the delete."""
    went = delete_is_of_a_later_commit(rows.numbers, committed_sequence_number(data))
    if dead:
        went &= ~dead.mask(0, data.record_count)[rows.positions]
    positions, numbers = rows.positions[went], rows.numbers[went]
    order = np.argsort(numbers, kind="stable")
    distinct, begins = np.unique(numbers[order], return_index=True)
    parts = np.split(positions[order], begins[1:]) if len(distinct) else []
    yield from zip(distinct.tolist(), parts, strict=True)


def _dead_before(
    data_files: Sequence[DataFile], before: SnapshotView, context: MergeContext, threads: int
) -> Mapping[Entry, PositionSet]:
    """The deleted rows of these files in an earlier snapshot."""
    if not data_files:
        return {}
    tasks = plan_scan(before, context=context, data_files=data_files).tasks
    found = deleted_positions_of(tasks, context, thread_count=threads)
    dead = {entry_of(task.data_file): positions for task, positions in zip(tasks, found, strict=True)}
    # A file without a task is deleted completely (RD-10).
    return {entry_of(data): dead.get(entry_of(data), PositionSet.every(data.record_count)) for data in data_files}
