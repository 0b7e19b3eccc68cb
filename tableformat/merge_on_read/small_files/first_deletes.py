"""The rows of data files that deletes of several commits reach, by the first commit that reached them.

    adjacent small files     concatenated key columns of a batch                                 threads
    a large file             key columns of the row groups that statistics leave                 threads

Each file is read once, for any number of commits that deleted rows of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tableformat.deletes.positions import PositionSet, expanded
from tableformat.deletes.rules import committed_sequence_number
from tableformat.merge_on_read.delete_index import PositionDeleteIndex
from tableformat.merge_on_read.deleted_positions import MergeContext, missing_values
from tableformat.merge_on_read.small_files.batches import Batch, batched
from tableformat.merge_on_read.small_files.delete_groups import DeleteGroup, delete_groups
from tableformat.merge_on_read.small_files.key_rows import end_to_end, starts_of
from tableformat.merge_on_read.small_files.read_key_rows import read_key_rows_of_files
from tableformat.merge_on_read.span_positions import batches
from tableformat.merge_on_read.task import FileScanTask, RowTask, scan_of
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.parquet.key_reader import KeyReader

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """Rows of a data file that deletes reach."""

    positions: Rows
    """Ascending."""
    numbers: Rows
    """For each the smallest sequence number of a delete that reaches it."""

    @staticmethod
    def of(found: Sequence[_Found]) -> Reached:
        """The rows that several groups of deletes reach. A row may be in more than one."""
        positions, numbers = (np.concatenate([np.empty(0, np.int64), *column]) for column in zip(*found, strict=True))
        order = np.lexsort((numbers, positions))
        positions, numbers = positions[order], numbers[order]
        is_first = np.append(True, positions[1:] != positions[:-1]) if len(positions) else np.empty(0, np.bool_)
        return Reached(positions[is_first], numbers[is_first])


_Found: TypeAlias = tuple[Rows, Rows]
"""Ascending positions, with a number for each."""
_NOTHING: Final[_Found] = (np.empty(0, np.int64), np.empty(0, np.int64))
_FOUND_BYTES_MAX: Final = 256 * 1024 * 1024
_POSITIONAL: Final = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)


def first_deletes(
    data_files: Sequence[DataFile], deletes: Sequence[DeleteFile], context: MergeContext, *, thread_count: int
) -> list[Reached] | None:
    """For each data file the rows that `deletes` reach. Reads the deletes and key columns. None if they or the rows are
    too many to hold, or if a delete is older than its commit (`delete_groups`)."""
    groups = delete_groups([delete for delete in deletes if delete.kind not in _POSITIONAL], context)
    if groups is None:
        return None
    positions = PositionDeleteIndex(delete for delete in deletes if delete.kind in _POSITIONAL)
    finder = _Finder(groups, context)
    portions = list(batched(FileScanTask(data_file=data) for data in data_files))
    by_value: list[list[_Found]] = []
    size_bytes = 0
    with ThreadPoolExecutor(max(1, min(thread_count, len(portions)))) as pool:
        for of_portion in pool.map(finder.of_portion, portions):
            by_value += of_portion
            size_bytes += sum(rows.nbytes + numbers.nbytes for found in of_portion for rows, numbers in found)
            if size_bytes > _FOUND_BYTES_MAX:
                pool.shutdown(cancel_futures=True)
                return None
    return [
        Reached.of([_NOTHING, *found, *_by_position(data, positions, context)])
        for data, found in zip(data_files, by_value, strict=True)
    ]


class _Finder:
    """Looks up rows of data files in groups of deletes. Thread-safe."""

    def __init__(self, groups: Sequence[DeleteGroup], context: MergeContext) -> None:
        self._groups = groups
        self._context = context

    def of_portion(self, portion: RowTask | Batch) -> list[list[_Found]]:
        if isinstance(portion, tuple):
            return self._of_small_files(portion)
        return [self._of_large_file(portion.data_file)]

    def _groups_of(self, data: DataFile) -> list[DeleteGroup]:
        return [group for group in self._groups if group.reaches(data)]

    def _of_small_files(self, batch: Batch) -> list[list[_Found]]:
        found: list[list[_Found]] = [[] for _ in batch]
        alike: dict[tuple[int, tuple[pa.DataType, ...]], list[int]] = defaultdict(list)
        groups_of = [self._groups_of(task.data_file) for task in batch]
        asked = [index for index, groups in enumerate(groups_of) if groups]
        wanted = [
            (scan_of(batch[index]), {field_id for group in groups_of[index] for field_id in group.field_ids})
            for index in asked
        ]
        files = dict(zip(asked, read_key_rows_of_files(wanted, self._context), strict=True))
        for index in asked:
            for group in groups_of[index]:
                alike[self._groups.index(group), files[index].stored_types(group.field_ids)].append(index)
        for (place, _), indexes in alike.items():
            group, members = self._groups[place], [files[index] for index in indexes]
            starts = starts_of(file.row_count for file in members)
            begins = [group.begin(committed_sequence_number(file.task.data_file)) for file in members]
            rows, numbers = group.first(end_to_end(members, group.field_ids), np.repeat(begins, np.diff(starts)))
            of_file = np.searchsorted(starts, rows, side="right") - 1
            bounds = np.searchsorted(of_file, np.arange(len(members) + 1)).tolist()
            for index, start, (begin, end) in zip(indexes, starts.tolist(), pairwise(bounds), strict=False):
                found[index].append((rows[begin:end] - start, numbers[begin:end]))
        return found

    def _of_large_file(self, data: DataFile) -> list[_Found]:
        groups = self._groups_of(data)
        if not groups:
            return []
        found: list[_Found] = []
        with self._context.open_data_file(data) as file:
            reader = KeyReader(file, missing_values(data, self._context))
            starts = file.row_group_starts
            for group in groups:
                begin = group.begin(committed_sequence_number(data))
                for row_groups in batches(group.row_groups(reader), starts):
                    positions = expanded(starts[row_groups], starts[row_groups + 1])
                    columns = reader.columns(group.field_ids, row_groups.tolist())
                    rows, numbers = group.first(columns, np.full(len(positions), begin))
                    found.append((positions[rows], numbers))
        return found


def _by_position(data: DataFile, deletes: PositionDeleteIndex, context: MergeContext) -> Iterator[_Found]:
    """DA-1, DA-7: the rows that position deletes and deletion vectors name."""
    vector = deletes.vector_of(data)
    if vector is not None:
        yield _of_one(vector, context.loader.vector(vector))
    for delete in deletes.position_deletes_of(data):
        yield _of_one(delete, context.loader.positions(delete, data.file_path))


def _of_one(delete: DeleteFile, positions: PositionSet) -> _Found:
    return positions.to_array(), np.full(len(positions), committed_sequence_number(delete))
