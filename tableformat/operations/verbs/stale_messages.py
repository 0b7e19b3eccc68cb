"""Messages that several writers staged, on a table with an order column: the commit leaves out stale messages and
remembers empty ones (CP-69, CP-71)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.types import NestedField

from tableformat.deletes.positions import PositionSet
from tableformat.errors import CommitConflictError
from tableformat.merge_on_read.task import FileScanTask
from tableformat.operations.row_lookup.newest_known import are_stale
from tableformat.operations.row_lookup.settled_messages import StagedRows, are_newest
from tableformat.operations.row_lookup.stale_rows import check_on_stale, stale_rows_error, with_reasons
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import names_by_now, stage_ordered_deletes, stage_prefixes
from tableformat.properties import ORDER_COLUMN
from tableformat.write.context import WriteContext
from tableformat.write.rows.distinct import row_codes, rows_among
from tableformat.write.rows.replacing_rows import in_types_of
from tableformat.write.staged import StagedFiles, StagedMessages


def stage_replaced(
    draft: Draft,
    context: WriteContext,
    staged: StagedFiles,
    prefixes: pa.Table | None,
    *,
    order_by: Sequence[str],
    on_stale: str,
) -> None:
    """Stage the delete of the prefixes that the staged rows replace. The draft has already adopted and settled these
    rows (CP-68).

    The arguments are the same as for `fresh_prefixes`.
    """
    prefixes = fresh_prefixes(draft, context, staged, prefixes, order_by=order_by, on_stale=on_stale)
    for each in (prefixes, staged.covered):
        if each is not None and each.num_rows:
            stage_prefixes(draft, each, named_in=context.schema)


def fresh_prefixes(
    draft: Draft,
    context: WriteContext,
    staged: StagedFiles,
    prefixes: pa.Table | None,
    *,
    order_by: Sequence[str],
    on_stale: str,
) -> pa.Table | None:
    """Delete the staged rows of stale messages, and stage the deletes of empty messages. Return the other prefixes,
    whose stored rows are still to be deleted.

    `context`: the context that the rows were written in. `prefixes`: the prefixes of all messages. `order_by`: the
    columns whose values the messages have.
    """
    column = draft.order.column()
    check_on_stale(on_stale, column, table=draft.name)
    if column is None or not staged.messages:
        return prefixes
    settled = _settled(draft, context, staged.messages, order_by, column)
    _leave_out(draft, context, staged, settled, on_stale)
    stage_ordered_deletes(draft, settled.rows.filter(pa.array(settled.are_empty & ~settled.are_stale)), column)
    own = settled.written.filter(pa.array(settled.are_empty | settled.are_stale))
    return None if prefixes is None else prefixes.filter(pa.array(~rows_among(prefixes, own)))


@dataclass(frozen=True, slots=True)
class _Settled:
    """The newest message of each prefix."""

    column: NestedField
    written: pa.Table
    """The prefixes, with the column names at the time of writing."""
    rows: pa.Table
    """The prefixes followed by the order column, with their current names in the table."""
    parts: tuple[tuple[int, ...], ...]
    """For each message, the parts with its rows."""
    are_empty: npt.NDArray[np.bool_]
    are_stale: npt.NDArray[np.bool_]


def _settled(
    draft: Draft, context: WriteContext, parts: Sequence[StagedMessages], order_by: Sequence[str], column: NestedField
) -> _Settled:
    prefixes = pa.concat_tables([part.prefixes for part in parts]).combine_chunks()
    place = _place_of_order(draft, context, order_by, column)
    orders = pa.concat_tables([_orders(part) for part in parts], promote_options="permissive").combine_chunks()
    newest = np.flatnonzero(are_newest(parts, prefixes))
    part_of = np.repeat(np.arange(len(parts)), [part.prefixes.num_rows for part in parts])[newest]
    codes = row_codes(prefixes.take(pa.array(newest)))
    _, first = np.unique(codes, return_index=True)
    examples = pa.array(newest[first])
    written = prefixes.take(examples)
    names = names_by_now(written.column_names, context.schema, draft.schema)
    rows = in_types_of(
        draft.schema,
        written.rename_columns(names).append_column(column.name, orders.column(place).take(examples)),
    )
    in_order = np.argsort(codes, kind="stable")
    groups = np.split(part_of[in_order], np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []
    with_rows = tuple(tuple(int(part) for part in group if parts[part].file_paths) for group in groups)
    return _Settled(
        column=column,
        written=written,
        rows=rows,
        parts=with_rows,
        are_empty=np.array([not each for each in with_rows], np.bool_),
        are_stale=are_stale(draft, rows, column) if len(rows) else np.zeros(0, np.bool_),
    )


def _orders(part: StagedMessages) -> pa.Table:
    assert part.orders is not None, "checked earlier: the messages have the order column"
    return part.orders


def _place_of_order(draft: Draft, context: WriteContext, order_by: Sequence[str], column: NestedField) -> int:
    """The position of the order column among the columns `order_by`. Raises CommitConflictError if it is not one of
    them."""
    ids = [context.schema.find_field(name).field_id if name in _names(context) else None for name in order_by]
    if column.field_id not in ids:
        raise CommitConflictError(
            f"the property {ORDER_COLUMN} of {draft.name} was set while rows were written, but their messages have "
            f"no value of {column.name!r}. Nothing was changed. Write the rows again; a stream must be restarted."
        )
    return ids.index(column.field_id)


def _names(context: WriteContext) -> set[str]:
    return {field.name for field in context.schema.fields}


def _leave_out(draft: Draft, context: WriteContext, staged: StagedFiles, settled: _Settled, on_stale: str) -> None:
    """Delete the rows of stale messages by position in the files that were staged."""
    if not settled.are_stale.any():
        return
    if on_stale == "error":
        stale = settled.rows.filter(pa.array(settled.are_stale))
        count = stale.num_rows
        example = stale.slice(0, 1).to_pylist()[0]
        raise stale_rows_error(count, example, settled.column, what="message is" if count == 1 else "messages are")
    rows = StagedRows(draft, context, {data.file_path: data for data in staged.data_files})
    draft.order.stale_row_count += int((settled.are_stale & settled.are_empty).sum())
    of_parts: dict[int, list[int]] = {}
    for number in np.flatnonzero(settled.are_stale):
        for part in settled.parts[number]:
            of_parts.setdefault(part, []).append(int(number))
    for part, numbers in of_parts.items():
        found = list(rows.of(staged.messages[part].file_paths, settled.written.take(pa.array(numbers))))
        draft.order.stale_row_count += sum(len(positions) for _, positions in found)
        if on_stale == "divert":
            _divert(draft, rows, found, settled.column)
        draft.delete_positions_in(found)


def _divert(
    draft: Draft, rows: StagedRows, found: Sequence[tuple[FileScanTask, PositionSet]], column: NestedField
) -> None:
    for table in rows.read(found, None):
        draft.order.diverted.append(with_reasons(table, pa.nulls(len(table), pa.int64()), column))
