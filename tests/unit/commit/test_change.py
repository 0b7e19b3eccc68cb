"""The combinations of operation, kind and files that a table change accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commit_tables import data_file, new_table, position_delete, range_delete
from pyiceberg.table.snapshots import Operation

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange, operation_of
from tableformat.errors import InvalidArgumentError


def test_append_only_adds_rows_and_blind_change_removes_no_file(tmp_path: Path) -> None:
    """CP-3: other engines take an append for rows that were added and nothing else."""
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    data, deletes = data_file(table, "a.parquet"), range_delete(table, "r.parquet")
    removed: list[dict[str, Any]] = [{"removed_data_files": (data,)}, {"removed_delete_files": (deletes,)}]
    for files in ({"added_delete_files": (deletes,)}, *removed):
        with pytest.raises(InvalidArgumentError, match="an append can only add data files"):
            TableChange(operation=Operation.APPEND, kind=ChangeKind.SCAN_BASED, **files)
    for files in removed:
        with pytest.raises(InvalidArgumentError, match="cannot be blind"):
            TableChange(operation=Operation.DELETE, **files)
    of_committed = position_delete(table, "p.parquet", data, [0])
    with pytest.raises(InvalidArgumentError, match="cannot be blind"):
        TableChange(operation=Operation.DELETE, added_delete_files=(of_committed,))
    with pytest.raises(InvalidArgumentError, match=r"a\.parquet twice"):
        TableChange(operation=Operation.APPEND, added_data_files=(data, data))
    own = TableChange(operation=Operation.OVERWRITE, added_data_files=(data,), added_delete_files=(of_committed,))
    assert own.data_files_named_by_deletes == frozenset()


def test_rewrite_requires_the_old_sequence_number(tmp_path: Path) -> None:
    """CP-7: with a newer number they would be older than no delete, and deleted rows would be back."""
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    rewrite: dict[str, Any] = {"operation": Operation.REPLACE, "kind": ChangeKind.REWRITE, "planned_snapshot_id": 7}
    for number in (None, 3, 5):
        with pytest.raises(InvalidArgumentError, match="must have sequence number 4"):
            TableChange(
                **rewrite,
                planned_sequence_number=4,
                added_data_files=(data_file(table, "a.parquet", sequence_number=number),),
            )
    rewritten = data_file(table, "a.parquet", sequence_number=4)
    assert not TableChange(**rewrite, planned_sequence_number=4, added_data_files=(rewritten,)).is_empty


def test_operation_depends_on_added_and_removed_files(tmp_path: Path) -> None:
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    data, deletes = data_file(table, "a.parquet"), range_delete(table, "r.parquet")
    found = [operation_of(*each) for each in (([data], []), ([], [deletes]), ([data], [deletes]))]
    assert found == [Operation.APPEND, Operation.DELETE, Operation.OVERWRITE]
