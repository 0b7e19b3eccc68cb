"""Equality and range deletes of several commits, to find the first one that reached a row.

A group has the deletes of one scope and one list of columns: ranges cut into intervals, or distinct keys of equality
deletes, each with the sequence numbers of all its deletes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tableformat.deletes.matching.delete_numbers import NO_DELETE, DeleteNumbers
from tableformat.deletes.matching.equality import EqualityKeys
from tableformat.deletes.matching.numbered_spans import NumberedSpans
from tableformat.deletes.rules import (
    committed_sequence_number,
    equality_delete_is_new_enough,
    range_delete_is_new_enough,
)
from tableformat.deletes.spans.spans import SpanArray
from tableformat.deletes.spans.touching import SearchableSpans
from tableformat.merge_on_read.delete_columns import delete_column_types
from tableformat.merge_on_read.delete_index import EVERYWHERE, Scope, by_scope_and_columns
from tableformat.merge_on_read.deleted_positions import MergeContext, equality_ids
from tableformat.merge_on_read.equality_positions import groups_in_reach
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.partition_identity import partition_of
from tableformat.parquet.key_reader import KeyReader

_PAIRS_MAX: Final = 1 << 22
"""The number of intervals times the range deletes over each. A group uses some tens of bytes for each."""

Rows = NDArray[np.int64]


class DeleteGroup(ABC):
    """Deletes of one scope and one list of columns. Immutable and thread-safe."""

    scope: Scope
    field_ids: tuple[int, ...]
    """The columns that are needed to compare a row."""
    deletes: DeleteNumbers

    def reaches(self, data: DataFile) -> bool:
        """DA-2, DA-3, RD-2, RD-3: whether a delete is in scope and newer than the file, for any keys."""
        in_scope = self.scope is EVERYWHERE or self.scope == partition_of(data)
        return in_scope and bool(self._is_new_enough(self.deletes.numbers, committed_sequence_number(data)).any())

    def begin(self, age: int) -> int:
        """The position of the first number that is newer than a data file of this age."""
        return int(np.count_nonzero(~self._is_new_enough(self.deletes.numbers, age)))

    @abstractmethod
    def _is_new_enough(self, numbers: Rows, age: int) -> NDArray[np.bool_]:
        """The rule of this kind of deletes."""

    @abstractmethod
    def first(self, columns: Sequence[pa.ChunkedArray], begin: Rows) -> tuple[Rows, Rows]:
        """The ascending rows that a delete of a number from `begin` on reaches, and for each the first such number."""

    @abstractmethod
    def row_groups(self, reader: KeyReader) -> Rows:
        """The row groups of a file that may hold a key of these deletes, by their statistics."""


class RangeGroup(DeleteGroup):
    """Range deletes."""

    def __init__(self, scope: Scope, spans: NumberedSpans) -> None:
        self.scope, self.field_ids, self.deletes = scope, spans.field_ids, spans.deletes
        self._spans = spans

    def _is_new_enough(self, numbers: Rows, age: int) -> NDArray[np.bool_]:
        return range_delete_is_new_enough(numbers, age)

    def first(self, columns: Sequence[pa.ChunkedArray], begin: Rows) -> tuple[Rows, Rows]:
        return self._spans.first(columns, begin)

    def row_groups(self, reader: KeyReader) -> Rows:
        key = self._spans.intervals.key
        lower, upper = reader.bounds(self.field_ids, key.types[: len(self.field_ids)])
        first, last = SearchableSpans.of(self._spans.intervals, len(lower)).touching(lower, upper)
        return np.flatnonzero(first < last)


class EqualityGroup(DeleteGroup):
    """Equality deletes."""

    def __init__(self, scope: Scope, keys: EqualityKeys, deletes: DeleteNumbers) -> None:
        self.scope, self.field_ids, self.deletes = scope, keys.field_ids, deletes
        self._keys = keys

    def _is_new_enough(self, numbers: Rows, age: int) -> NDArray[np.bool_]:
        return equality_delete_is_new_enough(numbers, age)

    def first(self, columns: Sequence[pa.ChunkedArray], begin: Rows) -> tuple[Rows, Rows]:
        rows, keys = self._keys.index.find(columns)
        numbers = self.deletes.first(keys, begin[rows])
        is_deleted = numbers != NO_DELETE
        return rows[is_deleted], numbers[is_deleted]

    def row_groups(self, reader: KeyReader) -> Rows:
        return groups_in_reach(reader, self._keys)


def delete_groups(deletes: Sequence[DeleteFile], context: MergeContext) -> list[DeleteGroup] | None:
    """The groups of equality and range delete files, which are read. None if they are too many to hold, or if a span is
    older than the commit that added it (RD-8)."""
    groups: list[DeleteGroup] = []
    ranges = [delete for delete in deletes if delete.kind is DeleteKind.RANGE]
    for (scope, _), members in by_scope_and_columns(ranges, context.specs).items():
        loaded = context.loader.numbered_spans(members)
        if not _have_numbers_of(members, loaded):
            return None
        spans = SpanArray.concat(loaded)
        numbered = NumberedSpans.of(spans, pairs_max=_PAIRS_MAX) if len(spans) else None
        if numbered is not None:
            groups.append(RangeGroup(scope, numbered))
        elif len(spans):
            return None
    by_equality = [delete for delete in deletes if delete.kind is DeleteKind.EQUALITY]
    for (scope, _), members in by_scope_and_columns(by_equality, context.specs).items():
        groups.append(_equality_group(scope, members, context))
    return groups


def _have_numbers_of(deletes: Sequence[DeleteFile], spans: Sequence[SpanArray]) -> bool:
    """Whether every span has the number of its file: the counts of the spans equal those of the entries."""
    expected: Counter[int] = Counter()
    for delete in deletes:
        expected[committed_sequence_number(delete)] += delete.record_count
    numbers = [each.sequence_numbers for each in spans if each.sequence_numbers is not None]
    return Counter(np.concatenate([np.empty(0, np.int64), *numbers]).tolist()) == expected


def _equality_group(scope: Scope, deletes: Sequence[DeleteFile], context: MergeContext) -> EqualityGroup:
    types = delete_column_types(context.fields, set(equality_ids(deletes[0])), deletes[0].file_path)
    keys = context.loader.equality_keys(deletes, types)
    found = [keys.keys_of(context.loader.delete_columns(delete, keys.field_ids, types)) for delete in deletes]
    numbers = np.repeat([committed_sequence_number(delete) for delete in deletes], list(map(len, found)))
    return EqualityGroup(scope, keys, DeleteNumbers.of(np.concatenate(found), numbers))
