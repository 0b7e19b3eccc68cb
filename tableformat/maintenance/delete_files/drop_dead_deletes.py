"""Removes delete files that no longer match a row from the head of a branch (MT-10).

Older snapshots keep their own manifests, and with them their deletes. A delete may therefore be removed from the head
as soon as no live data file of the head can match it, regardless of the retained snapshots.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.metadata_commit import refresh
from tableformat.maintenance.delete_files.dead_deletes import DeadDelete, dead_deletes
from tableformat.maintenance.running.head_jobs import HeadState, commit_on_head, head_state
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DeleteKind
from tableformat.metadata.snapshot_choice import head_view


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDeadDeletesResult(HtmlResult):
    """The dropped delete files. With `dry_run`: the files that would be dropped."""

    snapshot_id: int | None
    """The snapshot without the dead deletes. If there were none, or with `dry_run`: the head of the branch."""
    removed_position_delete_files_count: int = 0
    removed_deletion_vectors_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_range_delete_files_count: int = 0
    removed_bytes: int = 0
    """Size of the files that were removed from the head. The space is freed when older snapshots expire."""
    proofs: tuple[tuple[str, str], ...] = ()
    """The location of each removed file, and the reason why it matches no row."""
    duration_seconds: float = 0.0
    dry_run: bool = False


def drop_dead_deletes(
    iceberg: IcebergTable, branch: str, *, dry_run: bool = False, progress: Progress | None = None
) -> DropDeadDeletesResult:
    """Drop every delete file of the branch's head that no live data file can match, and move the handle to the result.

    Opens range delete files and position delete files that name several data files, but no data file. The plan is made
    on the head on which it is committed, so concurrent commits cannot invalidate a proof.
    """
    started = time.perf_counter()
    refresh(iceberg)
    found: tuple[DeadDelete, ...] = ()
    tell = progress or silent

    def plan(state: HeadState) -> TableChange:
        nonlocal found
        total = len(state.delete_files)
        tell(0, total, "delete files")
        found = dead_deletes(state.view, state.files_in_reach, state.delete_files, state.context)
        tell(total, total, "delete files")
        return _change(state, found)

    if dry_run:
        state = head_state(head_view(iceberg.metadata, iceberg.io, branch), branch)
        plan(state)
        snapshot_id = state.view.snapshot.snapshot_id if state.view.snapshot else None
    else:
        snapshot_id = commit_on_head(iceberg, branch, plan, job="drop_dead_deletes").snapshot_id
    return _describe(snapshot_id, found, started, dry_run=dry_run)


def _change(state: HeadState, dead: Sequence[DeadDelete]) -> TableChange:
    snapshot = state.view.snapshot
    return TableChange(
        operation=Operation.REPLACE,
        kind=ChangeKind.CONVERSION,
        removed_delete_files=tuple(each.delete for each in dead),
        planned_snapshot_id=snapshot.snapshot_id if snapshot else None,
        planned_sequence_number=state.view.sequence_number,
        resolved_data_files=frozenset(file.file_path for file in state.data_files),
    )


def _describe(
    snapshot_id: int | None, dead: Sequence[DeadDelete], started: float, *, dry_run: bool
) -> DropDeadDeletesResult:
    kinds = Counter(each.delete.kind for each in dead)
    return DropDeadDeletesResult(
        snapshot_id=snapshot_id,
        removed_position_delete_files_count=kinds[DeleteKind.POSITION],
        removed_deletion_vectors_count=kinds[DeleteKind.DELETION_VECTOR],
        removed_equality_delete_files_count=kinds[DeleteKind.EQUALITY],
        removed_range_delete_files_count=kinds[DeleteKind.RANGE],
        removed_bytes=sum({each.delete.file_path: each.delete.file_size_bytes for each in dead}.values()),
        proofs=tuple((each.delete.file_path, each.proof) for each in dead),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )
