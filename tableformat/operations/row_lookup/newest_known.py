"""The newest value of the order column that a table has for some keys: in its rows, and in deletes of them (CP-69).

key       stored row    delete that is retained    forgotten deletes up to    newest known
a         ts 50                                    ts 20                      50
b                       ts 60                      ts 20                      60
c                                                  ts 20                      20
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.deletes.matching.key_index import KeyIndex, index_keys
from tableformat.deletes.positions import PositionSet, expanded
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge, spans_of_prefixes
from tableformat.keys.internal_values import array_of_internal_values, internal_values_of
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.task import FileScanTask, RowTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.operations.row_lookup.key_rows import among_values, within_bounds
from tableformat.operations.row_lookup.lookup import FEW_KEYS, comparables, spans_of_keys
from tableformat.operations.staging.covered_positions import covered_by, in_threads
from tableformat.operations.staging.draft import Draft
from tableformat.operations.staging.order import as_data_file, may_hold, may_hold_each
from tableformat.parquet.array_forms import rows_as
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.write.rows.conform import table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows
from tableformat.write.rows.last_per_key import order_ranks

logger = logging.getLogger(__name__)

_UNKNOWN: Final = -1
"""A rank below the rank of any value."""
_KEYS_COMPARED_MAX: Final = 100_000
"""Maximum number of keys that are kept until the commit, to be compared with the rows of concurrently added files. With
more keys, the bounds of these files decide."""

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Known:
    """Values of the order column, each with the number of the key to which it belongs."""

    values: list[pa.Array] = field(default_factory=list)
    keys: list[Numbers] = field(default_factory=list)

    def add(self, values: pa.ChunkedArray, keys: Numbers) -> None:
        if len(keys):
            self.values.append(pa.concat_arrays(values.chunks))
            self.keys.append(keys)


def are_stale(draft: Draft, rows: pa.Table, order: NestedField) -> Flags:
    """CP-69: for each row, whether the table has, or deleted, a newer row of its key.

    `rows`: leading key columns in the order of the key and without nulls, followed by the order column, in the types of
    the table. The draft relies on the rows that make others stale (CP-38), and the lookup is recorded for the commit
    (CP-73).
    """
    keys, given = rows.drop_columns([order.name]), rows.column(order.name)
    columns = _columns(draft.schema, keys.column_names)
    index, examples, numbers = index_keys(comparables(keys, columns.types), columns.types)
    distinct = keys.take(pa.array(examples))
    known, forgotten = _Known(), draft.order.newest_forgotten_delete(order)
    tasks = _tasks(draft, distinct, index)
    for found in _rows_of(draft, tasks, rows.schema):
        at, of_keys = index.find(found.select(keys.column_names).columns)
        known.add(found.column(order.name).take(pa.array(at)), of_keys)
    for deletes in _ordered_deletes(draft, distinct, order, above=_lowest_that_matters(given, order, forgotten)):
        of_rows, of_keys = _matches(draft.schema, distinct, deletes, order)
        known.add(deletes.column(order.name).take(pa.array(of_rows)), of_keys)
    stale = _older(draft, given, numbers, known, order, forgotten, len(examples))
    if stale.any():
        left_out = distinct_rows(keys.filter(pa.array(stale)))
        draft.rely_on(partial(_stored, draft, tasks, left_out), left_out.num_rows)
    return stale


def _older(
    draft: Draft,
    given: pa.ChunkedArray,
    numbers: Numbers,
    known: _Known,
    order: NestedField,
    forgotten: Any,
    key_count: int,
) -> Flags:
    """CP-72: an unknown key may have been deleted by a forgotten delete."""
    assert isinstance(order.field_type, PrimitiveType), "the order column is not nested"
    limit = [] if forgotten is None else [array_of_internal_values([forgotten], order.field_type).cast(given.type)]
    values = pa.chunked_array([*given.chunks, *known.values, *limit], given.type)
    ranks = order_ranks(pa.table({"order": values}))
    best = np.full(key_count, _UNKNOWN, np.int64)
    if known.keys:
        of_keys = np.concatenate(known.keys)
        np.maximum.at(best, of_keys, ranks[len(given) : len(given) + len(of_keys)])
    is_unknown = best == _UNKNOWN
    if limit:
        best[is_unknown] = ranks[-1]
    stale: Flags = ranks[: len(given)] < best[numbers]
    if uncertain := int((stale & is_unknown[numbers]).sum()):
        logger.warning(
            "%s has no rows for the keys of %d rows. These rows are older than deletes whose snapshots have expired, "
            "so their keys may have been deleted; the rows are treated as stale.",
            draft.name,
            uncertain,
        )
    return stale


def _lowest_that_matters(given: pa.ChunkedArray, order: NestedField, forgotten: Any) -> Any:
    """Deletes with a value up to this one make none of the rows stale. None if every delete matters, because it may
    show that a row is newer than a forgotten delete (CP-72)."""
    ranks = order_ranks(pa.table({"order": given}))
    at = int(ranks.argmin())
    assert isinstance(order.field_type, PrimitiveType), "the order column is not nested"
    (lowest,) = internal_values_of(pa.concat_arrays(given.slice(at, 1).chunks), order.field_type)
    return lowest if forgotten is None or (lowest is not None and lowest >= forgotten) else None


def _tasks(draft: Draft, keys: pa.Table, index: KeyIndex) -> list[RowTask]:
    """The files that may hold one of the keys, according to bounds and Bloom filters, without files of the current
    operation."""
    first = keys.column_names[0]
    columns = Schema(*(draft.schema.find_field(name) for name in keys.column_names))
    spans = sort_and_merge(spans_of_keys(columns, keys))
    holds = partial(may_hold, spans)
    if len(keys) <= _KEYS_COMPARED_MAX:
        holds = partial(_holds, draft, spans, index, keys.column_names)
    draft.order.note_read(holds)
    few = len(keys) <= FEW_KEYS
    where = among_values(keys) if few else within_bounds(keys.column(first), draft.schema.find_field(first))
    tasks = draft.plan_before_verb(where, holds)
    held = may_hold_each(spans, [task.data_file for task in tasks])
    return list(compress(tasks, held))


def _holds(draft: Draft, spans: SpanArray, index: KeyIndex, names: Sequence[str], data: DataFile) -> bool:
    """CP-73: whether a concurrently added file has one of the keys, according to its bounds and then its rows. A delete
    file with fewer columns may name all keys."""
    if not may_hold(spans, data):
        return False
    if any(draft.schema.find_field(name).field_id not in (data.value_counts or {}) for name in names):
        return True
    numbered = FileScanTask(data_file=replace(data, sequence_number=0))
    found = read_tables([numbered], ReadContext.of(draft.view, names))
    return any(len(index.find(table.select(names).columns)[0]) for table in found)


def _rows_of(draft: Draft, tasks: Sequence[RowTask], schema: pa.Schema) -> Iterator[pa.Table]:
    context = ReadContext.of(draft.view, schema.names)
    for found in read_tables(tasks, context):
        yield rows_as(found.select(schema.names), schema)


def _ordered_deletes(draft: Draft, keys: pa.Table, order: NestedField, *, above: Any) -> Iterator[pa.Table]:
    """CP-71: deletes with a value in the order column that may name one of the keys, in one table for each list of
    columns."""
    yield from (each for each in draft.order.deletes if set(each.column_names[:-1]) <= set(keys.column_names))
    for ids, files in _by_columns(draft.order.deletes_of_base(order, above)).items():
        names = [draft.schema.find_column_name(field_id) for field_id in ids]
        if not set(names) <= set(keys.column_names):
            continue
        columns = [name for name in keys.column_names if name in names]
        on = _columns(draft.schema, columns)
        spans = sort_and_merge(spans_of_prefixes(on, distinct_rows(keys.select(columns))))
        read = [as_data_file(each) for each in files]
        tasks = [FileScanTask(data_file=each) for each in compress(read, may_hold_each(spans, read))]
        types = table_arrow_schema(draft.schema)
        yield from _rows_of(draft, tasks, pa.schema([types.field(name) for name in (*columns, order.name)]))


def _by_columns(files: Iterable[DeleteFile]) -> dict[tuple[int, ...], list[DeleteFile]]:
    by_columns: dict[tuple[int, ...], list[DeleteFile]] = {}
    for file in files:
        by_columns.setdefault(tuple(sorted(file.equality_ids or ())), []).append(file)
    return by_columns


def _matches(schema: Schema, keys: pa.Table, deletes: pa.Table, order: NestedField) -> tuple[Numbers, Numbers]:
    """Pairs of a delete and a key that it names, as the row numbers of both."""
    names = [name for name in deletes.column_names if name != order.name]
    types = _columns(schema, names).types
    index, _, numbers = index_keys(comparables(keys.select(names), types), types)
    at, of_groups = index.find(deletes.select(names).columns)
    by_group = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(index)))
    starts = np.concatenate(([0], ends[:-1]))
    repeated = np.repeat(at, (ends - starts)[of_groups])
    return repeated, by_group[expanded(starts[of_groups], ends[of_groups])]


def _stored(draft: Draft, tasks: Sequence[RowTask], keys: pa.Table) -> Iterator[tuple[RowTask, PositionSet]]:
    """The live rows of the tasks that begin with one of the keys."""
    spans = sort_and_merge(spans_of_prefixes(_columns(draft.schema, keys.column_names), keys))
    newest = spans.with_sequence_number(draft.next_sequence_number)
    for task, (_, found) in in_threads(tasks, covered_by(newest, draft.merge_context)):
        yield task, found


def _columns(schema: Schema, names: Sequence[str]) -> KeyColumns:
    return KeyColumns.of(schema, [schema.find_field(name).field_id for name in names])
