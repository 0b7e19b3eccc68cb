"""Moves a branch that every engine reads to the converted state of the branch that writers commit to (decision 10).

    target   P -- m1                  carry     m1's files are added to the branch, with their sequence numbers
    branch     b1 -- b2               convert   no equality or range delete is left on the branch
                                      move      both branches to the converted snapshot, in one commit

A writer that commits to the branch faster than a round takes wins every time. The target then gets a separate snapshot
(`publishing/publish_beside.py`). In all cases, the target never shows a snapshot with deletes that other engines cannot
read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPropertiesUpdate, SetSnapshotRefUpdate, TableRequirement, TableUpdate

from tableformat.commit.change import is_keyed
from tableformat.commit.metadata_commit import assert_ref, commit_metadata, refresh
from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.commit.publish_target import publish_target_of
from tableformat.commit.table_diff import lineage
from tableformat.errors import CommitConflictError, InvalidArgumentError, PublishRefusedError
from tableformat.maintenance.conversion.convert_deletes import ConvertResult, convert_deletes
from tableformat.maintenance.publishing.carry_appends import CarriedFiles, all_carried, carry_appends
from tableformat.maintenance.publishing.publish_beside import ConvertedSnapshot, pin_planned, publish_beside, unpin
from tableformat.maintenance.publishing.publish_scope import TargetState, target_state
from tableformat.maintenance.running.executors import LOCAL, Executor
from tableformat.maintenance.running.head_jobs import head_state
from tableformat.maintenance.running.progress import Progress
from tableformat.markup.results import HtmlResult
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import PUBLISH_TARGET_PREFIX

_ROUNDS: Final = 10
"""How many times concurrent commits on either branch are carried and converted. Each round has less to do."""
_ROUNDS_TOGETHER: Final = 3
"""After this number of rounds, the target no longer waits for a round without writes to the branch (LK-16)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult(HtmlResult):
    """The result of a publish. With `dry_run`: the expected result."""

    source: str
    target: str
    snapshot_id: int | None
    """The new snapshot of the target, and of the branch, unless its writers committed first in every round (LK-16)."""
    previous_snapshot_id: int | None
    """The previous snapshot of the target."""
    carried_data_files_count: int = 0
    """Data files that others had appended to the target."""
    carried_records_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_range_delete_files_count: int = 0
    converted_rows_count: int = 0
    """Rows that the converted deletes deleted."""
    rounds: int = 1
    duration_seconds: float = 0.0
    dry_run: bool = False


class _NotReadyError(Exception):
    """A concurrent commit has to be carried or converted first."""


def publish(
    iceberg: IcebergTable,
    source: str,
    target: str = MAIN_BRANCH,
    *,
    executor: Executor = LOCAL,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> PublishResult:
    """MT-33, LK-16: carry, convert, and move both branches or the target alone. The handle moves to the result.

    The target is recorded in the table property `tableformat.publish-target.<source>` (MT-30). Raises
    PublishRefusedError if the target has changes that cannot be carried, or the property was removed in the meantime;
    CommitConflictError if writers of both branches kept committing first. After an error, the target is unchanged.
    """
    started = time.perf_counter()
    refresh(iceberg)
    _check_branches(iceberg.metadata, source, target)
    state = target_state(iceberg.metadata, iceberg.io, source, target)
    assert state is not None, "a target was given"
    result = PublishResult(
        source=source,
        target=target,
        snapshot_id=state.head.snapshot_id,
        previous_snapshot_id=state.head.snapshot_id,
    )
    if dry_run:
        carried = CarriedFiles(len(state.appended), sum(file.record_count for file in state.appended))
        result = _plus(result, carried, convert_deletes(iceberg, source, dry_run=True, progress=progress))
        return replace(result, dry_run=True, duration_seconds=time.perf_counter() - started)
    _remember_target(iceberg, source, target)
    plans: list[ConvertedSnapshot] = []
    for rounds in range(1, _ROUNDS + 1):
        result = replace(result, rounds=rounds)
        try:
            carried = carry_appends(iceberg, source)
            converted = convert_deletes(
                iceberg,
                source,
                executor=executor,
                progress=progress,
                target_rule=_moving_target,
                tell_converted=lambda view, change: plans.append(ConvertedSnapshot(view, change)),
            )
            result = _plus(result, carried, converted)
            if iceberg.metadata.refs[target].snapshot_id != converted.snapshot_id:
                _move(iceberg, source, target, plans[-1], is_alone=rounds > _ROUNDS_TOGETHER)
        except (_NotReadyError, CommitConflictError):
            continue
        snapshot_id = iceberg.metadata.refs[target].snapshot_id
        return replace(result, snapshot_id=snapshot_id, duration_seconds=time.perf_counter() - started)
    raise CommitConflictError(
        f"{source!r} was not published to {target!r}, because of commits to both branches in {_ROUNDS} attempts. "
        f"{target!r} did not move. Conversions so far were committed. Publish again."
    )


def _check_branches(metadata: TableMetadata, source: str, target: str) -> None:
    if source == target:
        raise InvalidArgumentError(f"branch {source!r} cannot be published to itself.")
    known = publish_target_of(metadata, source)
    if known is not None and known != target:
        raise InvalidArgumentError(
            f"branch {source!r} is published to {known!r}, not to {target!r}, according to the table property "
            f"{PUBLISH_TARGET_PREFIX}{source}."
        )
    back = publish_target_of(metadata, target)
    if back is not None:
        raise InvalidArgumentError(f"branch {target!r} is itself published to {back!r}: use {back!r} as the target.")


def _remember_target(iceberg: IcebergTable, source: str, target: str) -> None:
    """MT-30: from now on the target accepts only appends."""

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        if publish_target_of(table.metadata, source) == target:
            return (), ()
        return (SetPropertiesUpdate(updates={f"{PUBLISH_TARGET_PREFIX}{source}": target}),), ()

    commit_metadata(iceberg, prepare)


def _still_named(state: TargetState | None, source: str) -> TargetState:
    """MT-30: the property may be removed during a publish."""
    if state is None:
        raise PublishRefusedError(
            f"branch {source!r} was not published: the table property {PUBLISH_TARGET_PREFIX}{source} was removed "
            "concurrently. The target did not move. Conversions so far were committed."
        )
    return state


def _moving_target(
    planned: SnapshotView, source: str, base: SnapshotView, snapshot: Snapshot
) -> UpdatesAndRequirements:
    """MT-33: the conversion's commit also moves the target if no commit reached the branch after the plan.

    If one did, there may be deletes that the conversion has not seen, and the target waits for another round.
    """
    planned_id = planned.snapshot.snapshot_id if planned.snapshot is not None else None
    state = _still_named(all_carried(base, source), source)
    base_id = base.snapshot.snapshot_id if base.snapshot is not None else None
    if base_id == planned_id:
        return _moved(base.metadata, state, snapshot.snapshot_id), (state.unmoved(),)
    return (pin_planned(planned, source),), (state.unmoved(),)


def _move(iceberg: IcebergTable, source: str, target: str, converted: ConvertedSnapshot, *, is_alone: bool) -> None:
    """Move the target to the head of the branch. If that fails and `is_alone`, move it to the planned and converted
    snapshot."""
    try:
        _move_both(iceberg, source)
    except _NotReadyError:
        if not is_alone:
            raise
        if converted.change.is_empty:
            _move_target(iceberg, source, converted)
        else:
            publish_beside(iceberg, source, target, converted)


def _move_both(iceberg: IcebergTable, source: str) -> None:
    """MT-33: move the target to the head of the branch, if the conversion has not done so."""

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        state = head_state(head_view(table.metadata, table.io, source), source)
        target = _still_named(state.target, source)
        assert state.view.snapshot is not None, "a published branch has a snapshot"
        head_id = state.view.snapshot.snapshot_id
        if target.appended or any(map(is_keyed, state.delete_files)):
            raise _NotReadyError
        if target.head.snapshot_id == head_id:
            return (), ()
        return _moved(table.metadata, target, head_id), (assert_ref(source, head_id), target.unmoved())

    commit_metadata(iceberg, prepare)


def _move_target(iceberg: IcebergTable, source: str, converted: ConvertedSnapshot) -> None:
    """LK-16: move the target to a snapshot of the branch that has no keyed delete, unlike the later ones."""
    planned_id = converted.snapshot.snapshot_id

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        source_head = head_view(table.metadata, table.io, source).snapshot
        state = _still_named(all_carried(head_view(table.metadata, table.io, source), source), source)
        planned_head = converted.view.metadata.refs[state.name].snapshot_id
        if state.head.snapshot_id != planned_head or lineage(table.metadata, source_head, planned_id) is None:
            raise _NotReadyError
        return _moved(table.metadata, state, planned_id), (state.unmoved(),)

    commit_metadata(iceberg, prepare)


def _moved(metadata: TableMetadata, state: TargetState, snapshot_id: int) -> tuple[TableUpdate, ...]:
    """The updates that move the target with its retention settings unchanged, and the tag that records the carried
    state."""
    ref = metadata.refs[state.name].model_copy(update={"snapshot_id": snapshot_id})
    moved = SetSnapshotRefUpdate.model_validate({"ref-name": state.name, **ref.model_dump(by_alias=True)})
    return moved, state.carried(snapshot_id), *unpin(metadata, state.branch)


def _plus(result: PublishResult, carried: CarriedFiles, converted: ConvertResult) -> PublishResult:
    return replace(
        result,
        carried_data_files_count=result.carried_data_files_count + carried.data_file_count,
        carried_records_count=result.carried_records_count + carried.record_count,
        removed_equality_delete_files_count=result.removed_equality_delete_files_count
        + converted.removed_equality_delete_files_count,
        removed_range_delete_files_count=result.removed_range_delete_files_count
        + converted.removed_range_delete_files_count,
        converted_rows_count=result.converted_rows_count + converted.deleted_row_count,
    )
