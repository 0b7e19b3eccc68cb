"""Change events of rows without a key: each delete removes exactly one equal row (CF-15).

stored  a a b        events  +c -a -c +a -a
net     a -1, at worst -1        c 0, at worst 0 (it is inserted before it is deleted)
staged  one position of a
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression
from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from tableformat.errors import InvalidArgumentError, RowNotFoundError
from tableformat.operations.row_lookup.exact_nanoseconds import as_numbers
from tableformat.operations.row_lookup.found_rows import FoundRows
from tableformat.operations.row_lookup.key_rows import within_bounds
from tableformat.operations.row_lookup.streamed_input import streamed_input
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete import stage_delete
from tableformat.operations.verbs.truncates import stage_truncates
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.change_codes import Change, kinds_of
from tableformat.write.rows.change_events import ChangeEvents
from tableformat.write.rows.conform import ConformedRows, table_arrow_schema
from tableformat.write.rows.last_per_key import order_ranks

_CODE = "code"
_PLACE = "place"


def stage_row_events(draft: Draft, events: ChangeEvents) -> None:
    """CF-15: stage the rows that are inserted and not deleted again, and position deletes of stored rows.

    All events are held in memory. Raises RowNotFoundError if a delete finds no equal row in the table or among the
    earlier events.
    """
    names = [field.name for field in draft.schema.fields]
    row_columns = events.row_columns(names)
    lacking = [name for name in names if name not in row_columns]
    if lacking:
        error = InvalidArgumentError(
            f"the events lack columns of {draft.name}: {', '.join(lacking)}. With key=None a row is identified by "
            "all of its columns. Nothing was written. Pass complete rows."
        )
        stage_truncates(draft, events, error)
        return
    draft.begin_verb()
    draft.act_as("delete")
    given = _in_order(events)
    kinds = kinds_of(given.column(events.op), events.op)
    resets = np.flatnonzero(kinds == Change.TRUNCATE)
    if len(resets):
        stage_delete(draft, None, mode="auto")
        given, kinds = given.slice(resets[-1] + 1), kinds[resets[-1] + 1 :]
    rows = _conformed(draft, given.select(row_columns))
    net = _NetEvents.of(_codes(rows), kinds == Change.UPSERT)
    _take_stored(draft, rows, net, is_emptied=len(resets) > 0)
    added = rows.take(pa.array(net.added))
    draft.add_batches(batch for batch in draft.conformed(added) if batch.num_rows)


def _in_order(events: ChangeEvents) -> pa.Table:
    """All events. Events of equal order keep the order of the input."""
    given = events.reader.read_all()
    if not events.order_by or not len(given):
        return given
    ranks = order_ranks(given.select(list(events.order_by)))
    return given.take(pa.array(np.argsort(ranks, kind="stable")))


def _conformed(draft: Draft, given: pa.Table) -> pa.Table:
    """The rows in the table's types. The table's constraints are not checked here, since deleted rows need not meet
    them."""
    schema = table_arrow_schema(draft.schema)
    return pa.Table.from_batches(ConformedRows(given.to_reader(), draft.schema), schema)


def _codes(rows: pa.Table) -> npt.NDArray[np.int64]:
    """A number for each row, starting at 0. Equal rows have equal numbers: null equals null, and NaN equals NaN."""
    if not len(rows):
        return np.empty(0, np.int64)
    compared = as_numbers(rows.rename_columns(_numbered_names(rows.num_columns)))
    places = pa.array(np.arange(len(rows)))
    columns = ", ".join(compared.column_names)
    with duckdb_connection() as connection:
        connection.register("events", compared.append_column(_PLACE, places))
        found = connection.sql(
            f"SELECT {_PLACE}, dense_rank() OVER (ORDER BY {columns}) - 1 AS {_CODE} FROM events ORDER BY {_PLACE}"
        ).to_arrow_table()
    codes: npt.NDArray[np.int64] = found.column(_CODE).to_numpy().astype(np.int64)
    return codes


def _numbered_names(count: int) -> list[str]:
    """Column names by position, because the names of two columns may differ only in case."""
    return [f"c{place}" for place in range(count)]


@dataclass(frozen=True, slots=True)
class _NetEvents:
    """The net effect of the events on each distinct row."""

    examples: npt.NDArray[np.int64]
    """For each code, the first event with it."""
    needed: npt.NDArray[np.int64]
    """For each code, the number of stored rows to delete: the deletes that no earlier insert provides a row for."""
    added: npt.NDArray[np.int64]
    """The events whose rows are added, ascending."""

    @classmethod
    def of(cls, codes: npt.NDArray[np.int64], is_insert: npt.NDArray[np.bool_]) -> _NetEvents:
        by_code = np.argsort(codes, kind="stable")
        heads = np.flatnonzero(np.diff(codes[by_code], prepend=-1))
        counts = np.diff(heads, append=len(codes))
        if not len(heads):
            return cls(heads, heads, heads)
        steps = np.where(is_insert[by_code], 1, -1)
        balance = np.cumsum(steps)
        balance -= np.repeat(balance[heads] - steps[heads], counts)
        needed = np.maximum(0, -np.minimum.reduceat(balance, heads))
        added = balance[heads + counts - 1] + needed
        # If rows are equal, the last ones are added.
        inserts = np.flatnonzero(is_insert[by_code])
        of_code = codes[by_code][inserts]
        places_left = np.bincount(of_code, minlength=len(heads)).cumsum()[of_code] - np.arange(len(inserts))
        return cls(by_code[heads], needed, np.sort(by_code[inserts[places_left <= added[of_code]]]))


def _take_stored(draft: Draft, rows: pa.Table, net: _NetEvents, *, is_emptied: bool) -> None:
    """Delete by position as many stored rows of each distinct row as the events need."""
    codes = np.flatnonzero(net.needed)
    if not len(codes):
        return
    wanted = rows.take(pa.array(net.examples[codes]))
    needed = net.needed[codes]
    if is_emptied:
        raise _not_found(draft, wanted, needed, np.zeros(len(codes), np.int64))
    # Concurrent appends do not change the rows that were found.
    tasks = draft.plan(_bounds(draft, wanted), may_match=lambda _: False)
    stored = FoundRows.of(tasks, draft.view)
    found, of_code = _equal_rows(draft, stored, wanted)
    by_code = np.argsort(of_code, kind="stable")
    counts = np.bincount(of_code, minlength=len(codes))
    if (counts < needed).any():
        raise _not_found(draft, wanted, needed, counts)
    rank = np.arange(len(found)) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = found[by_code][rank < needed[of_code[by_code]]]
    draft.delete_positions_in(stored.chosen(np.sort(taken)))


def _bounds(draft: Draft, wanted: pa.Table) -> BooleanExpression | None:
    """A filter that matches every row equal to a wanted one; None if no such filter can be stated."""
    bounds: BooleanExpression | None = None
    for field in draft.schema.fields:
        column = wanted.column(field.name)
        if not isinstance(field.field_type, PrimitiveType) or isinstance(field.field_type, FloatType | DoubleType):
            continue
        within = None if column.null_count else within_bounds(column, field)
        if within is not None:
            bounds = within if bounds is None else And(bounds, within)
    return bounds


def _equal_rows(
    draft: Draft, stored: FoundRows, wanted: pa.Table
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The numbers of the stored rows that equal a wanted row, ascending, and the numbers of these wanted rows."""
    context = ReadContext.of(draft.view)
    names = _numbered_names(wanted.num_columns)
    schema = as_numbers(context.arrow_schema.empty_table().rename_columns(names)).schema
    numbered = schema.append(pa.field(_PLACE, pa.int64()))
    equal = " AND ".join(f"stored.{name} IS NOT DISTINCT FROM wanted.{name}" for name in names)
    with duckdb_connection() as connection:
        codes = pa.array(np.arange(len(wanted)))
        connection.register("wanted", as_numbers(wanted.rename_columns(names)).append_column(_CODE, codes))
        batches = _numbered(read_tables(stored.to_read(), context), names)
        with streamed_input(connection, "stored", numbered, batches):
            found = connection.sql(
                f"SELECT {_PLACE}, {_CODE} FROM stored JOIN wanted ON {equal} ORDER BY {_PLACE}"
            ).to_arrow_table()
    return (
        found.column(_PLACE).to_numpy().astype(np.int64),
        found.column(_CODE).to_numpy().astype(np.int64),
    )


def _numbered(tables: Iterator[pa.Table], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    first = 0
    for table in tables:
        places = pa.array(np.arange(first, first + len(table)))
        first += len(table)
        yield from as_numbers(table.rename_columns(list(names))).append_column(_PLACE, places).to_batches()


def _not_found(
    draft: Draft, wanted: pa.Table, needed: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> RowNotFoundError:
    short = np.flatnonzero(counts < needed)
    row = wanted.slice(int(short[0]), 1).to_pylist()[0]
    return RowNotFoundError(
        f"{draft.name} lacks {len(short):,} different rows that the events delete. The first is {row}: "
        f"{needed[short[0]]:,} deleted, {counts[short[0]]:,} stored. Nothing was written. Apply the events in order "
        "to a copy of the source from before these events."
    )
