"""Procedures for range partitions: which ranges of a table exist (RP-8 to RP-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_ext.service.procedures.key_values import bound as values_of
from spark_ext.service.procedures.procedure import ANY, STRING_MAP, Parameter, Rows, array_of, not_null, procedure
from spark_ext.service.procedures.rewrites import DRY_RUN
from tableformat.operations.ranges.result import RangePartitionsResult
from tableformat.range_partitions.definition_text import range_partitions_of_text
from tableformat.range_partitions.model import Bound, bound
from tableformat.range_partitions.range_text import parse_end, parse_range
from tableformat.table import Table

_CHANGED: Final = pa.schema(
    [
        ("snapshot_id", pa.int64()),
        pa.field("added_ranges", pa.list_(pa.string()), nullable=False),
        pa.field("dropped_partitions", pa.list_(pa.string()), nullable=False),
        *not_null(pa.int64(), "removed_data_files_count", "removed_records_count", "removed_bytes"),
        *not_null(pa.int64(), "straddling_data_files_count", "uncovered_data_files_count"),
        *not_null(pa.int64(), "added_delete_files_count", "restored_data_files_count"),
        ("tag", pa.string()),
    ]
)
_LOWER: Final = Parameter("lower", ANY, "Values of the range columns: one value, or struct('a', 2); NULL is open.")
_UPPER: Final = Parameter("upper", ANY, "The same.")
_ENDS: Final = (
    _LOWER,
    _UPPER,
    Parameter("lower_inclusive", "boolean", "Whether lower is included; true by default."),
    Parameter("upper_inclusive", "boolean", "Whether upper is included; false by default."),
)
_METADATA_ONLY: Final = Parameter("metadata_only", "boolean", "Reject a drop that needs a delete file.")


@procedure(
    Parameter("options", STRING_MAP, "map('on', 'year', 'bounds', '[2011, 2016)', ...).", is_required=True),
    DRY_RUN,
    columns=_CHANGED,
)
def define_range_partitions(table: Table, *, options: Mapping[str, str], dry_run: bool = False) -> Rows:
    """Define range partitions for a table that has none. Rows outside of them are kept."""
    given = range_partitions_of_text(options, table.metadata.schema(), where="options")
    return [_row(table.range_partitions.define(given, dry_run=dry_run))]


@procedure(*_ENDS, DRY_RUN, columns=_CHANGED)
def add_range_partition(table: Table, *, dry_run: bool = False, **ends: Any) -> Rows:
    """Add a range."""
    return [_row(table.range_partitions.alter(add=[_bound(table, **ends)], dry_run=dry_run))]


@procedure(*_ENDS, _METADATA_ONLY, DRY_RUN, columns=_CHANGED)
def drop_range_partition(table: Table, *, metadata_only: bool = False, dry_run: bool = False, **ends: Any) -> Rows:
    """Drop whole partitions with their rows. Files inside a partition are removed without opening them."""
    changes = table.range_partitions
    return [_row(changes.alter(drop=[_bound(table, **ends)], metadata_only=metadata_only, dry_run=dry_run))]


@procedure(
    Parameter("at", ANY, "Values of the range columns at the new boundary.", is_required=True),
    DRY_RUN,
    columns=_CHANGED,
)
def split_range_partition(table: Table, *, at: Any, dry_run: bool = False) -> Rows:
    """Split the partition that contains the value."""
    value = values_of(table, at, table.range_partitions.on, argument="at")
    return [_row(table.range_partitions.alter(split=[value], dry_run=dry_run))]


@procedure(*_ENDS, DRY_RUN, columns=_CHANGED)
def merge_range_partitions(table: Table, *, dry_run: bool = False, **ends: Any) -> Rows:
    """Merge several adjacent partitions into one."""
    return [_row(table.range_partitions.alter(merge=[_bound(table, **ends)], dry_run=dry_run))]


@procedure(
    Parameter("add", array_of("string"), "Ranges as text, such as '[2011, 2016)'."),
    Parameter("drop", array_of("string"), "Whole partitions as text."),
    Parameter("split", array_of("string"), "New boundaries as text."),
    Parameter("merge", array_of("string"), "Partitions to merge into one, as text."),
    _METADATA_ONLY,
    DRY_RUN,
    columns=_CHANGED,
)
def alter_range_partitions(
    table: Table,
    *,
    add: Sequence[str] = (),
    drop: Sequence[str] = (),
    split: Sequence[str] = (),
    merge: Sequence[str] = (),
    metadata_only: bool = False,
    dry_run: bool = False,
) -> Rows:
    """Apply any number of changes in one commit."""
    on, schema = table.range_partitions.on, table.metadata.schema()
    result = table.range_partitions.alter(
        add=[parse_range(text, on, schema) for text in add],
        drop=[parse_range(text, on, schema) for text in drop],
        split=[parse_end(text, on, schema) for text in split],
        merge=[parse_range(text, on, schema) for text in merge],
        metadata_only=metadata_only,
        dry_run=dry_run,
    )
    return [_row(result)]


@procedure(Parameter("now", ANY, "The time or number at the window; the clock by default."), DRY_RUN, columns=_CHANGED)
def advance_range_partitions(table: Table, *, now: Any = None, dry_run: bool = False) -> Rows:
    """Move the window: add the steps ahead of now, and drop partitions older than the table's retention."""
    moment = values_of(table, now, table.range_partitions.on, argument="now")
    return [_row(table.range_partitions.advance(None if moment is None else moment[0], dry_run=dry_run))]


@procedure(*_ENDS, DRY_RUN, columns=_CHANGED)
def retire_range_partition(table: Table, *, dry_run: bool = False, **ends: Any) -> Rows:
    """Drop whole partitions and keep their files under a tag. restore_range_partition restores them from it."""
    given = _bound(table, **ends)
    result = table.range_partitions.retire(
        given.lower,
        given.upper,
        lower_inclusive=given.lower_inclusive,
        upper_inclusive=given.upper_inclusive,
        dry_run=dry_run,
    )
    return [_row(result)]


@procedure(
    Parameter("tag", "string", "The tag that retire_range_partition returned.", is_required=True),
    Parameter("deletes", "string", "apply or ignore: how to treat deletes that were committed since then."),
    DRY_RUN,
    columns=_CHANGED,
)
def restore_range_partition(table: Table, *, tag: str, deletes: str | None = None, dry_run: bool = False) -> Rows:
    """Restore the partitions that were retired under a tag."""
    return [_row(table.range_partitions.restore(tag, deletes=deletes, dry_run=dry_run))]


def _bound(
    table: Table, *, lower: Any = None, upper: Any = None, lower_inclusive: bool = True, upper_inclusive: bool = False
) -> Bound:
    """PR-20: the bounds of a range."""
    on = table.range_partitions.on
    return bound(
        values_of(table, lower, on, argument="lower"),
        values_of(table, upper, on, argument="upper"),
        lower_inclusive=lower_inclusive,
        upper_inclusive=upper_inclusive,
    )


def _row(result: RangePartitionsResult) -> dict[str, Any]:
    return {
        "snapshot_id": result.snapshot_id,
        "added_ranges": list(result.added),
        "dropped_partitions": list(result.dropped),
        "removed_data_files_count": result.removed_data_files_count,
        "removed_records_count": result.removed_row_count,
        "removed_bytes": result.removed_bytes,
        "straddling_data_files_count": result.straddling_data_files_count,
        "uncovered_data_files_count": result.uncovered_data_files_count,
        "added_delete_files_count": result.added_delete_files_count,
        "restored_data_files_count": result.restored_data_files_count,
        "tag": result.tag,
    }
