"""Plans a change feed: the rows of data files that each snapshot of a range added or deleted.

    added data file       its rows that are alive in the snapshot                       insert
    removed data file     its rows that were alive in the parent                        delete
    data file that stays  rows alive in the parent and not in the snapshot              delete
                          rows alive in the snapshot and not in the parent              insert (a delete was undone)

Both snapshots of a pair are planned like scans, limited to the data files that their difference may affect. The rules
for applying deletes are therefore the same as in scans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.table.snapshots import Snapshot

from tableformat.cached_property import cached_property
from tableformat.changes.range import ChangeRange, parent_of
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import TableDiff, diff_snapshots, live_files, manifests_of_snapshot
from tableformat.filters.bound_filter import FALSE, BoundFilter, Comparison, bind_filter, to_expression
from tableformat.filters.file_statistics import partition_value_statistics
from tableformat.filters.pruning import decide, residual
from tableformat.merge_on_read.applicable_deletes import reached_data_files
from tableformat.merge_on_read.deleted_positions import MergeContext, deletes_identity
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask
from tableformat.metadata.change_columns import CHANGE_TYPE, COMMIT_SNAPSHOT_ID, COMMIT_TIMESTAMP, COMMIT_VERSION
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import merge_context
from tableformat.scan.planner import plan_scan

_MICROSECONDS: Final = 1000


class ChangeType(StrEnum):
    """The change to a row. An update is a delete and an insert."""

    INSERT = "insert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTask:
    """Rows of one data file that one snapshot changed in the same way. Plain data."""

    ordinal: int
    """The number of the snapshot in the range, from 0."""
    snapshot_id: int
    commit_version: int
    """The snapshot's sequence number, which increases from parent to child; 0 in format version 1."""
    timestamp_ms: int
    """The commit time of the snapshot, in milliseconds since 1970-01-01 UTC."""
    change_type: ChangeType
    scan: NarrowedTask
    """The data file, and its rows except `deleted_positions`. Its `constants` are the values of the feed's columns."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The files of a change feed."""

    from_snapshot_id: int | None
    to_snapshot_id: int | None
    tasks: tuple[ChangeTask, ...]
    """The tasks in the order of the events (CF-6)."""


def plan_changes(
    changes: ChangeRange, where: BooleanExpression | None = None, *, context: MergeContext | None = None
) -> Iterator[ChangeTask]:
    """The tasks of every snapshot of the range, in the order of the events (CF-6). They are planned lazily."""
    shared = context or merge_context(changes.view)
    for ordinal, snapshot in enumerate(changes.snapshots):
        yield from plan_snapshot(changes.view, snapshot, where, context=shared, ordinal=ordinal)


def plan_snapshot(
    view: SnapshotView,
    snapshot: Snapshot,
    where: BooleanExpression | None = None,
    *,
    context: MergeContext | None = None,
    ordinal: int = 0,
    diff: TableDiff | None = None,
) -> tuple[ChangeTask, ...]:
    """CF-3: the changes of one snapshot to the rows of its parent. Deletes come first (CF-6).

    `view` selects the table, and the schema of the returned rows. `where` may name the columns of the feed if the
    view's schema has them. `diff` is the difference to the parent, if known. Metadata is read, and range delete files
    within the span budget, but no data files. Raises SnapshotNotFoundError if the parent has expired (CF-2).
    """
    if changes_no_row(snapshot):
        return ()
    shared = context or merge_context(view)
    filters = filters_of(view, snapshot, where)
    if not filters:
        return ()
    before = replace(view, snapshot=parent_of(view, snapshot))
    pair = _Pair(before, replace(view, snapshot=snapshot), shared, diff)
    return tuple(
        task
        for change_type, expression in filters.items()
        for task in change_tasks(snapshot, ordinal, change_type, pair.tasks(change_type, expression))
    )


def change_tasks(
    snapshot: Snapshot, ordinal: int, change_type: ChangeType, scans: Iterable[NarrowedTask]
) -> Iterator[ChangeTask]:
    """CF-5: tasks of rows that the snapshot inserted or deleted."""
    constants = constants_of(snapshot, change_type)
    for scan in scans:
        yield ChangeTask(
            ordinal=ordinal,
            snapshot_id=snapshot.snapshot_id,
            commit_version=snapshot.sequence_number or 0,
            timestamp_ms=snapshot.timestamp_ms,
            change_type=change_type,
            scan=replace(scan, constants=constants),
        )


class _Pair:
    """A snapshot and its parent."""

    def __init__(
        self, before: SnapshotView, after: SnapshotView, context: MergeContext, diff: TableDiff | None
    ) -> None:
        self._before = before
        self._after = after
        self._context = context
        self._diff = diff or diff_snapshots(after.io, after.metadata, before.snapshot, after.snapshot)

    @cached_property
    def _touched(self) -> list[DataFile]:
        return _touched(self._before, self._diff)

    def tasks(self, change_type: ChangeType, where: BooleanExpression) -> Iterator[NarrowedTask]:
        """The rows that are alive on one side only: in the parent for deletes, in the snapshot for inserts."""
        if change_type is ChangeType.DELETE:
            here, there, whole_files = self._before, self._after, self._diff.removed_data_files
        else:
            here, there, whole_files = self._after, self._before, self._diff.added_data_files
        yield from (NarrowedTask(scan=task) for task in self._plan(here, whole_files, where))
        stay = self._touched if change_type is ChangeType.DELETE else self._touched_by_removal()
        others = {entry_of(task.data_file): task for task in self._plan(there, stay, where)}
        for task in self._plan(here, stay, where):
            other = others.get(entry_of(task.data_file))
            if other is None:
                # The file is deleted completely on the other side (RD-10), so no row that is alive here is alive there.
                yield NarrowedTask(scan=task)
            elif other.has_deletes and not self._has_same_deletes(task, other):
                yield NarrowedTask(scan=task, dead_in=other)

    def _touched_by_removal(self) -> Sequence[DataFile]:
        """The data files that a removed delete reached, whose rows may be alive again. If a writer replaced the delete
        by an equivalent one, no row is."""
        removed = self._diff.removed_delete_files
        return reached_data_files(self._before.metadata, self._touched, removed) if removed else []

    def _plan(
        self, view: SnapshotView, data_files: Sequence[DataFile], where: BooleanExpression
    ) -> tuple[FileScanTask, ...]:
        return plan_scan(view, where, context=self._context, data_files=data_files).tasks if data_files else ()

    def _has_same_deletes(self, task: FileScanTask, other: FileScanTask) -> bool:
        return deletes_identity(task, self._context) == deletes_identity(other, self._context)


def _touched(before: SnapshotView, diff: TableDiff) -> list[DataFile]:
    """CF-7: data files in both snapshots that a delete in only one of them may reach, judged by number, scope and
    bounds."""
    if not (diff.added_delete_files or diff.removed_delete_files):
        return []
    removed = set(map(entry_of, diff.removed_data_files))
    manifests = manifests_of_snapshot(before.io, before.snapshot)
    live = live_files(before.io, before.metadata, manifests, ManifestContent.DATA)
    stay = [data for data in live if isinstance(data, DataFile) and entry_of(data) not in removed]
    # Processed separately, because a data file has one deletion vector on each side.
    reached = reached_data_files(before.metadata, stay, diff.added_delete_files)
    known = set(map(entry_of, reached))
    others = [data for data in stay if entry_of(data) not in known] if diff.removed_delete_files else []
    return reached + reached_data_files(before.metadata, others, diff.removed_delete_files)


def entry_of(data: DataFile) -> tuple[str, int | None]:
    """The identity of a data file. If other writers committed a path twice, its entries differ in sequence number, so
    different deletes reach them (MT-64)."""
    return data.file_path, data.sequence_number


def constants_of(snapshot: Snapshot, change_type: ChangeType) -> dict[int, Any]:
    """CF-5: the columns of the feed by field id, in Iceberg's internal representation."""
    return {
        CHANGE_TYPE.field_id: change_type.value,
        COMMIT_VERSION.field_id: snapshot.sequence_number or 0,
        COMMIT_TIMESTAMP.field_id: snapshot.timestamp_ms * _MICROSECONDS,
        COMMIT_SNAPSHOT_ID.field_id: snapshot.snapshot_id,
    }


def filters_of(
    view: SnapshotView, snapshot: Snapshot, where: BooleanExpression | None
) -> Mapping[ChangeType, BooleanExpression]:
    """The residual filters for the deleted and the inserted rows of a snapshot. A kind of change that the filter rules
    out has no entry."""
    bound = bind_filter(AlwaysTrue() if where is None else where, view.schema)
    left = {each: _residual(bound, constants_of(snapshot, each)) for each in (ChangeType.DELETE, ChangeType.INSERT)}
    return {change_type: to_expression(each) for change_type, each in left.items() if each is not FALSE}


def _residual(bound: BoundFilter, constants: Mapping[int, Any]) -> BoundFilter:
    def decide_leaf(leaf: Comparison) -> BoundFilter:
        field_id = leaf.field.field_id
        return decide(leaf, partition_value_statistics(constants[field_id])) if field_id in constants else leaf

    return residual(bound, decide_leaf)
