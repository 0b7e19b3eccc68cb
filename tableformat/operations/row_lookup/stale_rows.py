"""Leaves out rows, messages and change events that are older than what the table has for their keys (CP-69)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from tableformat.errors import InvalidArgumentError, StaleRowsError
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.key_rows import portions
from tableformat.operations.row_lookup.newest_known import Flags, are_stale
from tableformat.operations.staging.draft import Draft
from tableformat.properties import ORDER_COLUMN
from tableformat.write.rows.conform import Conformer

ON_STALE: Final = ("ignore", "error", "divert")


def fresh_rows(
    draft: Draft, names: Sequence[str], order: NestedField | None, on_stale: str
) -> Callable[[pa.RecordBatchReader, str], pa.RecordBatchReader] | None:
    """CP-69: a function that removes stale rows from a reader. Its second argument is the name of the column with the
    indexes of the rows. None for a table without an order column.

    `names`: leading key columns, within whose values rows are older or newer. All rows with the same values in these
    columns have the same value in the order column.
    """
    check_on_stale(on_stale, order, table=draft.name)
    return None if order is None else partial(_fresh, draft, names, order, on_stale)


def check_on_stale(on_stale: str, order: NestedField | None, *, table: str) -> None:
    """CP-69: raise InvalidArgumentError for an unknown value, and for a value that would have no effect."""
    one_of(on_stale, ON_STALE, option="on_stale")
    if order is None and on_stale != "ignore":
        raise InvalidArgumentError(
            f"on_stale={on_stale!r}: {table} has no order column, so no row is stale. Nothing was written. Set an "
            f"order column with set_properties({{{ORDER_COLUMN!r}: ...}})."
        )


def check_has_order(given: Sequence[str], order: NestedField, what: str) -> None:
    """CP-69: raise InvalidArgumentError for rows without the order column, because all of them would count as the
    oldest."""
    if order.name not in given:
        raise InvalidArgumentError(
            f"{what} lack {order.name!r}, the order column of the table ({ORDER_COLUMN}). Nothing was written. Add "
            "the column, or remove the property."
        )


def stale_rows_error(count: int, example: dict[str, object], order: NestedField, *, what: str) -> StaleRowsError:
    return StaleRowsError(
        f"{count:,} {what} older than a stored or deleted row with the same key, the first {example}: the table "
        f"compares {order.name!r}. Nothing was written. on_stale='ignore' skips these rows; 'divert' returns them."
    )


def _fresh(
    draft: Draft, names: Sequence[str], order: NestedField, on_stale: str, rows: pa.RecordBatchReader, number: str
) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for portion in portions(rows):
            stale = _are_stale(draft, portion, names, order)
            if stale.any():
                _leave_out(draft, portion.filter(pa.array(stale)), [*names, order.name], order, on_stale, number)
            yield from portion.filter(pa.array(~stale)).to_batches()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _are_stale(draft: Draft, portion: pa.Table, names: Sequence[str], order: NestedField) -> Flags:
    """Which rows are stale. A row with a value that does not fit the table is not stale: it is refused later."""
    given = portion.select([*names, order.name])
    conformer = Conformer(given.schema, Schema(*(draft.schema.find_field(name) for name in given.column_names)))
    conformed = [conformer.conform(batch) for batch in given.to_batches()]
    fits = [np.ones(batch.num_rows, np.bool_) for batch in given.to_batches()]
    for each, flags in zip(conformed, fits, strict=True):
        if each.refused is not None:
            flags[each.refused.positions] = False
    stale = np.concatenate(fits)
    if stale.any():
        stale[stale] = are_stale(draft, pa.Table.from_batches([each.batch for each in conformed]), order)
    return stale


def _leave_out(
    draft: Draft, stale: pa.Table, shown: Sequence[str], order: NestedField, on_stale: str, number: str
) -> None:
    if on_stale == "error":
        count = stale.num_rows
        example = stale.select(list(shown)).slice(0, 1).to_pylist()[0]
        raise stale_rows_error(count, example, order, what="row is" if count == 1 else "rows are")
    draft.order.stale_row_count += stale.num_rows
    if on_stale == "divert":
        draft.order.diverted.append(with_reasons(stale.drop_columns([number]), stale.column(number), order))


def with_reasons(rows: pa.Table, indexes: pa.ChunkedArray, order: NestedField) -> pa.Table:
    """Stale rows in the form of refused rows. `indexes`: their positions in the caller's input."""
    columns = {
        "_row_index": indexes,
        "_refused_column": pa.repeat(pa.scalar(order.name, pa.large_string()), len(rows)),
        "_refused_reason": pa.repeat(
            pa.scalar("older than what the table has for the key", pa.large_string()), len(rows)
        ),
    }
    for name, values in columns.items():
        rows = rows.append_column(name, values)
    return rows
