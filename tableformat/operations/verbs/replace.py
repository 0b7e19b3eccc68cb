"""`replace`: replace all rows of each key prefix without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tableformat.keys.key_columns import leading_columns
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.options import one_of
from tableformat.operations.row_lookup.stale_rows import check_has_order, fresh_rows
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import stage_ordered_deletes, stage_prefixes
from tableformat.write.rows.distinct import PrefixCollector, distinct_rows, rows_among
from tableformat.write.rows.order_column import with_order_column
from tableformat.write.rows.replacing_rows import ReplacingRows, covered_prefixes, order_columns
from tableformat.write.rows.rows import as_reader
from tableformat.write.rows.unique_keys import with_unique_keys


def replace(
    draft: Draft,
    *,
    rows: Any,
    prefix: Sequence[str] | None = None,
    order_by: str | Sequence[str] | None = None,
    cover: Any = None,
    on_refused: str = "fail",
    on_stale: str = "ignore",
) -> None:
    """Stage the rows, and the delete of every prefix that occurs in them. `prefix` is the whole key by default.

    CP-69: on a table with an order column, messages that are older than the stored rows of their prefix are left out.
    CP-66: with `order_by` only the newest rows of each prefix count, and markers add no row. `cover`: prefixes that are
    deleted in any case. CP-67: raises DuplicateKeyError if two rows have one key.

    The rows and the delete have the same sequence number. RD-2 is strict, so the new rows stay. A diverted row takes
    all rows of its prefix along, and the stored rows of this prefix stay (CP-24).
    """
    one_of(on_refused, ("fail", "divert"), option="on_refused")
    names = leading_columns(draft.key_names, prefix if prefix is not None else draft.key_names)
    covered = None if cover is None else covered_prefixes(cover, names, draft.schema)
    column = draft.order.column()
    order = with_order_column(order_columns(order_by, names), column)
    given = as_reader(rows, schema=arrow_schema(draft.schema))
    if column is not None:
        check_has_order(given.schema.names, column, "the rows")
    draft.begin_verb()
    chosen = ReplacingRows(
        given,
        draft.schema,
        key=draft.key_names,
        prefix=names,
        order_by=order,
        memory_bytes=draft.context.memory_bytes // 4,
        fresh=fresh_rows(draft, names, column, on_stale),
        order_column=None if column is None else column.name,
    )
    conformed = draft.conformed(chosen.to_reader(), on_refused, whole_groups=names, numbered_by=chosen.numbered_by)
    collector = PrefixCollector(conformed.schema, names)
    unique = with_unique_keys(conformed, draft.key_names, table=draft.name, memory_bytes=draft.context.key_memory_bytes)
    memory_bytes = draft.context.memory_bytes // 2 if order else None
    draft.add_rows(conformed, collector.through(unique), memory_bytes=memory_bytes)
    marked = chosen.marked
    if marked is not None and conformed.spoiled_groups is not None:
        marked = marked.filter(pa.array(~rows_among(marked.select(names), conformed.spoiled_groups)))
    if marked is not None and column is not None:
        stage_ordered_deletes(draft, marked, column)
        marked = None
    found = [each for each in (collector.prefixes, marked, covered) if each is not None and each.num_rows]
    if found:
        stage_prefixes(draft, found[0] if len(found) == 1 else distinct_rows(pa.concat_tables(found)))
