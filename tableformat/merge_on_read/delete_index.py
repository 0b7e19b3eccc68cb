"""Index of delete files: finds those that apply to a data file, by all rules of application.

The comparisons of sequence numbers and partitions themselves are in `deletes/rules.py`. Here delete files are
arranged so that a data file meets only those that can matter: position deletes by the path they name, equality and
range deletes by scope and column list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.types import IcebergType, NestedField

from tableformat.deletes.codecs.position_rows import FILE_PATH_FIELD_ID
from tableformat.deletes.rules import (
    committed_sequence_number,
    is_global,
    keyed_delete_is_new_enough,
    partition_of,
    position_delete_is_new_enough,
    shares_partition,
)
from tableformat.errors import CorruptFileError
from tableformat.merge_on_read.key_overlap import KeyOverlap
from tableformat.merge_on_read.newer_deletes import NewerDeletes, SharedDeletes
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind

Partition = tuple[int, tuple[Any, ...]]
"""Spec id and partition values."""
EVERYWHERE: Final = None
"""The scope of a delete file that applies to every partition."""
Scope = Partition | None
_NO_DELETES: Final[tuple[DeleteFile, ...]] = ()
SHARED_FROM: Final = 16
"""Equality deletes of one scope from which the newer ones are not listed for a data file that meets most of them."""
Places = NDArray[np.int64]
"""Indexes in a group of delete files, rising."""


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Types of fields that deletes may name, those of dropped columns included."""

    by_id: dict[int, IcebergType]

    @staticmethod
    def of_fields(fields: Mapping[int, NestedField]) -> ColumnTypes:
        """The types of every field that a table has had (`field_history`)."""
        return ColumnTypes({field_id: field.field_type for field_id, field in fields.items()})

    def of(self, field_ids: Iterable[int]) -> list[tuple[int, IcebergType]]:
        """The field ids whose type is known, with the type."""
        return [(field_id, self.by_id[field_id]) for field_id in field_ids if field_id in self.by_id]


class PositionDeleteIndex:
    """Position delete files and deletion vectors by what they say about the data files that they name."""

    def __init__(self, deletes: Iterable[DeleteFile]) -> None:
        self._vectors: dict[str, DeleteFile] = {}
        self._by_path: dict[str, list[DeleteFile]] = defaultdict(list)
        self._by_partition: dict[Partition, list[tuple[DeleteFile, str | None, str | None]]] = defaultdict(list)
        for delete in deletes:
            if delete.kind is DeleteKind.DELETION_VECTOR:
                self._add_vector(delete)
            elif (path := named_data_file(delete)) is not None:
                self._by_path[path].append(delete)
            else:
                lower, upper = _path_bounds(delete)
                self._by_partition[partition_of(delete)].append((delete, lower, upper))

    def vector_of(self, data: DataFile) -> DeleteFile | None:
        """DA-7: the deletion vector of the data file."""
        vector = self._vectors.get(data.file_path)
        return vector if vector is not None and _position_delete_applies(vector, data) else None

    def position_deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """DA-1, DA-7: position delete files that may name rows of the data file; none where a vector replaces them."""
        if self.vector_of(data) is not None:
            return _NO_DELETES
        found = [delete for delete in self._by_path.get(data.file_path, ()) if _position_delete_applies(delete, data)]
        for delete, lower, upper in self._by_partition.get(partition_of(data), ()):
            is_named = (lower is None or lower <= data.file_path) and (upper is None or data.file_path <= upper)
            if is_named and _position_delete_applies(delete, data):
                found.append(delete)
        return tuple(found)

    def _add_vector(self, vector: DeleteFile) -> None:
        path = vector.referenced_data_file
        if path is None:
            raise CorruptFileError(vector.file_path, "a deletion vector does not say which data file it belongs to.")
        if path in self._vectors:
            raise CorruptFileError(
                vector.file_path, f"{path} has a second deletion vector, in {self._vectors[path].file_path}."
            )
        self._vectors[path] = vector


class KeyDeleteIndex:
    """Equality delete files by scope and list of delete columns; range delete files too, where they are not loaded to
    plan."""

    def __init__(
        self, deletes: Iterable[DeleteFile], specs: dict[int, PartitionSpec], column_types: ColumnTypes
    ) -> None:
        self._groups: dict[Scope, list[_KeyDeletes]] = defaultdict(list)
        for (scope, field_ids), members in by_scope_and_columns(deletes, specs).items():
            self._groups[scope].append(_KeyDeletes(members, column_types.of(field_ids)))

    def deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...]:
        """DA-2, DA-3, RD-2, RD-3: files newer than the data, in scope, that may hold one of its keys; oldest first."""
        return tuple(delete for group, places in self._met(data) for delete in group.at(places))

    def shared_deletes_of(self, data: DataFile) -> tuple[DeleteFile, ...] | NewerDeletes:
        """The same, or where most of many newer ones are met by their bounds, all of these in one shared list."""
        met = self._met(data)
        if len(met) == 1:
            group, places = met[0]
            start = group.first_newer(data)
            if len(group.shared.deletes) >= SHARED_FROM and 2 * len(places) >= len(group.shared.deletes) - start:
                return NewerDeletes(group.shared, start)
        return tuple(delete for group, places in met for delete in group.at(places))

    def _met(self, data: DataFile) -> list[tuple[_KeyDeletes, Places]]:
        """The groups that the file may be met by, with the places of the deletes in them."""
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
        self._overlap = KeyOverlap(self.shared.deletes, columns)

    def candidates(self, data: DataFile) -> Places:
        """DA-2, RD-2: the places of those that are newer than the data file and may hold a key of it by their
        bounds."""
        is_newer = self._is_newer(data)
        if not is_newer[-1]:
            return np.empty(0, np.int64)
        return np.flatnonzero(is_newer & self._overlap.candidates(data))

    def at(self, places: Places) -> Iterator[DeleteFile]:
        return map(self.shared.deletes.__getitem__, places.tolist())

    def first_newer(self, data: DataFile) -> int:
        """DA-2: the place of the oldest that is newer than the data file, of which there is one."""
        return int(np.argmax(self._is_newer(data)))

    def _is_newer(self, data: DataFile) -> NDArray[np.bool_]:
        return keyed_delete_is_new_enough(self.shared.numbers, committed_sequence_number(data))


def by_scope_and_columns(
    deletes: Iterable[DeleteFile], specs: dict[int, PartitionSpec]
) -> dict[tuple[Scope, tuple[int, ...]], list[DeleteFile]]:
    """Equality or range delete files that one skyline or one set of keys can hold together."""
    grouped: dict[tuple[Scope, tuple[int, ...]], list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        grouped[scope_of(delete, specs), delete.equality_ids or ()].append(delete)
    return grouped


def with_shared_deletes(relevant: Sequence[DeleteFile], reaching: Sequence[DeleteFile]) -> list[DeleteFile]:
    """The delete files that a filter leaves of those that reach some data file. Where it leaves most of many equality
    deletes the others stay too: then they are one list, whose keys are found made, whatever the next filter is."""
    left, all_of_them = (sum(file.kind is DeleteKind.EQUALITY for file in files) for files in (relevant, reaching))
    if all_of_them < SHARED_FROM or 2 * left < all_of_them:
        return list(relevant)
    kept = set(map(id, relevant))
    return [file for file in reaching if id(file) in kept or file.kind is DeleteKind.EQUALITY]


def scope_of(delete: DeleteFile, specs: dict[int, PartitionSpec]) -> Scope:
    """DA-3, RD-3: everywhere when written under an unpartitioned spec, else the delete file's own partition."""
    return EVERYWHERE if is_global(delete, specs[delete.spec_id]) else partition_of(delete)


def named_data_file(delete: DeleteFile) -> str | None:
    """DA-1: the only data file that a position delete file names, if its entry says so."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower, upper = _path_bounds(delete)
    return lower if lower is not None and lower == upper else None


def _path_bounds(delete: DeleteFile) -> tuple[str | None, str | None]:
    lower = (delete.lower_bounds or {}).get(FILE_PATH_FIELD_ID)
    upper = (delete.upper_bounds or {}).get(FILE_PATH_FIELD_ID)
    return None if lower is None else lower.decode(), None if upper is None else upper.decode()


def _position_delete_applies(delete: DeleteFile, data: DataFile) -> bool:
    """DA-1, DA-7: not older than the data. A delete that names the file but lies in another partition is no valid
    metadata, and reading on without it would bring rows back."""
    if not shares_partition(delete, data):
        raise CorruptFileError(
            delete.file_path,
            f"it deletes rows of {data.file_path}, which is in another partition: "
            f"spec {data.spec_id} {data.partition}, not spec {delete.spec_id} {delete.partition}.",
        )
    return position_delete_is_new_enough(committed_sequence_number(delete), committed_sequence_number(data))
