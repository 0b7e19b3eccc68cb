"""Equality and range deletes into position deletes, or into deletion vectors on v3 tables (D13).

    plan        which keyed deletes meet which data files; a file covered whole needs no look
    resolve     rows of the others, reading only their delete columns
    commit      row deletes in, keyed deletes and files without rows out, if every older data file was resolved
    (CP-11)

The job reads one snapshot. What others commit meanwhile is not converted; the conflict rules prove that nothing is
lost by that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.by_format_version import ChangeByFormatVersion
from tableformat.commit.change import ChangeKind, TableChange, file_key, file_keys, is_keyed
from tableformat.commit.snapshot_summary import ROWS_UNCHANGED
from tableformat.commit.transaction import Accompany, commit_change
from tableformat.deletes.positions import PositionSet
from tableformat.errors import CommitConflictError, CommitStateUnknownError
from tableformat.maintenance.carry_appends import AccompanyPlanned, carry_appends, keeping_target
from tableformat.maintenance.dead_deletes import DeadDelete, dead_deletes
from tableformat.maintenance.progress import Progress
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifest_entry import ManifestContent
from tableformat.metadata.manifest_list import manifests_of
from tableformat.metadata.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import resolve_context
from tableformat.scan.delete_index import PositionDeleteIndex
from tableformat.scan.planner import plan_scan
from tableformat.scan.resolve import ResolveContext, resolve
from tableformat.scan.task import FileScanTask
from tableformat.write.context import WriteContext
from tableformat.write.row_deletes import RowsToDelete, own_row_deletes, write_row_deletes

_ATTEMPTS: Final = 5
"""Times that the job starts again from the newest snapshot when a commit of others made its plan out of date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertResult:
    """What a conversion did, or with `dry_run` would do."""

    snapshot_id: int | None
    """The snapshot of the conversion; the head found when there was nothing to convert or with `dry_run`."""
    added_position_delete_file_count: int = 0
    """Version 2: one for each data file that has deleted and live rows."""
    added_deletion_vector_count: int = 0
    """Version 3: the same."""
    removed_position_delete_file_count: int = 0
    """Files that named rows of one data file only and are contained in what that data file got, or it left."""
    removed_deletion_vector_count: int = 0
    """Vectors replaced by a new one of their data file, or gone with it."""
    removed_equality_delete_file_count: int = 0
    removed_range_delete_file_count: int = 0
    removed_data_file_count: int = 0
    """Data files without a live row left; nothing was rewritten for them."""
    deleted_row_count: int = 0
    """Rows that the converted deletes deleted and no position delete named before."""
    resolved_data_file_count: int = 0
    """Data files that keyed deletes could meet and whose delete columns were therefore looked at."""
    clean_data_file_count: int = 0
    """Data files that bounds cleared: not opened."""
    rewritten_bytes: int = 0
    """Bytes of new files with row deletes. Data files are never rewritten."""
    proofs: tuple[tuple[str, str], ...] = ()
    """For each delete file that left, other than those that a new file of the same data file contains, its location and
    why it matches nothing any more (MT-10)."""
    duration_seconds: float = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _ResolvedFile:
    """A data file that keyed deletes meet, and all of its deleted rows."""

    task: FileScanTask
    deleted: PositionSet
    deleted_before: int
    """Rows that position deletes or a vector named already."""


@dataclass(frozen=True, slots=True)
class _Conversion:
    """What a conversion of one snapshot consists of."""

    view: SnapshotView
    data_files: tuple[DataFile, ...]
    keyed_deletes: tuple[DeleteFile, ...]
    resolved: tuple[_ResolvedFile, ...]
    dead: tuple[DeadDelete, ...] = ()
    """Deletes of all kinds that match nothing, without a look at any row."""

    @property
    def is_empty(self) -> bool:
        return not (self.keyed_deletes or self.dead)

    def emptied(self) -> list[_ResolvedFile]:
        return [file for file in self.resolved if len(file.deleted) == file.task.data_file.record_count]

    def reduced(self) -> list[_ResolvedFile]:
        return [
            file for file in self.resolved if file.deleted_before < len(file.deleted) < file.task.data_file.record_count
        ]


def convert_deletes(
    iceberg: IcebergTable,
    branch: str,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
    accompany: AccompanyPlanned = keeping_target,
) -> ConvertResult:
    """Convert every equality and range delete of the branch's newest snapshot, and move the handle to the result.

    Deletes of any kind that match nothing leave in the same commit. A branch with a publish target is first given what
    the target got (MT-31); `accompany` is asked, with the planned snapshot and the branch, what else the commit does.
    Raises CommitConflictError when other commits kept making the plan out of date, PublishRefusedError when the target
    has changes that cannot be carried.
    """
    started = time.perf_counter()
    for attempt in range(1, _ATTEMPTS + 1):
        iceberg.refresh()
        if not dry_run:
            carry_appends(iceberg, branch)
        conversion = _resolve_all(head_view(iceberg.metadata, iceberg.io, branch), progress)
        result = _describe(conversion, dry_run=dry_run)
        if dry_run or conversion.is_empty:
            return replace(result, duration_seconds=time.perf_counter() - started)
        try:
            result = _commit(iceberg, branch, conversion, result, accompany(conversion.view, branch))
        except CommitConflictError:
            if attempt == _ATTEMPTS:
                raise
            continue
        return replace(result, duration_seconds=time.perf_counter() - started)
    raise AssertionError("the last attempt returns or raises")


def _resolve_all(view: SnapshotView, progress: Progress | None) -> _Conversion:
    deletes = tuple(_live_deletes(view))
    keyed = tuple(delete for delete in deletes if is_keyed(delete))
    if not deletes:
        return _Conversion(view, (), (), ())
    context = resolve_context(view)
    plan = plan_scan(view, context=context)
    met = [task for task in plan.tasks if task.equality_deletes or task.range_deletes or task.range_delete_files]
    row_deletes = PositionDeleteIndex(delete for delete in deletes if not is_keyed(delete))
    covered = [_covered(data, row_deletes, context) for data in plan.covered]
    resolved = [*covered, *_resolved(met, context, progress)]
    data_files = (*(task.data_file for task in plan.tasks), *plan.covered)
    return _with_dead_deletes(_Conversion(view, data_files, keyed, tuple(resolved)), deletes, context)


def _with_dead_deletes(
    conversion: _Conversion, deletes: tuple[DeleteFile, ...], context: ResolveContext
) -> _Conversion:
    """MT-10: deletes that match nothing once the emptied data files are gone, less those that leave anyway."""
    gone = {file.task.data_file.file_path for file in conversion.emptied()}
    staying = [data for data in conversion.data_files if data.file_path not in gone]
    replaced = file_keys(_replaced_deletes((*conversion.reduced(), *conversion.emptied())))
    candidates = [delete for delete in deletes if file_key(delete) not in replaced]
    return replace(conversion, dead=dead_deletes(conversion.view, staying, candidates, context))


def _resolved(tasks: list[FileScanTask], context: ResolveContext, progress: Progress | None) -> Iterator[_ResolvedFile]:
    def one(task: FileScanTask) -> _ResolvedFile:
        by_position = replace(task, equality_deletes=(), range_deletes=(), range_delete_files=())
        return _ResolvedFile(task, resolve(task, context), len(resolve(by_position, context)))

    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        for done, file in enumerate(pool.map(one, tasks), 1):
            if progress is not None:
                progress(done, len(tasks), "data files")
            yield file
    finally:
        pool.shutdown(cancel_futures=True)


def _covered(data: DataFile, row_deletes: PositionDeleteIndex, context: ResolveContext) -> _ResolvedFile:
    """A file that range deletes cover whole: known without a look at its rows; only earlier row deletes are
    counted."""
    task = FileScanTask(
        data_file=data,
        position_deletes=row_deletes.position_deletes_of(data),
        deletion_vector=row_deletes.vector_of(data),
    )
    return _ResolvedFile(
        task, PositionSet.from_runs(np.array([0]), np.array([data.record_count])), len(resolve(task, context))
    )


def _live_deletes(view: SnapshotView) -> Iterator[DeleteFile]:
    for manifest in manifests_of(view):
        if manifest.content is ManifestContent.DELETES:
            for entry in live_entries(read_manifest(view.io, manifest, view.metadata)):
                assert isinstance(entry.file, DeleteFile)
                yield entry.file


def _replaced_deletes(files: Iterable[_ResolvedFile]) -> tuple[DeleteFile, ...]:
    """The row deletes of these data files alone: the new ones name their rows too, or the data files leave."""
    return tuple(delete for file in files for delete in own_row_deletes(file.task))


def _describe(conversion: _Conversion, *, dry_run: bool) -> ConvertResult:
    snapshot = conversion.view.snapshot
    kinds = [delete.kind for delete in conversion.keyed_deletes]
    replaced = [delete.kind for delete in _replaced_deletes((*conversion.reduced(), *conversion.emptied()))]
    replaced += [each.delete.kind for each in conversion.dead if not is_keyed(each.delete)]
    has_vectors = conversion.view.metadata.format_version >= 3
    return ConvertResult(
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        added_position_delete_file_count=0 if has_vectors else len(conversion.reduced()),
        added_deletion_vector_count=len(conversion.reduced()) if has_vectors else 0,
        removed_position_delete_file_count=replaced.count(DeleteKind.POSITION),
        removed_deletion_vector_count=replaced.count(DeleteKind.DELETION_VECTOR),
        removed_equality_delete_file_count=kinds.count(DeleteKind.EQUALITY),
        removed_range_delete_file_count=kinds.count(DeleteKind.RANGE),
        removed_data_file_count=len(conversion.emptied()),
        deleted_row_count=sum(len(file.deleted) - file.deleted_before for file in conversion.resolved),
        resolved_data_file_count=len(conversion.resolved),
        clean_data_file_count=len(conversion.data_files) - len(conversion.resolved),
        proofs=_proofs(conversion),
        dry_run=dry_run,
    )


def _proofs(conversion: _Conversion) -> tuple[tuple[str, str], ...]:
    dead = {file_key(each.delete): (each.delete.file_path, each.proof) for each in conversion.dead}
    searched = (
        (delete.file_path, "every older data file that its bounds meet was searched for its rows")
        for delete in conversion.keyed_deletes
        if file_key(delete) not in dead
    )
    return (*dead.values(), *searched)


def _commit(
    iceberg: IcebergTable, branch: str, conversion: _Conversion, result: ConvertResult, accompany: Accompany
) -> ConvertResult:
    io = conversion.view.io
    change = ChangeByFormatVersion(lambda format_version: _change(conversion, format_version))
    try:
        outcome = commit_change(
            iceberg, change, ref=branch, accompany=accompany, snapshot_properties={ROWS_UNCHANGED: "true"}
        )
    except CommitStateUnknownError:
        raise
    except BaseException:
        change.discard(io)
        raise
    iceberg.metadata = outcome.table.metadata
    iceberg.metadata_location = outcome.table.metadata_location
    committed = change.committed(outcome, io)
    added = committed.added_delete_files if committed is not None else ()
    kinds = [delete.kind for delete in added]
    return replace(
        result,
        snapshot_id=outcome.snapshot_id,
        added_position_delete_file_count=kinds.count(DeleteKind.POSITION),
        added_deletion_vector_count=kinds.count(DeleteKind.DELETION_VECTOR),
        # Vectors share files, so a file counts once.
        rewritten_bytes=sum({delete.file_path: delete.file_size_bytes for delete in added}.values()),
    )


def _change(conversion: _Conversion, format_version: int) -> TableChange:
    """The conversion for a table of that format version; writes its row deletes."""
    view = conversion.view
    context = replace(WriteContext.of(view.metadata, view.io), format_version=format_version)
    rows = [RowsToDelete(file.task, file.deleted) for file in conversion.reduced()]
    row_deletes = write_row_deletes(context, rows, resolve_context(view), fold=True)
    return TableChange(
        operation=Operation.OVERWRITE,
        kind=ChangeKind.CONVERSION,
        added_delete_files=row_deletes.added,
        removed_data_files=tuple(file.task.data_file for file in conversion.emptied()),
        removed_delete_files=(
            *conversion.keyed_deletes,
            *row_deletes.replaced,
            *_replaced_deletes(conversion.emptied()),
            *(each.delete for each in conversion.dead if not is_keyed(each.delete)),
        ),
        planned_snapshot_id=view.snapshot.snapshot_id if view.snapshot else None,
        planned_sequence_number=view.sequence_number,
        resolved_data_files=frozenset(data.file_path for data in conversion.data_files),
    )
