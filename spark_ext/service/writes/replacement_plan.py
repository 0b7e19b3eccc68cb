"""The rows that a write replaces by key columns, as stated in its plan (SP-98, SP-106, SP-111)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_ext.service.wire.paths import path_of
from spark_ext.service.writes.row_operation import OPERATION, refuse_unordered
from spark_ext.service.writes.write_options import ON_REFUSED, REPLACE_PREFIX, WriteOptions
from tableformat.errors import UnsupportedFeatureError
from tableformat.keys.key_columns import leading_columns
from tableformat.keys.table_key import key_names
from tableformat.operations.row_lookup.stale_rows import check_on_stale
from tableformat.write.context import WriteContext
from tableformat.write.rows.order_column import order_column, with_order_column


def replacement(options: WriteOptions, context: WriteContext, *, table: str) -> dict[str, Any]:
    """The fields of a target about the replaced prefixes; for an operation, these are whole keys. SP-111: on a table
    with an order column, that column is one of the columns that order messages."""
    key = key_names(context.schema, context.key_field_ids)
    options.operation.check(key, options.order_by, table)
    if not (options.replace_prefix or options.operation.name or options.replace_equal):
        return {"replace_prefix": ()}
    column = order_column(context.properties, context.schema)
    refuse_unordered(column, options.operation.name, options.replace_equal, table)
    if options.replace_equal:
        return {"replace_prefix": ()}
    check_on_stale(options.on_stale, column, table=table)
    if column is not None and options.on_refused == "divert":
        raise UnsupportedFeatureError(
            f"option {ON_REFUSED} = 'divert' cannot be combined with {REPLACE_PREFIX} or {OPERATION}, because "
            f"{table} has an order column and files that lose diverted rows are rewritten. Nothing was written. "
            "Filter the rows first, or use table.replace() or table.upsert() in Python."
        )
    known = {field.name.casefold(): field.name for field in context.schema.fields}
    given = [known.get(name.casefold(), name) for name in options.order_by]
    return {
        "replace_prefix": tuple(key) if options.operation.name else leading_columns(key, options.replace_prefix),
        "order_by": with_order_column(given, column),
        "on_stale": options.on_stale,
    }


def key_plan(context: WriteContext, prefix: Sequence[str], order_by: Sequence[str]) -> dict[str, Any]:
    """The columns by which tasks sort rows. SP-98: tasks use this order to tell the messages of a prefix, and keys,
    apart."""
    key = key_names(context.schema, context.key_field_ids)
    sorts_rows = context.sorts_rows or bool(prefix)
    return {
        "key": [path_of(context.schema, field_id) for field_id in context.key_field_ids if sorts_rows],
        "prefix": list(prefix),
        "rest": [name for name in key if prefix and name not in prefix],
        "order_by": list(order_by),
    }
