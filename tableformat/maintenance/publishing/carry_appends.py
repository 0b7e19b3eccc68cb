"""Copies appends made on the target to the source branch, with their sequence numbers (MT-31).

    target   P ---------- m1 (row r, number 3)
    branch     b1 (delete r, number 2 or 4)

On the branch the row has sequence number 3: a delete with number 4 deletes it, one with number 2 does not, as if both
branches had been one. The row must be carried before the delete is converted, because a converted delete no longer
reaches new rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation, Snapshot

from tableformat.commit.change import TableChange
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.publish_target import CARRIED_UNTIL, publish_target_of
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError
from tableformat.maintenance.publishing.carried_drops import CarriedDrops
from tableformat.maintenance.publishing.lost_deletes import refuse_rows_that_deletes_missed
from tableformat.maintenance.publishing.publish_scope import (
    TargetState,
    asserting_target,
    tag_publish_bases,
    target_state,
)
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB

_ATTEMPTS: Final = 10

TargetRule: TypeAlias = Callable[[SnapshotView, str, SnapshotView, Snapshot], UpdatesAndRequirements]
"""Returns the updates and requirements for the publish target when a branch is converted. Called with the planned
snapshot, the branch, the head and our snapshot."""


@dataclass(frozen=True, slots=True)
class CarriedFiles:
    """The data files that were added to a branch."""

    data_file_count: int = 0
    record_count: int = 0


class _TargetMovedError(Exception):
    """The target has newer appends than the commit would record as carried."""


def carry_appends(iceberg: IcebergTable, branch: str) -> CarriedFiles:
    """MT-31: add to the branch the data files that its publish target got since the last carry. Moves the handle to the
    result.

    Commits nothing without such files or without a target. Raises PublishRefusedError if the target has changes that
    cannot be carried (MT-32), or that arrive too late.
    """
    if publish_target_of(iceberg.metadata, branch) is None:
        return CarriedFiles()
    tag_publish_bases(iceberg)
    for _ in range(_ATTEMPTS):
        planned = target_state(iceberg.metadata, iceberg.io, branch)
        if planned is None or not planned.appended:
            return CarriedFiles()
        try:
            return _carry(iceberg, branch, planned)
        except _TargetMovedError:
            move_to_newest(iceberg)
    raise CommitConflictError(
        f"the files of {publish_target_of(iceberg.metadata, branch)!r} were not carried to {branch!r}, because of "
        f"concurrent commits in {_ATTEMPTS} attempts. Run the operation again."
    )


class _CarriedAppends(PlannedChange):
    """The appends to the target since the last publish, as long as its head is the planned one."""

    def __init__(self, branch: str, planned: TargetState, drops: CarriedDrops) -> None:
        self._branch = branch
        self._drops = drops
        self._planned = planned
        self._state = planned

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The carried files of the last attempt."""
        return self._state.appended

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        now = target_state(head.metadata, head.io, self._branch)
        if now is None or now.head.snapshot_id != self._planned.head.snapshot_id:
            raise _TargetMovedError
        self._state = now
        refuse_rows_that_deletes_missed(head, self._branch, now.appended)
        deletes = self._drops.deletes(head, now.appended)
        return TableChange(
            operation=Operation.OVERWRITE if deletes else Operation.APPEND,
            added_data_files=tuple(map(_as_added, now.appended)),
            added_delete_files=deletes,
        )

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        del head, snapshot
        return (self._state.carried(self._state.head.snapshot_id),), (self._state.unmoved(),)


def _carry(iceberg: IcebergTable, branch: str, planned: TargetState) -> CarriedFiles:
    drops = CarriedDrops(iceberg, branch)
    carried = _CarriedAppends(branch, planned, drops)
    status = CommitStatus()
    with removing_on_failure(status, drops.discard):
        outcome = commit_change(
            iceberg,
            carried,
            ref=branch,
            snapshot_properties={JOB: "publish", CARRIED_UNTIL: str(planned.head.snapshot_id)},
            status=status,
        )
    outcome.move(iceberg)
    return CarriedFiles(len(carried.files), sum(file.record_count for file in carried.files))


def _as_added(file: DataFile) -> DataFile:
    """DA-9: the data sequence number stays; the commit assigns the sequence number at which the branch got the file."""
    return replace(file, file_sequence_number=None)


def keeping_target(
    planned: SnapshotView, branch: str, base: SnapshotView, snapshot: Snapshot
) -> UpdatesAndRequirements:
    """MT-31: a conversion sees every file that the branch will ever get with an older sequence number, or does not
    commit."""
    del planned, snapshot
    return asserting_target(all_carried(base, branch))


def all_carried(base: SnapshotView, branch: str) -> TargetState | None:
    """The target of a branch that has all files of the target; None without a target. Raises CommitConflictError if the
    branch lacks a file."""
    state = target_state(base.metadata, base.io, branch)
    if state is not None and state.appended:
        raise CommitConflictError(
            f"{len(state.appended)} data files were added to {state.name!r}, the publish target of {branch!r}, and "
            "must be carried over first. Nothing was changed. Run the operation again."
        )
    return state
