"""The procedure that erases rows from the whole history of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.procedures.conditions import Part, exact_condition
from spark_ext.service.procedures.key_values import prefix_table, source_prefixes
from spark_ext.service.procedures.procedure import ANY, Parameter, Rows, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN
from tableformat.errors import InvalidArgumentError
from tableformat.table import Table

_COUNTS: Final = ("erased_rows_count", "rewritten_data_files_count", "removed_files_count", "not_reached_count")


@procedure(
    Parameter("prefix", ANY, "named_struct('id1', 'a', ...), map('id1', 'a'), or an array of them."),
    Parameter("where", "string", "The rows to erase, instead of a prefix of the key.", role="condition"),
    Parameter("source", "string", "A table or view whose rows are the prefixes, instead of prefix.", role="rows"),
    DRY_RUN,
    columns=pa.schema(
        [
            *not_null(pa.int64(), *_COUNTS),
            *not_null(pa.bool_(), "is_complete"),
            *not_null(pa.string(), "certificate"),
        ]
    ),
    on_branch=False,
)
def erase(
    table: Table,
    *,
    prefix: Any = None,
    where: Sequence[Part] | None = None,
    source: pa.Table | None = None,
    dry_run: bool = False,
) -> Rows:
    """Erase rows from all snapshots, branches and tags of the table, and prove it. They cannot be brought back."""
    if [prefix, where, source].count(None) != 2:
        raise InvalidArgumentError("erase: give prefix, where, or source, a table or view whose rows are the prefixes.")
    condition = None if where is None else exact_condition(where, table, "erase")
    prefixes = None
    if prefix is not None:
        prefixes = prefix_table(table, prefix)
    elif source is not None:
        prefixes = source_prefixes(table, source)
    certificate = table.maintenance.erase(prefixes, where=condition, dry_run=dry_run)
    (found,) = certificate.tables
    return [
        {
            "erased_rows_count": found.erased_rows_count,
            "rewritten_data_files_count": len(found.rewritten_data_files),
            "removed_files_count": len(found.removed_files),
            "not_reached_count": len(found.not_reached),
            "is_complete": certificate.is_complete,
            "certificate": certificate.to_json(),
        }
    ]
