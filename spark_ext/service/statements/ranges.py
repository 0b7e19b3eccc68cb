"""ALTER TABLE ... ADD and DROP RANGE PARTITION, and SHOW RANGE PARTITIONS."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from spark_ext.service.statements.statement import Rows, Statement, statement
from tableformat.range_partitions.cuts import Range
from tableformat.range_partitions.definition import range_of
from tableformat.range_partitions.model import Bound
from tableformat.range_partitions.property_text import range_partitions_of
from tableformat.range_partitions.range_text import parse_range
from tableformat.table import Table

_SHOWN = ("partition", "state", "file_count", "record_count", "total_bytes", "tag", "retired_at")


@statement("add_range_partition")
def add_range_partition(table: Table, said: Statement) -> None:
    """SQ-10: add a range. IF NOT EXISTS ignores a range that exists completely. A range that partly overlaps existing
    ones is an error."""
    given = _given(table, said)
    existing, meant = _existing(table, given)
    if said["if_not_exists"] and any(each.lower <= meant.lower and meant.upper <= each.upper for each in existing):
        return
    table.range_partitions.alter(add=[given])


@statement("drop_range_partition")
def drop_range_partition(table: Table, said: Statement) -> None:
    """SQ-10: drop whole partitions with their rows. IF EXISTS ignores a range without any existing partition."""
    given = _given(table, said)
    existing, meant = _existing(table, given)
    if said["if_exists"] and not any(each.meets(meant) for each in existing):
        return
    table.range_partitions.alter(drop=[given])


@statement("show_range_partitions")
def show_range_partitions(table: Table, said: Statement) -> Rows:
    """SQ-10: the list of RP-14, including retired ranges (RP-30)."""
    del said
    listed = table.range_partitions.list().select(list(_SHOWN))
    return [[_shown(value) for value in row.values()] for row in listed.to_pylist()]


def _shown(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def _given(table: Table, said: Statement) -> Bound:
    return parse_range(said["range"], table.range_partitions.on, table.metadata.schema())


def _existing(table: Table, given: Bound) -> tuple[tuple[Range, ...], Range]:
    """The existing ranges, and the range in the statement."""
    defined = range_partitions_of(table.metadata.properties, table.metadata.schema())
    assert defined is not None, "`range_partitions.on` is an error for a table without range partitions"
    return tuple(defined.bounds), range_of(defined.key, given)
