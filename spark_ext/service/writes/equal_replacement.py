"""SQ-34: the option `replace-equal` of a write. Its rows replace all rows with the same values in some columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema

from spark_ext.service.writes.task_reports import TaskReport, typed_values
from tableformat.errors import InvalidArgumentError
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.delete_prefix import check_others_read_it, names_by_now
from tableformat.write.delete_files.equality_deletes import delete_columns
from tableformat.write.rows.distinct import distinct_rows

REPLACE_EQUAL: Final = "replace-equal"
_EXCLUDED: Final = ("replace-prefix", "replace-interval", "operation", "op-column", "order-by", "on-refused")


def equal_columns(named: Mapping[str, str]) -> tuple[str, ...]:
    """The columns in the option; empty if it is not set. Raises InvalidArgumentError for an empty name, and for options
    that exclude it."""
    if REPLACE_EQUAL not in named:
        return ()
    for other in _EXCLUDED:
        if other in named:
            raise InvalidArgumentError(
                f"options {REPLACE_EQUAL} and {other} cannot be combined. Nothing was written. Remove one of them."
            )
    names = tuple(name.strip() for name in named[REPLACE_EQUAL].split(","))
    if not all(names):
        raise InvalidArgumentError(
            f"option {REPLACE_EQUAL} must list columns, such as 'city,day', not {named[REPLACE_EQUAL]!r}."
        )
    return names


def checked_columns(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """The same columns, checked. DA-5: raises InvalidKeyError for a column that equality deletes do not support."""
    if names:
        delete_columns(schema, names)
    return tuple(names)


def values_to_replace(reports: Sequence[TaskReport], names: Sequence[str], schema: Schema) -> pa.Table | None:
    """The distinct values of the columns in the rows, in the types of the table's schema. None without columns."""
    streams = [report.prefixes for report in reports if report.prefixes is not None]
    if not names or not streams:
        return None
    found = distinct_rows(pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in streams]))
    return typed_values(found, schema)


def stage_replaced_values(draft: Draft, values: pa.Table | None, named_in: Schema) -> None:
    """Stage the delete of all rows with these values. CP-37: `named_in` is the schema of their column names."""
    if values is not None and values.num_rows:
        keys = values.rename_columns(names_by_now(values.column_names, named_in, draft.schema))
        check_others_read_it(draft, keys)
        draft.add_keys(keys)
