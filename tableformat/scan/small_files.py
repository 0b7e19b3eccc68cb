"""Reads small files in batches (decision 16): each is opened once, and its rows and keys are read in one pass.

    prepare a batch   read the bytes and footers of its files                                               threads
    read a run        decode each file; resolve, project and filter the concatenated rows                   threads

A run has as many files of a batch as fit into `ROW_GROUP_RUN_BYTES` before compression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.expressions import BooleanExpression

from tableformat.deletes.positions import PositionSet
from tableformat.errors import CorruptFileError
from tableformat.filters.bound_filter import FALSE, TRUE, BoundFilter, bind_filter
from tableformat.filters.row_filter import filter_rows
from tableformat.merge_on_read.alive_rows import alive_rows
from tableformat.merge_on_read.small_files.batches import Batch
from tableformat.merge_on_read.small_files.joint_positions import JointResolver
from tableformat.merge_on_read.small_files.key_rows import KeyRows, joined, starts_of
from tableformat.merge_on_read.small_files.read_key_rows import key_rows_of
from tableformat.merge_on_read.task import FileScanTask, scan_of
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.parquet.bloom_filters.held_filters import HeldFilters
from tableformat.parquet.parquet_columns import LeafColumn
from tableformat.parquet.parquet_file import OpenedFile
from tableformat.parquet.projection import identity_constants, narrowed, with_filter_columns
from tableformat.scan.context import ReadContext
from tableformat.scan.file_shapes import FileShape, FileShapes
from tableformat.scan.measures import Step, StepCall
from tableformat.scan.row_groups import is_ruled_out
from tableformat.scan.row_lineage_columns import with_inherited_lineage

_KeyColumns: TypeAlias = tuple[Mapping[int, LeafColumn], Sequence[int], Sequence[int] | None]
"""The columns by which deletes find rows:

- where they are in the file, by field id, for the columns that the file has
- the Parquet columns to read, including the keys unless they are read separately
- the keys, if they have to be read separately
"""


@dataclass(frozen=True, slots=True, eq=False)
class SmallFile:
    """A file of a batch, in memory."""

    task: FileScanTask
    bound: BoundFilter
    file: OpenedFile
    constants: dict[int, Any]
    shape: FileShape
    deleted: PositionSet | None
    """None if the keys of its rows have to be checked."""


@dataclass(frozen=True, slots=True, eq=False)
class SmallFilesRun:
    """Files of a batch that are decoded together."""

    reader: SmallFileReader
    shapes: FileShapes
    files: tuple[SmallFile, ...]


class SmallFileReader:
    """Reads the batches of one scan. Thread-safe."""

    def __init__(
        self, tasks: Sequence[FileScanTask], context: ReadContext, run_bytes: int, fetchers: Executor | None = None
    ) -> None:
        """`tasks` are all tasks of the plan. `fetchers` read the files of a batch concurrently if each file is one
        request."""
        self._context = context
        self._resolver = JointResolver(tasks, context.merge)
        self._run_bytes = run_bytes
        self._fetchers = fetchers
        self._shapes_of_selected = FileShapes(context.selected, context.arrow_schema)
        self._known_key_columns: dict[tuple[FileShape, frozenset[int]], _KeyColumns] = {}

    def prepare(self, batch: Batch) -> list[SmallFilesRun]:
        """Read the files of the batch that may have a row to return."""
        bounds = self._bounds(batch)
        chosen = self._chosen(batch, bounds)
        shapes = self._shapes(list(bounds.values()))
        with self._context.measure(Step.OPEN) as done:
            read = map if self._fetchers is None else self._fetchers.map
            opened = read(self._context.merge.read_data_file, [task.data_file for task, _, _ in chosen])
            files = [
                self._small_file(shapes, task, bound, deleted, file)
                for (task, bound, deleted), file in zip(chosen, opened, strict=True)
            ]
            kept = [each for each in files if not _has_no_match(each, self._context.merge.caches.bloom_filters)]
            _told_of(kept, done)
            done.size_bytes += sum(each.task.data_file.file_size_bytes for each in files)
        return [SmallFilesRun(self, shapes, run) for run in _split(kept, self._run_bytes)]

    def read(self, run: SmallFilesRun, narrow: bool) -> pa.Table:
        """The live matching rows of the run, file by file."""
        starts = starts_of(each.file.row_count for each in run.files)
        with self._context.measure(Step.DECODE) as done:
            decoded = [self._decoded(each) for each in run.files]
            rows = _projected(run, [stored for stored, _ in decoded])
            if self._context.row_lineage and not self._context.has_stored_lineage:
                rows = self._with_lineage(rows, run.files)
            _told_of(run.files, done)
        deleted = self._deleted(run, [keys for _, keys in decoded if keys is not None])
        rows = self._matching(run, rows, joined(deleted, starts), starts)
        return narrowed(rows, self._context.arrow_schema) if narrow else rows

    def _chosen(
        self, batch: Batch, bounds: Mapping[int, BoundFilter]
    ) -> list[tuple[FileScanTask, BoundFilter, PositionSet | None]]:
        """The tasks that may have a row to return, with the filter and, if known already, the deleted rows."""
        chosen = []
        with self._context.measure(Step.FIND_DELETED) as done:
            for task in batch:
                bound, deleted = bounds[id(task.residual)], self._resolver.known(task)
                if deleted:
                    done.row_count += len(deleted)
                if task.has_deletes:
                    done.file_paths.add(task.data_file.file_path)
                if bound is not FALSE and (deleted is None or len(deleted) < task.data_file.record_count):
                    chosen.append((scan_of(task), bound, deleted))
        return chosen

    def _deleted(self, run: SmallFilesRun, keys: Sequence[KeyRows]) -> list[PositionSet]:
        """The deleted rows of each file. `keys` belong to the files whose deleted rows depend on them."""
        with self._context.measure(Step.FIND_DELETED) as done:
            resolved = self._resolver.resolve(keys)
            done.row_count += sum(map(len, resolved))
        found = iter(resolved)
        return [next(found) if each.deleted is None else each.deleted for each in run.files]

    def _bounds(self, batch: Batch) -> dict[int, BoundFilter]:
        """The bound filters, keyed by the identity of the tasks' expressions. Most tasks share one expression."""
        expressions: dict[int, BooleanExpression] = {id(task.residual): task.residual for task in batch}
        return {key: bind_filter(expression, self._context.schema) for key, expression in expressions.items()}

    def _shapes(self, bounds: Sequence[BoundFilter]) -> FileShapes:
        """Shapes with the columns of all filters of a batch, so that all of its files have the same columns."""
        wanted = self._context.selected
        for bound in bounds:
            wanted = with_filter_columns(wanted, self._context.schema, bound)
        if wanted is self._context.selected:
            return self._shapes_of_selected
        return FileShapes(wanted, arrow_schema(wanted))

    def _small_file(
        self, shapes: FileShapes, task: FileScanTask, bound: BoundFilter, deleted: PositionSet | None, file: OpenedFile
    ) -> SmallFile:
        constants = identity_constants(task.data_file, self._context.merge.specs[task.data_file.spec_id])
        return SmallFile(task, bound, file, constants, shapes.of(file, constants), deleted)

    def _decoded(self, small: SmallFile) -> tuple[pa.Table, KeyRows | None]:
        """Every row of the file, and its keys if deletes depend on them."""
        wanted = small.shape.projection.leaf_indices
        if small.deleted is not None:
            return small.file.read_whole(wanted), None
        field_ids = self._resolver.columns_of(small.task)
        leaves, indices, keys_apart = self._key_columns(small.shape, field_ids)
        stored = keys = small.file.read_whole(indices)
        if keys_apart is not None:
            keys = small.file.read_whole(keys_apart)
        return stored, key_rows_of(small.task, small.file, leaves, field_ids, keys, self._context.merge)

    def _key_columns(self, shape: FileShape, field_ids: frozenset[int]) -> _KeyColumns:
        known = self._known_key_columns.get((shape, field_ids))
        if known is None:
            known = self._known_key_columns[shape, field_ids] = _key_columns(shape, field_ids)
        return known

    def _with_lineage(self, rows: pa.Table, files: Sequence[SmallFile]) -> pa.Table:
        names = self._context.row_lineage
        starts = starts_of(each.file.row_count for each in files).tolist()
        return pa.concat_tables(
            with_inherited_lineage(rows.slice(start, each.file.row_count), names, each.task.data_file, 0)
            for start, each in zip(starts[:-1], files, strict=True)
        )

    def _matching(
        self, run: SmallFilesRun, rows: pa.Table, deleted: PositionSet, starts: NDArray[np.int64]
    ) -> pa.Table:
        """The live rows that pass the filter of their file."""
        found = []
        for bound, numbered in groupby(enumerate(run.files), key=lambda pair: pair[1].bound):
            numbers = [number for number, _ in numbered]
            start, end = int(starts[numbers[0]]), int(starts[numbers[-1] + 1])
            paths = [run.files[number].file.location for number in numbers]
            with self._context.measure(Step.DROP_DELETED) as done:
                alive = alive_rows(rows.slice(start, end - start), deleted, start)
                done.file_paths.update(paths)
                done.row_count += alive.num_rows
            with self._context.measure(Step.FILTER) as done:
                found.append(filter_rows(bound, alive))
                done.file_paths.update(paths)
                done.row_count += found[-1].num_rows
        # Filters differ only if they need columns, so the tables of several filters have columns.
        return found[0] if len(found) == 1 else pa.concat_tables(found)


def _has_no_match(small: SmallFile, held: HeldFilters) -> bool:
    """Whether statistics or Bloom filters exclude every row group. Excluding some of several groups is not worth the
    cost."""
    groups = (small.file.metadata.row_group(number) for number in range(small.file.row_group_count))
    return small.bound is not TRUE and all(
        is_ruled_out(small.bound, small.file, row_group, small.constants, held) for row_group in groups
    )


def _split(files: Sequence[SmallFile], run_bytes: int) -> Iterator[tuple[SmallFile, ...]]:
    """Split the files into runs of adjacent files with about `run_bytes` before compression."""
    sizes = [
        sum(small.file.metadata.row_group(number).total_byte_size for number in range(small.file.row_group_count))
        for small in files
    ]
    bytes_before = np.cumsum([0, *sizes[:-1]])
    for _, numbered in groupby(enumerate(files), key=lambda pair: bytes_before[pair[0]] // run_bytes):
        yield tuple(small for _, small in numbered)


def _key_columns(shape: FileShape, field_ids: frozenset[int]) -> _KeyColumns:
    wanted = shape.projection.leaf_indices
    leaves = {field_id: shape.leaves[field_id] for field_id in field_ids if field_id in shape.leaves}
    key_indices = {leaf.index for leaf in leaves.values()}
    if any(_are_apart(leaf, wanted) for leaf in leaves.values()):
        return leaves, wanted, sorted(key_indices)
    return leaves, sorted(key_indices.union(wanted)), None


def _are_apart(leaf: LeafColumn, wanted: Sequence[int]) -> bool:
    """Whether reading a key column together with the others would change them: the key is a field of a struct, and the
    struct may be selected without this field."""
    return len(leaf.path) > 1 and leaf.index not in wanted


def _projected(run: SmallFilesRun, stored: Sequence[pa.Table]) -> pa.Table:
    """The rows of all files, deleted or not, with the columns of the scan and its filters."""
    tables = []
    numbered = zip(run.files, stored, strict=True)
    for shape, members in groupby(numbered, key=lambda pair: pair[0].shape):
        files, rows = zip(*members, strict=True)
        row_count = sum(small.file.row_count for small in files)
        names = shape.projection.stored_names
        together = pa.concat_tables([each.select(names) for each in rows]).combine_chunks()
        try:
            tables.append(shape.projection.apply(together, row_count))
        except CorruptFileError:
            # The rows of one file do not fit. Projecting each file alone raises an error that names it.
            for small, alone in zip(files, rows, strict=True):
                run.shapes.projection_of(small.file, small.constants).apply(alone, small.file.row_count)
            raise
    if len(tables) == 1:
        return tables[0]
    if not tables[0].num_columns:
        # A concatenated table without columns loses its length.
        return pa.table({"": pa.nulls(sum(table.num_rows for table in tables))}).select([])
    return pa.concat_tables(tables)


def _told_of(files: Sequence[SmallFile], done: StepCall) -> None:
    """Record files that a step worked on, with all of their rows."""
    done.file_paths.update(each.file.location for each in files)
    done.row_count += sum(each.file.row_count for each in files)
