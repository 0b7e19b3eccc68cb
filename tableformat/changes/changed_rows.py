"""Finds the rows that the snapshots of a range inserted and deleted.

snapshots that only added files     together: each data file is asked once which of their deletes reached
                                    its rows, and which did first (CF-10)
other snapshots                     one by one: what is alive on one side only (`plan`)
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
from tableformat.changes.stretches import Difference, Stretch, parts_of
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import live_files, manifests_of_snapshot
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number, delete_is_of_a_later_commit
from tableformat.merge_on_read.applicable_deletes import reached_data_files
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, only_rows
from tableformat.merge_on_read.together.first_deletes import Reached, first_deletes
from tableformat.merge_on_read.together.joint_positions import deleted_positions_of
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.planner import file_filter, match_deletes, plan_scan
from tableformat.storage.side_by_side import reader_count

Entry = tuple[str, int | None]
"""A data file of one age."""
Positions: TypeAlias = npt.NDArray[np.int64]
"""Of rows of one data file; rising."""
Deleted: TypeAlias = Mapping[int, Sequence[tuple[DataFile, Positions]]]
"""By sequence number the rows that its snapshot deleted."""


@dataclass(frozen=True, slots=True)
class FoundStretch:
    """A stretch of which the deleted rows are known."""

    stretch: Stretch
    deleted: Deleted
    view: SnapshotView
    context: MergeContext

    def deletes(self, difference: Difference) -> list[tuple[FileScanTask, Positions]]:
        """The rows that one of the snapshots deleted, less those of files that the filter rules out. The task has what
        is left of the filter, and no deletes."""
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
        """CF-6: all of them, the deletes first."""
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
    """CF-3, CF-6: the tasks that `plan_changes` plans, in the same order and with the same rows; deleted rows of
    snapshots that only added files are known by then, and files without any have no task.

    `view` says which table and in which schema rows are returned. Reads metadata, delete files and, of data files that
    deletes may reach, the columns that these name. SnapshotNotFoundError where a parent has expired (CF-2).
    """
    for part in found_parts(view, snapshots, where, context=context):
        if isinstance(part, FoundStretch):
            for difference in part.stretch.differences:
                yield from part.tasks(difference)
        else:
            yield from tasks_alone(part, view, where, context)


def tasks_alone(
    part: Difference, view: SnapshotView, where: BooleanExpression | None, context: MergeContext
) -> Sequence[ChangeTask]:
    """The tasks of a snapshot that is in no stretch."""
    return plan_snapshot(view, part.snapshot, where, context=context, ordinal=part.ordinal, diff=part.diff)


def found_parts(
    view: SnapshotView,
    snapshots: Sequence[Snapshot],
    where: BooleanExpression | None,
    *,
    context: MergeContext,
    is_hasty: bool = False,
) -> Iterator[FoundStretch | Difference]:
    """The parts of a range in their order, without snapshots that have no event which may match (`parts_of`)."""
    asked = [
        (ordinal, snapshot, filters)
        for ordinal, snapshot in enumerate(snapshots)
        if not changes_no_row(snapshot) and (filters := filters_of(view, snapshot, where))
    ]
    for part in parts_of(view, asked, is_hasty=is_hasty):
        deleted = _first_deleted(part, view, where, context) if isinstance(part, Stretch) else None
        if isinstance(part, Stretch) and deleted is not None:
            yield FoundStretch(part, deleted, view, context)
        else:
            yield from part.differences if isinstance(part, Stretch) else (part,)


def _first_deleted(
    stretch: Stretch, view: SnapshotView, where: BooleanExpression | None, context: MergeContext
) -> Deleted | None:
    """CF-10: a row went in the snapshot whose delete is the first to reach it, unless it was dead before the stretch or
    since it was added. None where the deletes cannot be told apart by their numbers (`first_deletes`)."""
    deletes = stretch.delete_files
    wants_deletes = any(ChangeType.DELETE in each.filters for each in stretch.differences)
    if not (deletes and wants_deletes):
        return {}
    before = replace(view, snapshot=stretch.before)
    manifests = manifests_of_snapshot(view.io, stretch.before)
    old = live_files(view.io, view.metadata, manifests, ManifestContent.DATA)
    may_match = file_filter(view, where)
    candidates = [data for data in (*old, *stretch.data_files) if isinstance(data, DataFile) and may_match(data)]
    reached = reached_data_files(view.metadata, candidates, deletes)
    threads = reader_count(view.metadata.location)
    found = first_deletes(reached, deletes, context, thread_count=threads)
    if found is None:
        return None
    first_number = min(each.snapshot.sequence_number or 0 for each in stretch.differences)
    hit = [data for data, rows in zip(reached, found, strict=True) if len(rows.positions)]
    dead = _dead_before([data for data in hit if (data.sequence_number or 0) < first_number], before, context, threads)
    deleted: dict[int, list[tuple[DataFile, Positions]]] = {}
    for data, rows in zip(reached, found, strict=True):
        for number, positions in _by_number(data, rows, dead.get(entry_of(data))):
            deleted.setdefault(number, []).append((data, positions))
    return deleted


def _by_number(data: DataFile, rows: Reached, dead: PositionSet | None) -> Iterator[tuple[int, Positions]]:
    """The rows that went, by the number of the delete that took them."""
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
    """The rows of these files of a snapshot that are deleted in it."""
    if not data_files:
        return {}
    tasks = plan_scan(before, context=context, data_files=data_files).tasks
    found = deleted_positions_of(tasks, context, thread_count=threads)
    dead = {entry_of(task.data_file): positions for task, positions in zip(tasks, found, strict=True)}
    # A file without a task is covered whole (RD-10).
    return {entry_of(data): dead.get(entry_of(data), PositionSet.every(data.record_count)) for data in data_files}
