"""An index of delete files: finds the deletes that apply to a data file, by all application rules.

`deletes/rules.py` compares sequence numbers and partitions. The index arranges delete files so that a data file is
compared only with those that can matter: position deletes by the path that they name, equality and range deletes by
scope and column list.

In version 2, other writers create position delete files that name many data files each. By their bounds of the path,
nearly every data file could be named by nearly every one of them. If there are many, they are read during planning
(decision 46).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.types import IcebergType, NestedField

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID
from tableformat.deletes.rules import (
    committed_sequence_number,
    is_global,
    keyed_delete_is_new_enough,
    position_delete_is_new_enough,
    shares_partition,
)
from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.merge_on_read.key_overlap import KeyOverlap, have_odd_bounds
from tableformat.merge_on_read.newer_deletes import NewerDeletes, SharedDeletes
from tableformat.metadata.columns.data_columns import DataColumns
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.partition_identity import partition_identity, partition_of

Partition = tuple[int, tuple[Any, ...]]
"""Spec id and partition values."""
EVERYWHERE: Final = None
"""The scope of a delete file that applies to every partition."""
Scope = Partition | None
_NO_DELETES: Final[tuple[DeleteFile, ...]] = ()
SHARED_FROM: Final = 16
"""The number of equality deletes in one scope from which a shared list is used for data files that overlap most of
them."""
_COMPARED_AT_ONCE: Final = 1 << 24
"""The number of pairs of delete and data files that are compared with arrays of one byte for each pair."""
_GIVEN_BY_BOUNDS_MAX: Final = 10_000
"""The number of pairs of data files and multi-file position deletes up to which delete files are not read for
planning."""
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
"""Ascending indexes in a group of delete files."""


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Types of fields that deletes can name, including dropped columns."""

    by_id: dict[int, IcebergType]

    @staticmethod
    def of_fields(fields: Mapping[int, NestedField]) -> ColumnTypes:
        """The types of all fields in the history of a table (`field_history`)."""
        return ColumnTypes({field_id: field.field_type for field_id, field in fields.items()})

    def of(self, field_ids: Iterable[int]) -> list[tuple[int, IcebergType]]:
        """The field ids with known types, and the types."""
        return [(field_id, self.by_id[field_id]) for field_id in field_ids if field_id in self.by_id]


class PositionDeleteIndex:
    """Position delete files and deletion vectors by the data files that they name."""

    def __init__(self, deletes: Iterable[DeleteFile]) -> None:
        self._vectors: dict[str, DeleteFile] = {}
        self._by_path: dict[str, list[DeleteFile]] = defaultdict(list)
        by_partition: dict[Partition, list[DeleteFile]] = defaultdict(list)
        for delete in deletes:
            if delete.kind is DeleteKind.DELETION_VECTOR:
                self._add_vector(delete)
            elif (path := named_data_file(delete)) is not None:
                self._by_path[path].append(delete)
            else:
                by_partition[partition_of(delete)].append(delete)
        self._by_partition = {partition: _NamingSeveral(members) for partition, members in by_partition.items()}

    def look_inside(self, files: Sequence[DataColumns], loader: DeleteLoader) -> None:
        """DA-10: read delete files that name several data files, so that each of `files` gets only those that name it.

        They are read only if by their bounds of the path most of them would be assigned to many files. All of them
        would be read in any case.
        """
        for partition, deletes in self._by_partition.items():
            here = [part.batch["file_path"].filter(pa.array(in_scope(part, partition))) for part in files]
            if len(deletes) * sum(map(len, here)) > _GIVEN_BY_BOUNDS_MAX:
                deletes.look_inside([path for part in here for path in part.to_pylist()], loader)

    def vector_of(self, data: DataFile) -> DeleteFile | None:
        """DA-7: the deletion vector of the data file."""
        vector = self._vectors.get(data.file_path)
        return vector if vector is not None and _position_delete_applies(vector, data) else None

    def position_deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """DA-1, DA-7: position delete files that may name rows of the data file; none if a deletion vector replaces
        them."""
        if self.vector_of(data) is not None:
            return _NO_DELETES
        found = [delete for delete in self._by_path.get(data.file_path, ()) if _position_delete_applies(delete, data)]
        here = self._by_partition.get(partition_of(data))
        return tuple(found) if here is None else (*found, *here.candidates(data))

    def may_reach(self, files: DataColumns) -> Flags:
        """DA-1, DA-7: the data files that are named, and those of partitions whose deletes may name any file."""
        named = pa.array([*self._vectors, *self._by_path], pa.string())
        reached: Flags = np.array(pc.is_in(files.batch["file_path"], value_set=named))
        for partition, deletes in self._by_partition.items():
            reached |= in_scope(files, partition) & deletes.may_name(files)
        return reached

    def _add_vector(self, vector: DeleteFile) -> None:
        path = vector.referenced_data_file
        if path is None:
            raise CorruptFileError(vector.file_path, "a deletion vector does not name its data file.")
        if path in self._vectors:
            raise CorruptFileError(
                vector.file_path, f"{path} has a second deletion vector, in {self._vectors[path].file_path}."
            )
        self._vectors[path] = vector


class _NamingSeveral:
    """Position delete files of one partition that may name rows of several data files, as other writers create them."""

    def __init__(self, deletes: Sequence[DeleteFile]) -> None:
        self._deletes = deletes
        self._numbers = np.array([committed_sequence_number(delete) for delete in deletes], np.int64)
        bounds = [_path_bounds(delete) for delete in deletes]
        self._distinct = distinct = sorted({path for pair in bounds for path in pair if path is not None})
        ranks = {path: rank for rank, path in enumerate(distinct)}
        self._lower = np.array([-1 if lower is None else ranks[lower] for lower, _ in bounds], np.int64)
        self._upper = np.array([len(distinct) if upper is None else ranks[upper] for _, upper in bounds], np.int64)
        self._naming: dict[str, Places] | None = None
        """By path, the delete files that name it and are not too large to read for that; None before they were read."""
        self._unread: Places = np.arange(len(deletes))
        """The delete files that are too large."""

    def __len__(self) -> int:
        return len(self._deletes)

    def look_inside(self, paths: Sequence[str], loader: DeleteLoader) -> None:
        """DA-10: reads which of the delete files name which of the data files."""
        named = loader.named_among(self._deletes, {path: number for number, path in enumerate(paths)})
        self._unread = np.array([place for place, found in enumerate(named) if found is None], np.int64)
        of_file = np.concatenate([np.empty(0, np.int64), *(found for found in named if found is not None)])
        places = np.repeat(np.arange(len(named)), [0 if found is None else len(found) for found in named])
        order = np.argsort(of_file, kind="stable")
        bounds = np.searchsorted(of_file[order], np.arange(len(paths) + 1)).tolist()
        self._naming = {
            path: places[order[begin:end]]
            for path, (begin, end) in zip(paths, pairwise(bounds), strict=True)
            if begin < end
        }

    def may_name(self, files: DataColumns) -> Flags:
        """The data files that may be named, among those given to `look_inside`; before that call, all."""
        if self._naming is None or len(self._unread):
            return np.ones(len(files), np.bool_)
        return np.array(pc.is_in(files.batch["file_path"], value_set=pa.array([*self._naming], pa.string())))

    def candidates(self, data: DataFile) -> Iterator[DeleteFile]:
        """DA-1: the delete files of the data file's partition that are not older, whose bounds of the path contain its
        path, and that name it if they were read."""
        path, places = data.file_path, self._unread
        if self._naming is not None and path in self._naming:
            places = np.sort(np.concatenate([places, self._naming[path]]))
        is_named = (self._lower[places] < bisect_right(self._distinct, path)) & (
            self._upper[places] >= bisect_left(self._distinct, path)
        )
        is_new_enough = position_delete_is_new_enough(self._numbers[places], committed_sequence_number(data))
        return map(self._deletes.__getitem__, places[is_named & is_new_enough].tolist())


class KeyDeleteIndex:
    """Equality delete files by scope and list of delete columns, and range delete files that are not loaded for
    planning."""

    def __init__(
        self, deletes: Iterable[DeleteFile], specs: dict[int, PartitionSpec], column_types: ColumnTypes
    ) -> None:
        self._groups: dict[Scope, list[_KeyDeletes]] = defaultdict(list)
        for (scope, field_ids), members in by_scope_and_columns(deletes, specs).items():
            self._groups[scope].append(_KeyDeletes(members, column_types.of(field_ids)))

    def deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """DA-2, DA-3, RD-2, RD-3: newer delete files in scope that may hold one of the file's keys, oldest first."""
        return tuple(delete for group, places in self._met(data) for delete in group.at(places))

    def shared_deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...] | NewerDeletes:
        """The same. If most of many newer ones overlap the file's bounds, all newer ones in one shared list."""
        return _shared_or_listed(self._met(data), data)

    def shared_deletes_of_all(
        self, files: DataColumns, data_files: Sequence[DataFile]
    ) -> dict[int, tuple[DeleteFile, ...] | NewerDeletes]:
        """`shared_deletes_of` for each data file with deletes, by its index. Files with equal deletes share one
        object."""
        met_by: dict[int, list[tuple[_KeyDeletes, bytes]]] = defaultdict(list)
        is_odd = np.zeros(len(files), np.bool_)
        for scope in sorted(self._groups, key=lambda scope: scope is not EVERYWHERE):
            is_here = in_scope(files, scope)
            for group in self._groups[scope]:
                rows = np.flatnonzero(is_here & keyed_delete_is_new_enough(group.newest, files.sequence_numbers))
                if group.count > len(rows):
                    is_odd[rows] = True  # Each by itself, as there are fewer of them than of delete files.
                    continue
                chosen = files if len(rows) == len(files) else files.take(rows)
                is_odd[rows] |= group.are_odd(chosen)
                for begin in range(0, len(rows), max(_COMPARED_AT_ONCE // group.count, 1)):
                    part = chosen.slice(begin, max(_COMPARED_AT_ONCE // group.count, 1))
                    for index, places in group.places_in_bits(part):
                        met_by[int(rows[begin + index])].append((group, places))
        for index in np.flatnonzero(is_odd).tolist():
            met_by.pop(index, None)
        made: dict[object, tuple[DeleteFile, ...] | NewerDeletes] = {}
        found = {}
        for index, met in met_by.items():
            number = committed_sequence_number(data_files[index])
            identity = (number, *((id(group), places) for group, places in met))
            if identity not in made:
                made[identity] = _shared_or_listed(
                    [(group, group.places_of(bits)) for group, bits in met], data_files[index]
                )
            found[index] = made[identity]
        for index in np.flatnonzero(is_odd).tolist():
            if deletes := self.shared_deletes_of(data_files[index]):
                found[index] = deletes
        return found

    def _met(self, data: DataFile) -> list[tuple[_KeyDeletes, Places]]:
        """The groups that may reach the file, with the positions of their deletes."""
        found = []
        for scope in (EVERYWHERE, partition_of(data)):
            for group in self._groups.get(scope, ()):
                places = group.candidates(data)
                if len(places):
                    found.append((group, places))
        return found


class _KeyDeletes:
    """Equality or range delete files of one scope and one list of delete columns, oldest first."""

    def __init__(self, deletes: Sequence[DeleteFile], columns: Sequence[tuple[int, IcebergType]]) -> None:
        self.shared = SharedDeletes(deletes)
        self._columns = columns
        self._overlap = KeyOverlap(self.shared.deletes, columns)

    def candidates(self, data: DataFile) -> Places:
        """DA-2, RD-2: the positions of the deletes that are newer than the data file and may hold one of its keys by
        their bounds."""
        is_newer = self._is_newer(data)
        if not is_newer[-1]:
            return np.empty(0, np.int64)
        return np.flatnonzero(is_newer & self._overlap.candidates(data))

    @property
    def count(self) -> int:
        return len(self.shared.deletes)

    @property
    def newest(self) -> int:
        return int(self.shared.numbers[-1])

    def are_odd(self, files: DataColumns) -> Flags:
        """Files with bounds that are not values of their columns. They are evaluated one by one."""
        return have_odd_bounds(files, self._columns)

    def places_in_bits(self, files: DataColumns) -> Iterator[tuple[int, bytes]]:
        """DA-2, RD-2: the result of `candidates` for each file that has any: its index, and the positions as bits."""
        is_met = keyed_delete_is_new_enough(self.shared.numbers, files.sequence_numbers[:, None])
        is_met &= self._overlap.candidates_of_all(files)
        bits = np.packbits(is_met, axis=1)
        for index in np.flatnonzero(is_met.any(axis=1)).tolist():
            yield index, bits[index].tobytes()

    def places_of(self, bits: bytes) -> Places:
        return np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), count=self.count))

    def at(self, places: Places) -> Iterator[DeleteFile]:
        return map(self.shared.deletes.__getitem__, places.tolist())

    def first_newer(self, data: DataFile) -> int:
        """DA-2: the position of the oldest delete that is newer than the data file. There is at least one."""
        return int(np.argmax(self._is_newer(data)))

    def _is_newer(self, data: DataFile) -> NDArray[np.bool_]:
        return keyed_delete_is_new_enough(self.shared.numbers, committed_sequence_number(data))


def in_scope(files: DataColumns, scope: Scope) -> Flags:
    """DA-3, RD-3: the files in the partition of a delete, or all files."""
    if scope is EVERYWHERE:
        return np.ones(len(files), np.bool_)
    same = np.array([partition_identity(*partition) == scope for partition in files.partitions], np.bool_)
    is_here: Flags = same[files.partition_ids]
    return is_here


def _shared_or_listed(
    met: Sequence[tuple[_KeyDeletes, Places]], data: DataFile
) -> tuple[DeleteFile, ...] | NewerDeletes:
    if len(met) == 1:
        group, places = met[0]
        start = group.first_newer(data)
        if group.count >= SHARED_FROM and 2 * len(places) >= group.count - start:
            return NewerDeletes(group.shared, start)
    return tuple(delete for group, places in met for delete in group.at(places))


def by_scope_and_columns(
    deletes: Iterable[DeleteFile], specs: dict[int, PartitionSpec]
) -> dict[tuple[Scope, tuple[int, ...]], list[DeleteFile]]:
    """Equality or range delete files that one skyline or one set of keys can combine."""
    grouped: dict[tuple[Scope, tuple[int, ...]], list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        grouped[scope_of(delete, specs), delete.equality_ids or ()].append(delete)
    return grouped


def with_shared_deletes(relevant: Sequence[DeleteFile], reaching: Sequence[DeleteFile]) -> list[DeleteFile]:
    """The delete files that a filter leaves, among those that reach a data file. If it leaves most of many equality
    deletes, the others stay too: they form one list whose keys are cached for any later filter."""
    left, all_of_them = (sum(file.kind is DeleteKind.EQUALITY for file in files) for files in (relevant, reaching))
    if all_of_them < SHARED_FROM or 2 * left < all_of_them:
        return list(relevant)
    kept = set(map(id, relevant))
    return [file for file in reaching if id(file) in kept or file.kind is DeleteKind.EQUALITY]


def scope_of(delete: DeleteFile, specs: dict[int, PartitionSpec]) -> Scope:
    """DA-3, RD-3: everywhere if written under an unpartitioned spec, otherwise the delete file's own partition."""
    return EVERYWHERE if is_global(delete, specs[delete.spec_id]) else partition_of(delete)


def named_data_file(delete: DeleteFile) -> str | None:
    """DA-1: the only data file that a position delete file names, if its entry states it."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower, upper = _path_bounds(delete)
    return lower if lower == upper else None


def _path_bounds(delete: DeleteFile) -> tuple[str | None, str | None]:
    lower = (delete.lower_bounds or {}).get(FILE_PATH_FIELD_ID)
    upper = (delete.upper_bounds or {}).get(FILE_PATH_FIELD_ID)
    return None if lower is None else lower.decode(), None if upper is None else upper.decode()


def _position_delete_applies(delete: DeleteFile, data: DataFile) -> bool:
    """DA-1, DA-7: not older than the data. A delete that names the file but has another partition is invalid metadata;
    without it, deleted rows would come back."""
    if not shares_partition(delete, data):
        raise CorruptFileError(
            delete.file_path,
            f"it deletes rows of {data.file_path}, which is in another partition: "
            f"spec {data.spec_id} {data.partition}, not spec {delete.spec_id} {delete.partition}.",
        )
    return position_delete_is_new_enough(committed_sequence_number(delete), committed_sequence_number(data))
