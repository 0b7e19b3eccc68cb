"""Rewrites position delete files into one for each data file, on v3 tables into its deletion vector (MT-18).

    deletes #4, #6 of data file a     one file of a, with the positions of both
    delete #5 of data files a, b      one file of a, one of b; the old file is removed once neither needs it

Position deletes reach data files up to their own age (DA-1). New files with the sequence number of the commit therefore
delete the same rows of the data files that they name. No data file is opened.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind, FileKey, TableChange, file_key
from tableformat.commit.metadata_commit import refresh
from tableformat.deletes.positions import PositionSet
from tableformat.errors import InvalidArgumentError
from tableformat.filters.predicate import Where, parse_where
from tableformat.maintenance.delete_files.dead_deletes import dead_deletes
from tableformat.maintenance.running.head_jobs import HeadState, commit_deletes_on_head, head_state
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.markup.results import HtmlResult
from tableformat.merge_on_read.delete_index import PositionDeleteIndex, named_data_file
from tableformat.merge_on_read.deleted_positions import deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.named_twice import paths_named_twice
from tableformat.metadata.snapshot_choice import head_view
from tableformat.scan.planner import plan_scan
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.deletion_vectors import write_deletion_vectors
from tableformat.write.delete_files.position_deletes import write_position_deletes

MIN_INPUT_FILES_DEFAULT: Final = 2
_ROW_DELETES: Final = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePositionDeleteFilesResult(HtmlResult):
    """The result of a rewrite of position deletes. With `dry_run`: the expected result."""

    snapshot_id: int | None
    """The snapshot of the rewrite. If there was nothing to do, or with `dry_run`: the head of the branch."""
    rewritten_delete_files_count: int = 0
    """Position delete files and vectors that were removed, including files that no longer matched a row."""
    added_delete_files_count: int = 0
    """New position delete files or deletion vectors."""
    rewritten_bytes: int = 0
    """Size of the removed files."""
    added_bytes: int = 0
    """Size of the new files; 0 with `dry_run`."""
    duration_seconds: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """The plan for one head."""

    positions: dict[DataFile, PositionSet]
    """All positions that position deletes name, for each data file that gets a new file."""
    removed: tuple[DeleteFile, ...]


def rewrite_position_deletes(
    iceberg: IcebergTable,
    branch: str,
    *,
    where: Where | None = None,
    only_paths: frozenset[str] | None = None,
    min_input_files: int = MIN_INPUT_FILES_DEFAULT,
    rewrite_all: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RewritePositionDeleteFilesResult:
    """Rewrite the position deletes of the branch's head, and move the handle to the result.

    The plan is made on the head on which it is committed. `only_paths` are the locations of the data files whose
    deletes may be rewritten; None: all files that `where` selects. Raises InvalidArgumentError if `min_input_files` is
    below 1.
    """
    if isinstance(min_input_files, bool) or not isinstance(min_input_files, int) or min_input_files < 1:
        raise InvalidArgumentError(f"min_input_files must be a whole number above 0, not {min_input_files!r}.")
    started = time.perf_counter()
    refresh(iceberg)
    rewrite = _Rewrite({}, ())
    written: list[DeleteFile] = []
    least_files = 1 if rewrite_all else min_input_files
    tell = progress or silent

    def plan(state: HeadState) -> TableChange:
        nonlocal rewrite
        rewrite = _rewrite(state, _chosen_paths(state, where, only_paths), least_files, tell)
        context = WriteContext.of(state.view.metadata, state.view.io)
        write = write_deletion_vectors if context.format_version >= 3 else write_position_deletes
        added = write(context, rewrite.positions)
        written.extend(added)
        return _change(state, rewrite, added)

    if dry_run:
        state = head_state(head_view(iceberg.metadata, iceberg.io, branch), branch)
        rewrite = _rewrite(state, _chosen_paths(state, where, only_paths), least_files, tell)
        snapshot_id = state.view.snapshot.snapshot_id if state.view.snapshot else None
    else:
        snapshot_id = commit_deletes_on_head(iceberg, branch, plan, written, job="rewrite_position_delete_files")
    return RewritePositionDeleteFilesResult(
        snapshot_id=snapshot_id,
        rewritten_delete_files_count=len(rewrite.removed),
        added_delete_files_count=len(rewrite.positions),
        rewritten_bytes=_bytes(rewrite.removed),
        added_bytes=_bytes(written),
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )


def _rewrite(state: HeadState, chosen: frozenset[str], least_files: int, tell: Progress) -> _Rewrite:
    row_deletes = [each for each in state.delete_files if each.kind in _ROW_DELETES]
    folded, staying = _folded(state, PositionDeleteIndex(row_deletes), chosen, least_files)
    positions: dict[DataFile, PositionSet] = {}
    tell(0, len(folded), "data files")
    for data, deletes in folded.items():
        positions[data] = deleted_positions(FileScanTask(data_file=data, position_deletes=deletes), state.context)
        tell(len(positions), len(folded), "data files")
    replaced = {file_key(each): each for deletes in folded.values() for each in deletes}
    left = [each for each in row_deletes if file_key(each) not in replaced.keys() - staying]
    dead = [each.delete for each in dead_deletes(state.view, state.files_in_reach, left, state.context)]
    removed = [each for key, each in replaced.items() if key not in staying]
    return _Rewrite({data: found for data, found in positions.items() if found}, (*removed, *dead))


def _folded(
    state: HeadState, index: PositionDeleteIndex, chosen: frozenset[str], least_files: int
) -> tuple[dict[DataFile, tuple[DeleteFile, ...]], set[FileKey]]:
    """MT-18: the data files that get a new file, each with the position deletes that are merged into it, and the shared
    position delete files that stay. A shared file stays if it may name a data file that gets no new file.

    On v3 tables the new vector includes all of its position deletes (DA-7). On other tables, shared files that stay
    remain in effect.
    """
    applying = {data: index.position_deletes_of(data) for data in state.files_in_reach}
    staying = {
        file_key(each)
        for data, deletes in applying.items()
        if data.file_path not in chosen
        for each in deletes
        if named_data_file(each) is None
    }
    has_vectors = state.view.metadata.format_version >= 3
    folded: dict[DataFile, tuple[DeleteFile, ...]] = {}
    for data, deletes in applying.items():
        leaving = tuple(each for each in deletes if has_vectors or file_key(each) not in staying)
        is_shared = any(named_data_file(each) is None for each in leaving)
        is_worth_it = has_vectors or is_shared or len(leaving) >= least_files
        if data.file_path in chosen and leaving and is_worth_it:
            folded[data] = leaving
    return folded, staying


def _chosen_paths(state: HeadState, where: Where | None, only_paths: frozenset[str] | None) -> frozenset[str]:
    """The live data files that may hold a matching row. Files that are in the snapshot more than once are left out,
    because a position delete with the number of the commit would reach all their entries (MT-64)."""
    chosen: Iterable[DataFile] = state.data_files
    if where is not None:
        plan = plan_scan(state.view, parse_where(where, state.view.schema), context=state.context)
        chosen = (*(task.data_file for task in plan.tasks), *plan.covered)
    paths = frozenset(data.file_path for data in chosen) - paths_named_twice(state.data_files)
    return paths if only_paths is None else paths & only_paths


def _change(state: HeadState, rewrite: _Rewrite, added: Sequence[DeleteFile]) -> TableChange:
    snapshot = state.view.snapshot
    return TableChange(
        operation=Operation.REPLACE,
        kind=ChangeKind.DELETE_REWRITE,
        added_delete_files=tuple(added),
        removed_delete_files=rewrite.removed,
        planned_snapshot_id=snapshot.snapshot_id if snapshot else None,
        planned_sequence_number=state.view.sequence_number,
    )


def _bytes(deletes: Sequence[DeleteFile]) -> int:
    """Vectors share files, so each file is counted once."""
    return sum({delete.file_path: delete.file_size_bytes for delete in deletes}.values())
