"""An update deletes rows by position and writes them again: deletes that were committed concurrently would miss the new
rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_tables import (
    append,
    committed,
    data_file,
    delete_blindly,
    equality_delete,
    new_table,
    planned,
    position_delete,
    range_delete,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    return commit_change(table, append(data_file(table, "a.parquet"), data_file(table, "b.parquet"))).table


def update_of_a(table: Table) -> TableChange:
    return planned(
        table,
        ChangeKind.SCAN_BASED,
        Operation.OVERWRITE,
        added_data_files=(data_file(table, "new.parquet"),),
        added_delete_files=(position_delete(table, "p.parquet", committed(table, "a.parquet"), [0]),),
        updated_data_files=(committed(table, "a.parquet"),),
    )


@pytest.mark.parametrize("make", [equality_delete, range_delete])
def test_update_conflicts_with_concurrent_keyed_delete(table: Table, make: object) -> None:
    """CP-6."""
    update = update_of_a(table)
    commit_change(table, delete_blindly(make(table, "k.parquet")))  # type: ignore[operator]
    with pytest.raises(CommitConflictError):
        commit_change(table, update)


def test_update_conflicts_with_position_delete_of_its_file(table: Table) -> None:
    """CP-6."""
    update = update_of_a(table)
    theirs = planned(
        table,
        ChangeKind.SCAN_BASED,
        Operation.DELETE,
        added_delete_files=(position_delete(table, "q.parquet", committed(table, "a.parquet"), [0]),),
    )
    commit_change(table, theirs)
    with pytest.raises(CommitConflictError):
        commit_change(table, update)


def test_update_allows_deletes_in_another_file(table: Table) -> None:
    """CP-6."""
    update = update_of_a(table)
    theirs = planned(
        table,
        ChangeKind.SCAN_BASED,
        Operation.DELETE,
        added_delete_files=(position_delete(table, "q.parquet", committed(table, "b.parquet"), [0]),),
    )
    commit_change(table, theirs)
    assert commit_change(table, update).committed
