"""Procedures that delete rows without reading any, and the replacement of an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.procedures.column_names import as_spelled
from spark_ext.service.procedures.key_values import bound, prefix_table, source_prefixes, source_ranges
from spark_ext.service.procedures.procedure import ANY, Parameter, Rows, array_of, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.operations.options import CommitKeywords
from tableformat.operations.staging.result import CommitResult
from tableformat.table import Table

_DELETED = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        ("deleted_rows_count", pa.int64()),
        *not_null(pa.int32(), "added_delete_files_count"),
        *not_null(pa.bool_(), "already_applied"),
    ]
)
COMMIT: Final = (
    Parameter("application_id", "string", "With batch_id: repeated calls are committed only once."),
    Parameter("batch_id", "string", "The name of this call; whole numbers up to the largest applied one are skipped."),
    Parameter(
        "if_unchanged_since", "long", "Fail if rows were added to the scope after this snapshot; -1 is an empty table."
    ),
)
_MODE = Parameter("mode", "string", "auto, range, equality (prefixes only), or scan, which reads and counts the rows.")


@procedure(
    Parameter("prefix", ANY, "named_struct('id1', 'a', ...), map('id1', 'a'), or an array of them."),
    _MODE,
    DRY_RUN,
    *COMMIT,
    Parameter("source", "string", "A table or view whose rows are the prefixes, instead of prefix.", role="rows"),
    columns=_DELETED,
)
def delete_prefix(
    table: Table,
    *,
    prefix: Any = None,
    mode: str = "auto",
    dry_run: bool = False,
    source: pa.Table | None = None,
    **commit: Any,
) -> Rows:
    """Delete every row whose key begins with the prefix, or with a row of the source. No rows are read."""
    if (prefix is None) == (source is None):
        raise InvalidArgumentError(
            "delete_prefix: pass prefix, or source, a table or view whose rows are the prefixes."
        )
    prefixes = prefix_table(table, prefix) if source is None else source_prefixes(table, source)
    result = table.delete_prefix(prefixes, mode=mode, dry_run=dry_run, **named_commit(commit))
    return [_row(result)]


@procedure(
    Parameter("on", array_of("string"), "The columns of the range, the key by default."),
    Parameter("lower", ANY, "Inclusive values of the leading columns: struct('a', 2), an array, or one value."),
    Parameter("upper", ANY, "The same, exclusive; a NULL bound is open."),
    _MODE,
    DRY_RUN,
    *COMMIT,
    columns=_DELETED,
)
def delete_range(
    table: Table,
    *,
    on: Sequence[str] | None = None,
    lower: Any = None,
    upper: Any = None,
    mode: str = "auto",
    dry_run: bool = False,
    **commit: Any,
) -> Rows:
    """Delete the rows from lower (included) to upper (excluded). No rows are read."""
    if lower is None and upper is None:
        raise InvalidArgumentError("delete_range: pass lower or upper. To delete every row, use TRUNCATE TABLE.")
    columns = _known_columns(table, table.key if on is None else on)
    if not columns:
        why = f"{table.name} has no key" if on is None else "the array is empty"
        raise InvalidArgumentError(f"delete_range: pass columns, on => array('a', 'b'); {why}.")
    result = table.delete_range(
        on=None if on is None else list(columns),
        lower=bound(table, lower, columns, argument="lower"),
        upper=bound(table, upper, columns, argument="upper"),
        mode=mode,
        dry_run=dry_run,
        **named_commit(commit),
    )
    return [_row(result)]


@procedure(
    Parameter("source", "string", "A table or view whose rows are the ranges.", True, role="ranges"),
    _MODE,
    DRY_RUN,
    *COMMIT,
    columns=_DELETED,
)
def delete_ranges(table: Table, *, source: pa.Table, mode: str = "auto", dry_run: bool = False, **commit: Any) -> Rows:
    """Delete the ranges given by the rows of the source. No row of this table is read."""
    result = table.delete_ranges(source_ranges(table, source), mode=mode, dry_run=dry_run, **named_commit(commit))
    return [_row(result)]


@procedure(
    Parameter("source", "string", "The table whose rows replace the interval.", True, role="other_table"),
    Parameter("on", array_of("string"), "The columns of the interval.", is_required=True),
    Parameter("lower", ANY, "Inclusive values of the first of these columns: struct('a', 2), an array, or one value."),
    Parameter("upper", ANY, "The same, exclusive; a NULL bound is open."),
    Parameter("blind", "boolean", "Write a range delete without reading any file."),
    DRY_RUN,
    *COMMIT,
    columns=pa.schema(
        [
            ("snapshot_id", pa.int64()),
            *not_null(pa.int64(), "added_rows_count"),
            ("deleted_rows_count", pa.int64()),
            *not_null(pa.int32(), "added_delete_files_count"),
            *not_null(pa.bool_(), "already_applied"),
        ]
    ),
)
def replace_interval(
    table: Table,
    *,
    source: Table,
    on: Sequence[str],
    lower: Any = None,
    upper: Any = None,
    blind: bool = False,
    dry_run: bool = False,
    **commit: Any,
) -> Rows:
    """Replace the rows of an interval by those in another table. All new rows must lie in the interval."""
    columns = _known_columns(table, on)
    result = table.replace_interval(
        source.scan().to_batches(),
        on=list(columns),
        lower=bound(table, lower, columns, argument="lower"),
        upper=bound(table, upper, columns, argument="upper"),
        blind=blind,
        dry_run=dry_run,
        **named_commit(commit),
    )
    return [{**_row(result), "added_rows_count": result.added_row_count}]


def _known_columns(table: Table, on: Sequence[str]) -> tuple[str, ...]:
    known = [field.name for field in table.metadata.schema().fields]
    columns = tuple(as_spelled(name, known) for name in on)
    for name in columns:
        if name not in known:
            raise UnknownColumnError(name, known, where="on")
    return columns


def named_commit(commit: Mapping[str, Any]) -> CommitKeywords:
    """SP-99, CP-83: the options of a commit. An option that is NULL is omitted (PR-1)."""
    given: CommitKeywords = {}
    if commit.get("application_id") is not None:
        given["application_id"] = commit["application_id"]
    if commit.get("batch_id") is not None:
        given["batch_id"] = commit["batch_id"]
    if commit.get("if_unchanged_since") is not None:
        given["if_unchanged_since"] = commit["if_unchanged_since"]
    return given


def _row(result: CommitResult) -> dict[str, int | None]:
    return {
        "snapshot_id": result.snapshot_id,
        "deleted_rows_count": result.deleted_row_count,
        "added_delete_files_count": result.added_delete_files_count,
        "already_applied": result.already_applied,
    }
