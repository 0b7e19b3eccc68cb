"""`revert` and `restore_rows`: undo one commit, or a part of it, and keep the later commits."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from tableformat.changes.changes import Changes
from tableformat.changes.range import ChangeRange, parent_of
from tableformat.deletes.spans.spans import sort_and_merge, spans_of_prefixes
from tableformat.errors import InvalidArgumentError, RevertConflictError
from tableformat.filters.predicate import Where
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.row_lookup.covered_rows import take_covered
from tableformat.operations.row_lookup.exact_nanoseconds import as_numbers
from tableformat.operations.row_lookup.key_rows import portions, within_bounds
from tableformat.operations.row_lookup.lookup import rows_of_keys
from tableformat.operations.staging.draft import Draft
from tableformat.operations.verbs.overwrite import stage_overwrite
from tableformat.parquet.array_forms import rows_as
from tableformat.scan.scan import Scan
from tableformat.storage.duckdb_connection import duckdb_connection
from tableformat.write.rows.conform import table_arrow_schema
from tableformat.write.rows.distinct import distinct_rows


def revert(draft: Draft, *, snapshot_id: int) -> None:
    """CP-89: restore the rows before the snapshot, for the keys whose rows it changed. The change is staged.

    Raises InvalidArgumentError if the snapshot is not in the history of the branch or changed no row. Raises
    RevertConflictError if a later commit changed rows with one of these keys, InvalidKeyError for a table without a
    key, and SnapshotNotFoundError if the parent of the snapshot has expired. A concurrent change of such a row is a
    conflict of the commit (CP-5).
    """
    key = list(draft.key_names)
    after = _view_of(draft, snapshot_id)
    parent = None if after.snapshot is None else parent_of(after, after.snapshot)
    before = replace(after, snapshot=parent)
    keys = _changed_keys(draft, after, key)
    if not keys.num_rows:
        raise InvalidArgumentError(
            f"snapshot {snapshot_id} changed no row of {draft.name}, so there is nothing to revert. Nothing was "
            "changed. history() lists the snapshots, and changes() the rows that they changed."
        )
    draft.begin_verb()
    for portion in portions(keys.to_batches()):
        now = _take(draft, portion)
        _refuse_later_changes(draft, snapshot_id, now, rows_of_keys(after, portion), key)
        draft.add_batches(draft.conformed(rows_of_keys(before, portion)))


def restore_rows(draft: Draft, *, state: SnapshotView, where: Where) -> None:
    """CP-90: replace the matching rows with those of an earlier snapshot, in the columns of the table's current schema.
    The change is staged."""
    then = Scan(replace(state, schema=state.metadata.schema()), where)
    stage_overwrite(draft, then.to_arrow_batch_reader(), where)


def _view_of(draft: Draft, snapshot_id: int) -> SnapshotView:
    """The snapshot, read with the current schema."""
    line = ancestors(draft.view.metadata, draft.view.snapshot)
    found = next((each for each in line if each.snapshot_id == snapshot_id), None)
    if found is None:
        raise InvalidArgumentError(
            f"snapshot {snapshot_id} is not in the history of {draft.name}, branch {draft.branch}; history() lists its "
            "snapshots. Nothing was changed."
        )
    return replace(draft.view, snapshot=found)


def _changed_keys(draft: Draft, after: SnapshotView, key: list[str]) -> pa.Table:
    """The distinct keys of the rows that the snapshot deleted and inserted."""
    assert after.snapshot is not None, "the snapshot was found by its id"
    commit = ChangeRange(after, after.snapshot.parent_snapshot_id, (after.snapshot,))
    rows = Changes(commit, columns=key).to_arrow()
    target = table_arrow_schema(draft.schema)
    return distinct_rows(rows_as(rows, pa.schema([target.field(name) for name in key])))


def _take(draft: Draft, keys: pa.Table) -> pa.Table:
    """The current rows of the keys, staged as deleted."""
    spans = sort_and_merge(spans_of_prefixes(KeyColumns.of(draft.schema, draft.key_field_ids), keys))
    within = within_bounds(keys.column(0), draft.schema.find_field(keys.column_names[0]))
    wanted = table_arrow_schema(draft.schema)
    found = [rows_as(rows, wanted) for rows in take_covered(draft, spans, within, wanted.names)]
    return pa.concat_tables(found) if found else pa.Table.from_batches([], wanted)


def _refuse_later_changes(draft: Draft, snapshot_id: int, now: pa.Table, then: pa.Table, key: list[str]) -> None:
    wanted = table_arrow_schema(draft.schema)
    changed = _different_rows(now, rows_as(then, wanted))
    if changed.num_rows:
        example = changed.select(key).slice(0, 1).to_pylist()[0]
        raise RevertConflictError(
            f"snapshot {snapshot_id} cannot be reverted: later commits changed {changed.num_rows:,} rows that it "
            f"wrote or deleted, the first with the key {example}. Nothing was changed. Revert the later commits "
            "first, newest first; changes(from_snapshot_id=...) lists their rows. Or restore only these keys with "
            "restore_rows()."
        )


def _different_rows(now: pa.Table, then: pa.Table) -> pa.Table:
    """Rows that occur more often in one of the tables. The surplus rows of `now` come first."""
    names = [f"column_{place}" for place in range(now.num_columns)]
    with duckdb_connection() as connection:
        connection.register("rows_now", as_numbers(now.rename_columns(names)))
        connection.register("rows_then", as_numbers(then.rename_columns(names)))
        different = connection.sql(
            "(FROM rows_now EXCEPT ALL FROM rows_then) UNION ALL (FROM rows_then EXCEPT ALL FROM rows_now)"
        ).to_arrow_table()
    return different.rename_columns(now.column_names)
