"""Finds delete files that no live data file can match any more, each with a proof (MT-10).

The proof uses manifest entries, the spans of range delete files, and the paths in position delete files that name
several data files. No data file is opened. Delete files without a proof stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from pyiceberg.partitioning import PartitionSpec

from tableformat.commit.change import FileKey, file_key
from tableformat.deletes.rules import committed_sequence_number, keyed_delete_is_new_enough
from tableformat.deletes.spans.needed_spans import needed_fragments, spans_still_needed
from tableformat.deletes.spans.spans import SpanArray
from tableformat.merge_on_read.delete_index import (
    EVERYWHERE,
    ColumnTypes,
    KeyDeleteIndex,
    Partition,
    PositionDeleteIndex,
    Scope,
    by_scope_and_columns,
    named_data_file,
    scope_of,
)
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.content_file import PARQUET, DataFile, DeleteFile, DeleteKind
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT, positive_int


@dataclass(frozen=True, slots=True)
class DeadDelete:
    """A delete file that can be removed, and the reason."""

    delete: DeleteFile
    proof: str
    """One clause for users, such as "the data file that it names, s3://..., left the table"."""


@dataclass(frozen=True, slots=True)
class FilesInScope:
    """The data files of a snapshot, by path and by partition."""

    files: tuple[DataFile, ...]
    by_path: dict[str, DataFile]
    by_partition: dict[Partition, list[DataFile]]

    @staticmethod
    def of(files: Iterable[DataFile]) -> FilesInScope:
        """Files without a row are left out, because no delete can match them."""
        filled = tuple(file for file in files if file.record_count > 0)
        by_partition: dict[Partition, list[DataFile]] = defaultdict(list)
        for file in filled:
            by_partition[partition_of(file)].append(file)
        return FilesInScope(filled, {file.file_path: file for file in filled}, by_partition)

    def within(self, scope: Scope) -> Sequence[DataFile]:
        """DA-3, RD-3: the files that a delete of the scope can reach."""
        return self.files if scope is EVERYWHERE else self.by_partition.get(scope, ())

    def oldest_within(self, scope: Scope) -> int | None:
        """The smallest data sequence number in the scope; None if it has no file."""
        return min((committed_sequence_number(file) for file in self.within(scope)), default=None)


def dead_deletes(
    view: SnapshotView, data_files: Iterable[DataFile], deletes: Iterable[DeleteFile], context: MergeContext
) -> tuple[DeadDelete, ...]:
    """MT-10: the deletes that match no row of the data files. The order has no meaning.

    `data_files` are all live files and all files that may become live with their current sequence numbers (MT-31).
    `deletes` are all live deletes: a range delete that newer ones cover is dead because of them. Raises
    CorruptFileError for a delete file that cannot be read (DA-8).
    """
    scope = FilesInScope.of(data_files)
    by_kind: dict[DeleteKind, list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        by_kind[delete.kind].append(delete)
    specs = dict(view.metadata.specs())
    types = context.column_types
    budget = positive_int(view.metadata.properties, RANGE_SPAN_BUDGET, RANGE_SPAN_BUDGET_DEFAULT)
    ranges = by_kind[DeleteKind.RANGE]
    has_room = sum(delete.record_count for delete in ranges) <= budget
    by_bounds = by_kind[DeleteKind.EQUALITY] if has_room else [*by_kind[DeleteKind.EQUALITY], *ranges]
    positional = [*by_kind[DeleteKind.POSITION], *by_kind[DeleteKind.DELETION_VECTOR]]
    return (
        *_dead_positional(positional, scope, context),
        *_dead_by_bounds(by_bounds, scope, specs, types),
        *(_dead_ranges(ranges, scope, specs, context) if has_room else ()),
    )


def _dead_positional(deletes: Sequence[DeleteFile], scope: FilesInScope, context: MergeContext) -> Iterator[DeadDelete]:
    """DA-1, DA-7, DA-10: the data files that a delete names were removed, are newer, or have a deletion vector
    instead."""
    index = PositionDeleteIndex(deletes)
    used: dict[FileKey, list[DataFile]] = defaultdict(list)
    for data in scope.files:
        vector = index.vector_of(data)
        for delete in index.position_deletes_of(data) if vector is None else (vector,):
            used[file_key(delete)].append(data)
    for delete in deletes:
        reachable = used.get(file_key(delete), ())
        named = named_data_file(delete)
        if named is not None:
            if not reachable:
                yield DeadDelete(delete, _why_named_is_not_reached(named, scope, index))
        elif not reachable:
            yield DeadDelete(delete, "no data file of its partition is within its bounds and as old")
        elif delete.file_format == PARQUET and context.loader.named_paths(delete).isdisjoint(
            data.file_path for data in reachable
        ):
            yield DeadDelete(delete, "its data files were removed from the table")


def _why_named_is_not_reached(named: str, scope: FilesInScope, index: PositionDeleteIndex) -> str:
    data = scope.by_path.get(named)
    if data is None:
        return f"its data file, {named}, was removed from the table"
    if index.vector_of(data) is not None:
        return f"a deletion vector replaces all position deletes of {named}"
    return f"its data file, {named}, is newer than the delete"


def _dead_by_bounds(
    deletes: Sequence[DeleteFile], scope: FilesInScope, specs: dict[int, PartitionSpec], types: ColumnTypes
) -> Iterator[DeadDelete]:
    """DA-2, DA-3, RD-2, RD-3: no older data file is in scope, or none has bounds that overlap the delete's."""
    if not deletes:
        return
    index = KeyDeleteIndex(deletes, specs, types)
    used = {file_key(delete) for data in scope.files for delete in index.deletes_of(data)}
    is_older = _older_files(scope)
    for delete in deletes:
        if file_key(delete) in used:
            continue
        if is_older(delete, scope_of(delete, specs)):
            yield DeadDelete(delete, "no older data file in its scope has keys within its bounds")
        else:
            yield DeadDelete(delete, "no live data file in its scope is older than it")


def _dead_ranges(
    deletes: Sequence[DeleteFile], scope: FilesInScope, specs: dict[int, PartitionSpec], context: MergeContext
) -> Iterator[DeadDelete]:
    """RD-2, RD-9, RD-12: no span of the file is the newest over a range in which an older data file may have a key."""
    is_older = _older_files(scope)
    for (where, _), members in by_scope_and_columns(deletes, specs).items():
        fragments = context.loader.range_fragments(members)
        is_needed = needed_fragments(fragments, scope.within(where))
        by_file = context.loader.spans_of_files(members)
        still_needed, is_newest = spans_still_needed(SpanArray.concat(by_file), fragments, is_needed)
        starts = np.cumsum([0, *map(len, by_file)]).tolist()
        for delete, (start, end) in zip(members, pairwise(starts), strict=True):
            if still_needed[start:end].any():
                continue
            if not is_older(delete, where):
                yield DeadDelete(delete, "no live data file in its scope is older than it")
            elif is_newest[start:end].any():
                yield DeadDelete(
                    delete, "no older data file in its scope has keys in its spans, apart from newer spans"
                )
            else:
                yield DeadDelete(delete, "newer range deletes cover all of its spans")


def _older_files(scope: FilesInScope) -> Callable[[DeleteFile, Scope], bool]:
    """Whether a scope has a data file older than the delete. The oldest file of each scope is searched once."""
    oldest: dict[Scope, int | None] = {}

    def is_older(delete: DeleteFile, where: Scope) -> bool:
        if where not in oldest:
            oldest[where] = scope.oldest_within(where)
        number = oldest[where]
        return number is not None and keyed_delete_is_new_enough(committed_sequence_number(delete), number)

    return is_older
