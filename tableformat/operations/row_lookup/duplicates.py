"""Appends only keys that the table does not have: the only kind of append that reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import DuplicateKeyError
from tableformat.keys.key_columns import KeyColumns
from tableformat.merge_on_read.task import RowTask
from tableformat.operations.row_lookup.exact_nanoseconds import as_numbers
from tableformat.operations.row_lookup.key_rows import portions, within_bounds
from tableformat.operations.row_lookup.streamed_input import streamed_input
from tableformat.operations.staging.covered_positions import covered_by, in_threads
from tableformat.operations.staging.draft import Draft
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.conform import ConformedRows


def append_unless_present(draft: Draft, rows: ConformedRows, *, fail: bool) -> None:
    """Stage the rows whose key is neither in the table nor earlier in the input.

    With `fail`, the first portion with any other row raises DuplicateKeyError, which counts these rows and shows one.
    One portion of rows is in memory; later portions find the keys of earlier ones in the staged files.
    """
    for portion in portions(rows):
        fresh = portion.filter(pa.array(new_keys(draft, portion, fail=fail)))
        if fresh.num_rows:
            draft.add_batches(fresh.to_batches())
    draft.note_refused(rows)


def new_keys(draft: Draft, portion: pa.Table, *, fail: bool) -> np.ndarray:
    """For each row, whether its key is neither in the table nor earlier in the portion. With `fail`, raises
    DuplicateKeyError if this is false for a row."""
    key = draft.key_names
    tasks = draft.plan(within_bounds(portion.column(key[0]), draft.schema.find_field(key[0])))
    new = _is_new(draft, tasks, portion, key)
    if fail and not new.all():
        raise _duplicate(portion, ~new, key)
    if not new.all():
        given = portion.select(list(key)).filter(pa.array(~new))
        draft.rely_on(partial(_stored, draft, tasks, given), given.num_rows)
    return new


def _is_new(draft: Draft, tasks: Sequence[RowTask], portion: pa.Table, key: tuple[str, ...]) -> np.ndarray:
    """For each row, whether it is the first one with its key, in the table and in the portion."""
    context = ReadContext.of(draft.view, key)
    # By position, because names of key columns may differ only in case.
    names = [f"key_{place}" for place in range(len(key))]
    stored = (table.select(list(key)).rename_columns(names) for table in read_tables(tasks, context))
    present = (batch for table in stored for batch in as_numbers(table).to_batches())
    columns = ", ".join(names)
    schema = as_numbers(context.arrow_schema.empty_table().select(list(key)).rename_columns(names)).schema
    keys = as_numbers(portion.select(list(key)).rename_columns(names))
    numbered = keys.append_column("__row", pa.array(np.arange(portion.num_rows)))
    with duckdb_connection() as connection:
        connection.register("incoming", numbered)
        with streamed_input(connection, "present", schema, present):
            first = connection.sql(
                f"SELECT min(__row) AS row FROM (FROM incoming ANTI JOIN present USING ({columns})) GROUP BY {columns}"
            ).to_arrow_table()
    new = np.zeros(portion.num_rows, np.bool_)
    new[first.column("row").to_numpy()] = True
    return new


def _stored(draft: Draft, tasks: Sequence[RowTask], keys: pa.Table) -> Iterator[tuple[RowTask, PositionSet]]:
    """The live rows of the tasks that have one of the keys."""
    spans = sort_and_merge(spans_of_prefixes(KeyColumns.of(draft.schema, draft.key_field_ids), keys))
    newest = spans.with_sequence_number(draft.next_sequence_number)
    for task, (_, found) in in_threads(tasks, covered_by(newest, draft.merge_context)):
        yield task, found


def _duplicate(portion: pa.Table, is_duplicate: np.ndarray, key: tuple[str, ...]) -> DuplicateKeyError:
    duplicates = portion.select(list(key)).filter(pa.array(is_duplicate))
    told = "1 row has" if duplicates.num_rows == 1 else f"{duplicates.num_rows:,} rows have"
    return DuplicateKeyError(
        f"{told} a key that already exists in the table or in an earlier row. The first is "
        f"{duplicates.slice(0, 1).to_pylist()[0]}. Nothing was committed. on_duplicate='ignore' skips these rows; "
        "'replace' replaces the existing rows."
    )
