"""Deleted positions of many small data files: each is opened once, and the keys of a batch are matched in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Final

from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.deleted_positions import (
    MergeContext,
    deleted_positions,
    deletes_identity,
    row_positions,
)
from tableformat.merge_on_read.newer_deletes import NewerDeletes
from tableformat.merge_on_read.small_files.batches import Batch, batched
from tableformat.merge_on_read.small_files.joint_equality import PlannedEquality
from tableformat.merge_on_read.small_files.joint_spans import columns_of_deletes, joint_span_positions
from tableformat.merge_on_read.small_files.key_rows import KeyRows, parted, starts_of
from tableformat.merge_on_read.small_files.read_key_rows import read_key_rows_of_files
from tableformat.merge_on_read.task import FileScanTask, NarrowedTask, RowTask, scan_of

_IDENTIFIED_DELETES: Final = 64
"""The number of delete files of one task up to which its positions are cached for the next scan. With more, comparing
the identities takes as long as finding the rows again."""


class JointResolver:
    """Finds the deleted rows of the small files of one plan. Thread-safe."""

    def __init__(self, tasks: Sequence[RowTask], context: MergeContext) -> None:
        """`tasks` are all tasks of the plan, whose equality deletes are loaded together."""
        self._context = context
        self._equality = PlannedEquality((task for task in tasks if isinstance(task, FileScanTask)), context)

    def known(self, task: RowTask) -> PositionSet | None:
        """The positions to leave out if the file's rows are not needed to find them, otherwise None."""
        if isinstance(task, NarrowedTask) or not (task.equality_deletes or task.range_deletes):
            return deleted_positions(task, self._context)
        if not _is_identified(task):
            return None
        return self._context.caches.positions.held(deletes_identity(task, self._context))

    def columns_of(self, task: FileScanTask) -> frozenset[int]:
        """The field ids of the columns that decide which rows of the file are deleted."""
        by_spans = (columns_of_deletes(spans) for spans in task.range_deletes if len(spans))
        return frozenset(self._equality.columns_of(task).union(*by_spans))

    def resolve(self, files: Sequence[KeyRows]) -> list[PositionSet]:
        """The deleted positions of each file for which `known` returned None."""
        starts = starts_of(file.row_count for file in files)
        by_value = joint_span_positions(files).union(self._equality.positions(files))
        found = []
        for file, of_values in zip(files, parted(by_value, starts), strict=True):
            task, positions = file.task, of_values
            if task.position_deletes or task.deletion_vector is not None:
                positions = of_values.union(row_positions(task, self._context.loader))
            found.append(positions)
            if _is_identified(task):
                self._context.caches.positions.hold(deletes_identity(task, self._context), positions)
        return found


def deleted_positions_of(
    tasks: Sequence[RowTask], context: MergeContext, *, thread_count: int = 1
) -> list[PositionSet]:
    """The result of `deleted_positions` for each task; all tasks belong to one plan.

    The delete columns of a small file are read at once. Other files are read as by `deleted_positions`.
    """
    resolver = JointResolver(tasks, context)
    portions = list(batched(tasks))

    def of_portion(portion: RowTask | Batch) -> list[PositionSet]:
        if isinstance(portion, tuple):
            return _positions_of_batch(portion, resolver, context)
        return [deleted_positions(portion, context)]

    if thread_count == 1 or len(portions) <= 1:
        return list(chain.from_iterable(map(of_portion, portions)))
    with ThreadPoolExecutor(min(thread_count, len(portions))) as pool:
        return list(chain.from_iterable(pool.map(of_portion, portions)))


def _positions_of_batch(batch: Batch, resolver: JointResolver, context: MergeContext) -> list[PositionSet]:
    known = [resolver.known(task) for task in batch]
    open_tasks = [scan_of(task) for task, positions in zip(batch, known, strict=True) if positions is None]
    keys = read_key_rows_of_files([(task, resolver.columns_of(task)) for task in open_tasks], context)
    found = iter(resolver.resolve(keys))
    return [next(found) if positions is None else positions for positions in known]


def _is_identified(task: FileScanTask) -> bool:
    listed = 0 if isinstance(task.equality_deletes, NewerDeletes) else len(task.equality_deletes)
    return listed + len(task.position_deletes) <= _IDENTIFIED_DELETES
