"""Deletes of one partition, and deletes by columns, with concurrent changes of specs and schemas (CP-12, CP-35)."""

from __future__ import annotations

import pytest
from commit_tables import (
    FaultyCatalog,
    append,
    committed,
    data_file,
    delete_blindly,
    equality_delete,
    live,
    new_table,
    planned,
    range_delete,
)
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ChangeKind
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError


def test_partition_delete_conflicts_with_new_spec(catalog: FaultyCatalog) -> None:
    """CP-12: rows written under the old spec lie in other partitions."""
    table = new_table(catalog, partitioned=True)
    table = commit_change(table, append(data_file(table, "a.parquet", partition=("x",)))).table
    scoped = delete_blindly(equality_delete(table, "e.parquet", partition=("x",)))
    assert live(commit_change(table, scoped).table) == {"a.parquet": 1, "e.parquet": 2}
    table = table.refresh()
    with table.update_spec() as update:
        update.add_identity("id")
    stale = delete_blindly(equality_delete(table, "f.parquet", partition=("x",)))
    with pytest.raises(CommitConflictError):
        commit_change(table, stale)
    on_new_spec = delete_blindly(equality_delete(table, "f.parquet", spec_id=1, partition=("x", 1)))
    with pytest.raises(CommitConflictError):
        commit_change(table, on_new_spec)


def test_global_delete_does_not_depend_on_specs(catalog: FaultyCatalog) -> None:
    """CP-12 concerns deletes that are limited to a partition, not those under an unpartitioned spec."""
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    with table.update_spec() as update:
        update.add_identity("region")
    table = commit_change(table, append(data_file(table, "b.parquet", spec_id=1, partition=("x",)))).table
    outcome = commit_change(table, delete_blindly(range_delete(table, "r.parquet")))
    assert live(outcome.table) == {"a.parquet": 1, "b.parquet": 2, "r.parquet": 3}


def test_default_spec_changed_during_the_commit(catalog: FaultyCatalog) -> None:
    """CP-12: the default spec is asserted, so the next attempt checks the specs again."""
    table = new_table(catalog, partitioned=True)
    table = commit_change(table, append(data_file(table, "a.parquet", partition=("x",)))).table

    def interfere() -> None:
        catalog.before = None
        with catalog.load_table("db.t").update_spec() as update:
            update.add_identity("id")

    catalog.before = interfere
    with pytest.raises(CommitConflictError):
        commit_change(table, delete_blindly(equality_delete(table, "e.parquet", partition=("x",))))


def test_column_dropped_during_the_commit_of_a_delete(catalog: FaultyCatalog) -> None:
    """CP-35: the schema is asserted, so the next attempt checks the columns again."""
    table = new_table(catalog)
    table = commit_change(table, append(data_file(table, "a.parquet"))).table

    def interfere() -> None:
        catalog.before = None
        with catalog.load_table("db.t").update_schema() as update:
            update.delete_column("region")

    catalog.before = interfere
    with pytest.raises(CommitConflictError):
        commit_change(table, delete_blindly(equality_delete(table, "e.parquet", equality_ids=(2,))))


def test_partition_delete_is_rejected_with_live_files_of_older_spec(catalog: FaultyCatalog) -> None:
    """CP-12: the delete has the default spec and would miss the rows of the other spec. It can be committed when these
    rows are gone, regardless of the other files."""
    table = new_table(catalog, partitioned=True)
    table = commit_change(table, append(data_file(table, "a.parquet", partition=("x",)))).table
    with table.update_spec() as update:
        update.add_identity("id")
    table = commit_change(table, append(data_file(table, "b.parquet", spec_id=1, partition=("x", 1)))).table
    scoped = delete_blindly(equality_delete(table, "e.parquet", spec_id=1, partition=("x", 1)))
    with pytest.raises(CommitConflictError):
        commit_change(table, scoped)
    emptied = planned(
        table, ChangeKind.SCAN_BASED, Operation.DELETE, removed_data_files=(committed(table, "a.parquet"),)
    )
    table = commit_change(table, emptied).table
    assert live(commit_change(table, scoped).table) == {"b.parquet": 2, "e.parquet": 4}


def test_partition_delete_of_older_spec_is_rejected(catalog: FaultyCatalog) -> None:
    """CP-12: all live files are of the default spec, and the delete is not."""
    table = new_table(catalog, partitioned=True)
    with table.update_spec() as update:
        update.add_identity("id")
    table = commit_change(table, append(data_file(table, "a.parquet", spec_id=1, partition=("x", 1)))).table
    with pytest.raises(CommitConflictError):
        commit_change(table, delete_blindly(equality_delete(table, "e.parquet", partition=("x",))))
