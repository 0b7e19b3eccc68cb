"""Rows of several data files that equality deletes match. The keys of all delete files are combined once.

With N small upserts, the first file has N - 1 newer delete files, the second N - 2, and so on. Combined, they are one
list of keys, each with the newest number that deletes it. A row is deleted if that number is newer than the row's file
(DA-2). This is correct for the tasks of one plan: if a task does not name a newer delete in scope, the bounds of the
delete excluded it, so none of its keys is in the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number
from tableformat.merge_on_read.delete_columns import delete_column_types
from tableformat.merge_on_read.delete_index import EVERYWHERE, Scope, scope_of
from tableformat.merge_on_read.deleted_positions import MergeContext, equality_ids, shared_keys
from tableformat.merge_on_read.newer_deletes import NewerDeletes, SharedDeletes
from tableformat.merge_on_read.small_files.key_rows import KeyRows, end_to_end, starts_of
from tableformat.merge_on_read.span_positions import positions_in_file
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.partition_identity import partition_of

_Group = tuple[Scope, tuple[int, ...]]
"""A scope, and the delete columns in ascending order of their ids."""


class PlannedEquality:
    """The equality deletes of all tasks of one plan. Thread-safe; reads nothing until rows are requested."""

    def __init__(self, tasks: Iterable[FileScanTask], context: MergeContext) -> None:
        self._context = context
        deletes: dict[int, DeleteFile] = {}
        shared: dict[int, SharedDeletes] = {}
        for task in tasks:
            if isinstance(task.equality_deletes, NewerDeletes):
                shared[id(task.equality_deletes.shared)] = task.equality_deletes.shared
            else:
                deletes.update(zip(map(id, task.equality_deletes), task.equality_deletes, strict=True))
        for each in shared.values():
            deletes.update(zip(map(id, each.deletes), each.deletes, strict=True))
        self._groups: dict[Scope, dict[tuple[int, ...], list[DeleteFile]]] = defaultdict(lambda: defaultdict(list))
        for delete in deletes.values():
            scope, field_ids = _group_of(delete, context)
            self._groups[scope][field_ids].append(delete)
        self._shared = {_group_of(each.deletes[0], context): each for each in shared.values()}

    def columns_of(self, task: FileScanTask) -> set[int]:
        """The field ids by which equality deletes may match rows of the task's file."""
        return {field_id for _, field_ids in self._groups_of(task) for field_id in field_ids}

    def positions(self, files: Sequence[KeyRows]) -> PositionSet:
        """DA-2, DA-3, DA-4: the rows that a newer key of their scope deletes, numbered over all concatenated files."""
        alike: dict[tuple[_Group, tuple[pa.DataType, ...]], list[int]] = defaultdict(list)
        for number, file in enumerate(files):
            for group in self._groups_of(file.task):
                alike[group, file.stored_types(group[1])].append(number)
        starts = starts_of(file.row_count for file in files)
        found = []
        for (group, _), numbers in alike.items():
            members = [files[number] for number in numbers]
            ages = [committed_sequence_number(file.task.data_file) for file in members]
            rows = self._keys(group).deleted_rows_of_files(
                end_to_end(members, group[1]), np.repeat(ages, [file.row_count for file in members])
            )
            runs = PositionSet.from_array(rows)
            in_all = positions_in_file(starts, np.array(numbers), runs.starts, runs.ends)
            found.append(PositionSet.from_runs(*in_all))
        return PositionSet.union_of(found)

    def _groups_of(self, task: FileScanTask) -> list[_Group]:
        if not task.equality_deletes:
            return []
        scopes = (EVERYWHERE, partition_of(task.data_file))
        return [(scope, field_ids) for scope in scopes for field_ids in self._groups.get(scope, ())]

    def _keys(self, group: _Group) -> EqualityKeys:
        scope, field_ids = group
        deletes = self._groups[scope][field_ids]
        shared = self._shared.get(group)
        if shared is not None and len(shared.deletes) == len(deletes):
            return shared_keys(shared, self._context)
        types = delete_column_types(self._context.fields, field_ids, deletes[0].file_path)
        return self._context.loader.equality_keys(deletes, types)


def _group_of(delete: DeleteFile, context: MergeContext) -> _Group:
    return scope_of(delete, context.specs), tuple(sorted(set(equality_ids(delete))))
