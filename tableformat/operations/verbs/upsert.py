"""`upsert`: add rows and delete the older rows with the same key. Stored rows are read only to keep their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.kept_columns import stage_keeping
from tableformat.operations.row_lookup.stale_rows import check_has_order, fresh_rows
from tableformat.operations.staging.draft import Draft
from tableformat.write.rows.order_column import with_order_column
from tableformat.write.rows.replacing_rows import ReplacingRows, order_columns
from tableformat.write.rows.rows import as_reader
from tableformat.write.rows.unique_keys import with_unique_keys

MISSING: Final = ("error", "null", "keep")


def upsert(
    draft: Draft,
    *,
    rows: Any,
    order_by: str | Sequence[str] | None = None,
    on_refused: str = "fail",
    missing: str = "error",
    on_stale: str = "ignore",
) -> None:
    """Stage the rows, and equality deletes of their keys, which delete the older rows with these keys.

    CP-67: raises DuplicateKeyError if two rows have one key. With `order_by` only the newest rows of each key count
    (CP-66). On a table with an order column they are compared with the table, and stale rows are left out (CP-69).
    `missing`: the handling of columns that the rows lack; only "keep" reads the table. A diverted row takes all rows of
    its key along, so that no older state of the key is stored as the newest (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    one_of(missing, MISSING, option="missing")
    key = draft.key_names
    column = draft.order.column()
    order = with_order_column(order_columns(order_by, key), column)
    given = as_reader(rows, schema=arrow_schema(draft.schema))
    if column is not None:
        check_has_order(given.schema.names, column, "the rows")
    draft.begin_verb()
    chosen = ReplacingRows(
        given,
        draft.schema,
        key=key,
        prefix=key,
        order_by=order,
        memory_bytes=draft.context.memory_bytes // 4,
        fresh=fresh_rows(draft, key, column, on_stale),
    )
    reader = chosen.to_reader()
    lacking = lacking_columns(draft, [name for name in reader.schema.names if name != chosen.numbered_by])
    if missing == "keep" and lacking:
        if on_refused == "divert":
            raise InvalidArgumentError(
                "missing='keep' is only supported with on_refused='fail': rows are completed before they are "
                "checked. Nothing was written. Pass all columns to divert rows."
            )
        stage_keeping(draft, reader, lacking, numbered_by=chosen.numbered_by)
        return
    conformed = draft.conformed(reader, on_refused, whole_groups=key, numbered_by=chosen.numbered_by)
    if missing == "error":
        if lacking:
            raise lacking_error(
                lacking,
                "the rows to upsert",
                "upsert(rows, missing=...): 'keep' reads the stored rows and keeps their values, 'null'",
            )
        draft.replaces_whole_rows()
    unique = with_unique_keys(conformed, key, table=draft.name, memory_bytes=draft.context.key_memory_bytes)
    # The search for the newest rows, and the deleted keys, hold memory while other rows are written (MT-63).
    draft.add_rows(conformed, deleting_older(draft, unique, key), memory_bytes=draft.context.memory_bytes // 2)


def lacking_columns(draft: Draft, given: Sequence[str]) -> list[str]:
    """The table's columns that the rows lack. Key columns are not counted, since they are required."""
    known = {*given, *draft.key_names}
    return [name for field in draft.schema.fields if (name := field.name) not in known]


def lacking_error(lacking: Sequence[str], what: str, call: str) -> InvalidArgumentError:
    """The error for columns that the rows lack. CP-27: an upsert replaces whole rows, so the stored values of a missing
    column would be lost without the caller asking for it."""
    return InvalidArgumentError(
        f"{what} lack {', '.join(map(repr, lacking))}, but an upsert replaces whole rows. Nothing was written. Pass "
        f"all columns, or call {call} writes null or the column's default."
    )


def deleting_older(draft: Draft, batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches, unchanged. Before each one is yielded, its keys are staged as equality deletes."""
    for batch in batches:
        # A copy: the columns of a batch may share one buffer, and the keys are kept longer than the rows.
        copied = batch.select(list(key)).take(pa.array(np.arange(batch.num_rows)))
        draft.add_keys(pa.Table.from_batches([copied]))
        yield batch
