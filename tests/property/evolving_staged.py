"""Steps whose commit comes later, when the table may have other columns, partitions or another version: rows that other
processes staged, and snapshots that wait to be cherry-picked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evolving_operations import last_of_each, verbs_for
from evolving_tables import EvolvingTable, arrow_of
from evolving_values import KnownRow, Rows, are_alike, rows_in, value_at
from pyiceberg.types import NestedField, PrimitiveType

import tableformat as tf
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.errors import (
    CommitConflictError,
    InvalidArgumentError,
    InvalidKeyError,
    TableFormatError,
    UnsupportedFeatureError,
)
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.operations.staged_write import StagedWrite
from tableformat.testing.key_order import is_covered, sort_keys
from tableformat.testing.ref_machine import Publication, Staged, publication_of
from tableformat.write.staged import StagedFiles

_STAGING: Final = "staging"
_AT_MOST: Final = 3


@dataclass(frozen=True, slots=True)
class StagedRows:
    """The result of a writer of `new_write`, and the rows that it replaces."""

    write: StagedWrite
    staged: StagedFiles
    rows: Rows
    columns: tuple[NestedField, ...] = ()
    """The columns that identify the replaced rows, in their state when the write began."""
    bounds: tuple[tuple[object, ...] | None, tuple[object, ...] | None] | None = None
    """The bounds of an interval; None: all rows that have equal values in the columns."""

    def replaced(self, before: Rows) -> Rows:
        """The existing rows that are not replaced."""
        if not self.columns:
            return before
        if self.bounds is None:
            return tuple(
                row for row in before if not any(are_alike(row.values, new.values, self.columns) for new in self.rows)
            )
        return tuple(row for row in before if not self._is_inside(row))

    def _is_inside(self, row: KnownRow) -> bool:
        assert self.bounds is not None
        return is_covered(tuple(value_at(row.values, (each,)) for each in self.columns), *self.bounds)


def stage_rows(known: EvolvingTable) -> None:
    pick, table = known.random, known.handle(known.random.choice(known.branches))
    if len(known.staged) >= _AT_MOST:
        return
    schema, before = table.metadata.schema(), known.rows_of(table)
    new = known.new_rows(schema, before)
    key = [schema.find_field(name) for name in table.key]
    kind = pick.choice(("append", "replace", "replace-interval"))
    if kind == "replace" and key:
        new = last_of_each(new, key)
        columns = tuple(key[: pick.choice((1, 2))])
        write = table.new_write(kind=kind, prefix=[each.name for each in columns])
        found = StagedRows(write, write.write(arrow_of(table, new)), new, columns)
    elif kind == "replace-interval" and before:
        found = _staged_interval(known, table, before, new)
    else:
        write = table.new_write()
        found = StagedRows(write, write.write(arrow_of(table, new)), new)
    known.log.append(f"stage {kind} {[each.name for each in found.columns]} {found.bounds} {rows_in(new, schema)}")
    known.staged.append(found)


def _staged_interval(known: EvolvingTable, table: tf.Table, before: Rows, new: Rows) -> StagedRows:
    pick, schema = known.random, table.metadata.schema()
    fields = [each for each in schema.fields if isinstance(each.field_type, PrimitiveType)]
    columns = tuple(pick.sample(fields, min(len(fields), pick.choice((1, 2)))))
    ends = [tuple(value_at(row.values, (each,)) for each in columns) for row in pick.choices(before, k=2)]
    lower, upper = sorted(ends, key=sort_keys)
    bounds = (lower, upper) if pick.random() < 0.6 else (lower, None)
    write = table.new_write(
        kind="replace-interval", on=[each.name for each in columns], lower=bounds[0], upper=bounds[1]
    )
    inside = StagedRows(write, StagedFiles(), new, columns, bounds)
    rows = tuple(row for row in new if inside._is_inside(row))
    return StagedRows(write, write.write(arrow_of(table, rows)), rows, columns, bounds)


def commit_staged(known: EvolvingTable) -> None:
    """CP-37: the columns are the ones of the time when the rows were written."""
    if not known.staged:
        return
    found: StagedRows = known.staged.pop(known.random.randrange(len(known.staged)))
    branch = known.random.choice(known.branches)
    table = known.handle(branch)
    before, schema = known.rows_of(table), table.metadata.schema()
    known.log.append(f"commit staged {rows_in(found.rows, schema)} to {branch}")
    after = (*found.replaced(before), *found.rows)
    has_columns = all(schema.find_column_name(each.field_id) is not None for each in found.columns)
    try:
        table.commit(found.write, [found.staged])
    except (InvalidArgumentError, InvalidKeyError, UnsupportedFeatureError) as error:
        is_fixed = isinstance(error, UnsupportedFeatureError) and "fixed" in str(error)
        if has_columns and not is_fixed and _leads_the_key(found, table):
            raise
        known.log.append(f"  refused: {error}")
        after = before
    except CommitConflictError as error:
        if "clean_expired_metadata has removed" not in str(error):
            raise
        known.log.append(f"  refused: {error}")
        after = before
    else:
        assert has_columns, "rows were replaced by a column that is gone"
    known.settle(known.handle(branch), after)


def _leads_the_key(found: StagedRows, table: tf.Table) -> bool:
    """RD-5: whether the prefixes of a replacement are prefixes of the current key."""
    schema = table.metadata.schema()
    lead = {schema.find_field(name).field_id for name in table.key[: len(found.columns)]}
    return found.bounds is not None or {each.field_id for each in found.columns} == lead


def stage_snapshot(known: EvolvingTable) -> None:
    """A commit on a branch that is dropped again."""
    table = known.handle()
    if table.snapshot_id is None or len(known.waiting) >= _AT_MOST:
        return
    before = known.rows_of(table)
    known.log.append("stage a snapshot:")
    table.create_branch(_STAGING)
    staging = known.handle(_STAGING)
    try:
        after = known.random.choice(verbs_for(staging, before))(known, staging, before)
    except UnsupportedFeatureError as error:
        known.log.append(f"  refused: {error}")
        after = before
    known.wait_for_upkeep()
    staging = known.handle(_STAGING)
    known.settle(staging, after)
    head = staging.snapshot_id
    known.handle().drop_branch(_STAGING)
    if head is not None and head != table.snapshot_id:
        known.waiting.append(Staged(head, before, after))


def publish_snapshot(known: EvolvingTable) -> None:
    """SP-24, CP-23, CP-33: an append is added. Any other change moves the branch if it is at the parent, and otherwise
    does nothing."""
    if not known.waiting:
        return
    staged: Staged = known.random.choice(known.waiting)
    branch = known.random.choice(known.branches)
    table = known.handle(branch)
    before, expected = known.rows_of(table), publication_of(table, staged)
    known.log.append(f"publish {staged.snapshot_id} to {branch}, which is to be {expected}")
    try:
        cherrypick(table.iceberg, branch, staged.snapshot_id)
    except TableFormatError as error:
        known.log.append(f"  refused: {error}")
        assert expected is None or staged in known.published, "a staged snapshot was refused"
        known.settle(known.handle(branch), before)
        return
    assert expected is not None, "a snapshot was published that must not be"
    known.published.append(staged)
    if expected is Publication.ADDED:
        known.settle(known.handle(branch), (*before, *staged.appended))
    else:
        table = known.handle(branch)
        assert {row.number for row in known.rows_of(table)} == {row.number for row in staged.rows}
        head = table.view.snapshot
        assert head is not None
        assert head.snapshot_id == staged.snapshot_id or changes_no_row(head)
