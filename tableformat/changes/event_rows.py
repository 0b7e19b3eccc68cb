"""Reads the events of a range as Arrow tables.

The deleted rows of many small commits are in the same data files. As many commits as fit into memory are read together,
each file once. Their rows are then sorted into the order of the events (CF-6):

    file 1   rows deleted in     7 9 7        commit 7   file 1, file 2         then its inserted rows
    file 2                       9 7     ->   commit 9   file 1, file 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import AlwaysFalse, BooleanExpression
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Snapshot

from tableformat.changes.changed_rows import Entry, FoundSeries, Positions, found_parts, tasks_alone
from tableformat.changes.plan import ChangeType, constants_of, entry_of
from tableformat.changes.snapshot_series import Difference
from tableformat.deletes.positions import PositionSet
from tableformat.filters.bound_filter import BoundFilter, bind_filter
from tableformat.filters.row_filter import filter_rows
from tableformat.merge_on_read.task import FileScanTask, only_rows
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.change_columns import CHANGE_FIELDS, COMMIT_SNAPSHOT_ID
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.parquet.projection import narrowed, with_filter_columns
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables

_GROUP_ROWS: Final = 256 * 1024
"""Maximum number of deleted rows in memory. A commit with more deleted rows is read file by file."""
_GROUP_BYTES: Final = 32 * 1024 * 1024
"""The same limit in bytes of the stored rows."""
_GROUP_READ_BYTES: Final = 512 * 1024 * 1024
"""The same limit in bytes of the rows in memory: a chunked column of strings cannot be reordered beyond 2 GB."""


def event_rows(
    view: SnapshotView,
    snapshots: Sequence[Snapshot],
    where: BooleanExpression | None,
    context: ReadContext,
    *,
    is_hasty: bool = False,
) -> Iterator[pa.Table]:
    """CF-6: the matching events in order, with the schema `context.arrow_schema`. With `is_hasty`, the caller may need
    only a few of them."""
    parts = found_parts(view, snapshots, where, context=context.merge, is_hasty=is_hasty)
    for is_series, alike in groupby(parts, key=lambda part: isinstance(part, FoundSeries)):
        if is_series:
            groups = (group for part in alike if isinstance(part, FoundSeries) for group in _groups(part))
            yield from chain.from_iterable(_of_group(group, context) for group in groups)
        else:
            alone = (part for part in alike if isinstance(part, Difference))
            tasks = (task for part in alone for task in tasks_alone(part, view, where, context.merge))
            yield from read_tables((task.scan for task in tasks), context)


@dataclass(frozen=True, slots=True)
class _Commit:
    """A snapshot of a series, with the rows that it deleted."""

    series: FoundSeries
    difference: Difference
    deletes: list[tuple[FileScanTask, Positions]]

    @property
    def row_count(self) -> int:
        return sum(len(positions) for _, positions in self.deletes)

    @property
    def size_bytes(self) -> int:
        return sum(
            len(positions) * task.data_file.file_size_bytes // max(task.data_file.record_count, 1)
            for task, positions in self.deletes
        )

    @property
    def is_large(self) -> bool:
        return self.row_count > _GROUP_ROWS or self.size_bytes > _GROUP_BYTES


def _groups(series: FoundSeries) -> Iterator[list[_Commit]]:
    """Groups of commits whose deleted rows fit into memory together. A large commit is a group of its own."""
    group: list[_Commit] = []
    row_count = size_bytes = 0
    for difference in series.series.differences:
        commit = _Commit(series, difference, series.deletes(difference))
        row_count, size_bytes = row_count + commit.row_count, size_bytes + commit.size_bytes
        if group and (row_count > _GROUP_ROWS or size_bytes > _GROUP_BYTES):
            yield group
            group, row_count, size_bytes = [], commit.row_count, commit.size_bytes
        group.append(commit)
    if group:
        yield group


def _of_group(group: Sequence[_Commit], context: ReadContext) -> Iterator[pa.Table]:
    is_alone = len(group) == 1 and (group[0].is_large or not group[0].deletes)
    deleted = None if is_alone else _DeletedRows.read(group, context)
    if deleted is None:
        tasks = (task.scan for commit in group for task in commit.series.tasks(commit.difference))
        yield from read_tables(tasks, context)
        return
    inserted = _InsertedRows(group, context)
    for number, commit in enumerate(group):
        rows = deleted.of(number, commit)
        if rows.num_rows:
            yield rows
        yield from inserted.of(commit.difference.snapshot)


@dataclass(frozen=True, slots=True)
class _DeletedRows:
    """The deleted rows of a group of commits, ordered by commit."""

    rows: pa.Table
    """The returned columns and the columns of the filters, without the columns of the feed."""
    ends: Sequence[int]
    """The start of each commit's rows, and finally the row count."""
    context: ReadContext

    @classmethod
    def read(cls, group: Sequence[_Commit], context: ReadContext) -> Self | None:
        """Read the deleted rows of a group. None if they turn out to be too large for memory."""
        selected = Schema(*(field for field in context.selected.fields if field not in CHANGE_FIELDS))
        for commit in group:
            selected = with_filter_columns(selected, context.schema, _bound(commit, context))
        commits, files = _by_file(group)
        order = np.argsort(commits, kind="stable")
        ends = np.searchsorted(commits[order], np.arange(len(group) + 1)).tolist()
        if not selected.fields:
            return cls(pa.table({}), ends, context)
        tables = []
        size_bytes = 0
        scans = [only_rows(FileScanTask(data_file=data), positions) for data, positions in files]
        for rows in read_tables(scans, replace(context, selected=selected)):
            tables.append(rows)
            size_bytes += rows.nbytes
            if size_bytes > _GROUP_READ_BYTES:
                return None
        together = pa.concat_tables(tables) if tables else pa.Table.from_batches([], arrow_schema(selected))
        return cls(together.take(pa.array(order)), ends, context)

    def of(self, number: int, commit: _Commit) -> pa.Table:
        """The matching rows of one commit."""
        start, end = self.ends[number], self.ends[number + 1]
        constants = constants_of(commit.difference.snapshot, ChangeType.DELETE)
        rows = _with_constants(self.rows.slice(start, end - start), end - start, constants)
        return narrowed(filter_rows(_bound(commit, self.context), rows), self.context.arrow_schema)


def _bound(commit: _Commit, context: ReadContext) -> BoundFilter:
    """The residual filter for the rows that a commit deleted."""
    return bind_filter(commit.difference.filters.get(ChangeType.DELETE, AlwaysFalse()), context.schema)


def _by_file(group: Sequence[_Commit]) -> tuple[Positions, list[tuple[DataFile, PositionSet]]]:
    """The data files with the rows that any of the commits deleted. Also, for each row in the order of files and
    positions, the number of its commit in the group."""
    files: dict[tuple[Entry, int], tuple[DataFile, list[Positions], list[Positions]]] = {}
    for number, commit in enumerate(group):
        seen: Counter[Entry] = Counter()
        for task, positions in commit.deletes:
            entry = entry_of(task.data_file)
            # If other writers committed a path twice, its rows exist twice (MT-64).
            _, rows, commits = files.setdefault((entry, seen[entry]), (task.data_file, [], []))
            seen[entry] += 1
            rows.append(positions)
            commits.append(np.full(len(positions), number))
    found, numbers = [], [np.empty(0, np.int64)]
    for data, parts, commits in files.values():
        in_file = np.concatenate(parts)
        order = np.argsort(in_file)
        numbers.append(np.concatenate(commits)[order])
        found.append((data, PositionSet.from_array(in_file[order])))
    return np.concatenate(numbers), found


def _with_constants(rows: pa.Table, row_count: int, constants: dict[int, Any]) -> pa.Table:
    """CF-5: the rows with all columns of the feed."""
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    fields = list(rows.schema)
    for field, arrow_field in zip(CHANGE_FIELDS, _CHANGE_SCHEMA, strict=True):
        value = pa.scalar(constants[field.field_id])
        columns[field.name] = pa.repeat(value, row_count).cast(arrow_field.type)
        fields.append(arrow_field)
    return pa.table(columns, schema=pa.schema(fields))


_CHANGE_SCHEMA: Final = arrow_schema(Schema(*CHANGE_FIELDS))


class _InsertedRows:
    """The rows that the commits of a group added, read ahead of the requested commit."""

    def __init__(self, group: Sequence[_Commit], context: ReadContext) -> None:
        self._schema = context.arrow_schema
        names = context.selected.column_names
        is_named = COMMIT_SNAPSHOT_ID.name in names
        selected = context.selected if is_named else Schema(*context.selected.fields, COMMIT_SNAPSHOT_ID)
        tasks = (task.scan for commit in group for task in commit.series.inserts(commit.difference))
        self._tables = read_tables(tasks, replace(context, selected=selected))
        self._next: pa.Table | None = None

    def of(self, snapshot: Snapshot) -> Iterator[pa.Table]:
        """The rows of the next commit."""
        for rows in chain(() if self._next is None else (self._next,), self._tables):
            if rows[COMMIT_SNAPSHOT_ID.name][0].as_py() != snapshot.snapshot_id:
                self._next = rows
                return
            self._next = None
            yield narrowed(rows, self._schema)
        self._next = None
