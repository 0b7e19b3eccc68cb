"""Statistics of a snapshot's data files, from which compaction chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

from pyiceberg.expressions import BooleanExpression

from tableformat.commit.change import is_keyed
from tableformat.commit.table_diff import live_files
from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.keys.encoding import AFTER_MARKER
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.table_key import key_field_ids
from tableformat.merge_on_read.delete_index import PositionDeleteIndex, named_data_file
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.merge_on_read.newer_deletes import NewerDeletes
from tableformat.merge_on_read.small_files.joint_positions import deleted_positions_of
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.named_twice import paths_named_twice
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.context import merge_context
from tableformat.scan.planner import file_filter, plan_scan
from tableformat.storage.side_by_side import reader_count

_EVERYWHERE = KeyBounds(b"", AFTER_MARKER)
_COUNTED_AT_ONCE: Final = 4096
"""The number of data files whose deleted positions are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One data file with its deletes and its range of the key space."""

    task: FileScanTask
    row_deletes: tuple[DeleteFile, ...]
    """Position delete files and deletion vectors that name only this file."""
    bounds: KeyBounds
    deleted_row_count: int
    is_exact: bool
    """Whether the deleted rows were counted. If not, the number is an upper bound below the threshold."""

    @property
    def data_file(self) -> DataFile:
        return self.task.data_file

    @property
    def size_bytes(self) -> int:
        return self.task.data_file.file_size_bytes

    @property
    def delete_ratio(self) -> float:
        return self.deleted_row_count / max(self.data_file.record_count, 1)

    @property
    def alive_bytes(self) -> int:
        """Expected size without the deleted rows."""
        return round(self.size_bytes * (1 - self.delete_ratio))

    @property
    def is_empty(self) -> bool:
        """Whether certainly no row is left."""
        return self.is_exact and self.deleted_row_count >= self.data_file.record_count

    @property
    def pending_delete_count(self) -> int:
        """The number of delete files and lists of deleted ranges that every read of the file applies."""
        return len(self.task.delete_files) + len(self.task.range_deletes)


def file_statistics(
    view: SnapshotView,
    where: BooleanExpression | None,
    only_paths: frozenset[str] | None,
    delete_ratio_threshold: float,
) -> list[FileStatistics]:
    """The data files that may hold a row that matches `where`, limited to `only_paths` if given.

    The filter only chooses files: all deletes of a chosen file are kept, even deletes that cannot match a selected row.
    Files that are in the snapshot more than once are left out (MT-64).
    """
    may_match: Callable[[DataFile], bool] = (lambda _data: True) if where is None else file_filter(view, where)

    context = merge_context(view)
    plan = plan_scan(view, context=context)
    named_twice = paths_named_twice((*(task.data_file for task in plan.tasks), *plan.covered))

    def is_chosen(data: DataFile) -> bool:
        is_asked_for = only_paths is None or data.file_path in only_paths
        return is_asked_for and data.file_path not in named_twice and may_match(data)

    own, index = _row_deletes(view)
    key = _key(view)

    def statistics_of(task: FileScanTask, deleted: tuple[int, bool]) -> FileStatistics:
        data = task.data_file
        bounds = _EVERYWHERE if key is None else key_bounds(data, key)
        return FileStatistics(task, own.get(data.file_path, ()), bounds, *deleted)

    covered = [
        FileScanTask(
            data_file=data, position_deletes=index.position_deletes_of(data), deletion_vector=index.vector_of(data)
        )
        for data in plan.covered
        if is_chosen(data)
    ]
    key_ids = frozenset() if key is None else frozenset(key.field_ids)
    chosen = [task for task in plan.tasks if is_chosen(task.data_file)]
    bounds = [_deleted_rows_bound(task, key_ids) for task in chosen]
    is_counted = [
        bound > 0 and bound >= delete_ratio_threshold * task.data_file.record_count
        for task, bound in zip(chosen, bounds, strict=True)
    ]
    counted = _deleted_row_counts(list(compress(chosen, is_counted)), context)
    return [
        *(statistics_of(task, (task.data_file.record_count, True)) for task in covered),
        *(
            statistics_of(task, (next(counted), True) if is_known else (bound, bound == 0))
            for task, bound, is_known in zip(chosen, bounds, is_counted, strict=True)
        ),
    ]


def _key(view: SnapshotView) -> KeyColumns | None:
    field_ids = key_field_ids(view.schema, view.metadata.properties)
    return KeyColumns.of(view.schema, field_ids) if field_ids else None


def _row_deletes(view: SnapshotView) -> tuple[dict[str, tuple[DeleteFile, ...]], PositionDeleteIndex]:
    """The row deletes that name only one data file, by that file, and the index of all row deletes."""
    deletes = [
        delete
        for delete in live_files(view.io, view.metadata, manifests_of(view), ManifestContent.DELETES)
        if isinstance(delete, DeleteFile) and not is_keyed(delete)
    ]
    own: dict[str, tuple[DeleteFile, ...]] = {}
    for delete in deletes:
        path = named_data_file(delete)
        if path is not None:
            own[path] = (*own.get(path, ()), delete)
    return own, PositionDeleteIndex(deletes)


def _deleted_row_counts(tasks: Sequence[FileScanTask], context: MergeContext) -> Iterator[int]:
    """The number of deleted rows of each file. Several files are counted together."""
    threads = reader_count(context.metadata.location)
    for start in range(0, len(tasks), _COUNTED_AT_ONCE):
        found = deleted_positions_of(tasks[start : start + _COUNTED_AT_ONCE], context, thread_count=threads)
        yield from map(len, found)


def _deleted_rows_bound(task: FileScanTask, key_field_ids: frozenset[int]) -> int:
    """MT-40: an upper bound of the number of deleted rows, from the record counts of the delete files.

    The rows are counted, which may read delete columns, only if this bound reaches the threshold. A key in an equality
    delete is assumed to be in one row.
    """
    row_count = task.data_file.record_count
    bound = sum(delete.record_count for delete in task.position_deletes)
    if task.deletion_vector is not None:
        bound += task.deletion_vector.record_count
    equality = task.equality_deletes
    if isinstance(equality, NewerDeletes) and key_field_ids and key_field_ids <= set(equality.shared.field_ids):
        bound += equality.record_count
    else:
        for delete in equality:
            is_by_key = key_field_ids and key_field_ids <= set(delete.equality_ids or ())
            bound += delete.record_count if is_by_key else row_count
    return row_count if task.range_deletes or task.range_delete_files else bound
