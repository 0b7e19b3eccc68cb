"""Deletion vectors that are removed with their data files, and the outcome of a commit that an error reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_tables import append, committed, data_file, equality_delete, new_table, planned, vector
from pyiceberg.table import Table

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind
from tableformat.commit.commit_status import CommitStatus, Sent
from tableformat.commit.transaction import commit_change
from tableformat.commit.vectors_of_removed_data import with_vectors_of_removed_data
from tableformat.metadata.snapshot_choice import head_view


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two data files with a vector each, in one Puffin file, and an equality delete."""
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"), properties={"format-version": "3"})
    files = [data_file(table, f"{name}.parquet") for name in "ab"]
    table = commit_change(table, append(*files)).table
    deletes = (
        vector(table, "v.puffin", files[0], content_offset=4),
        vector(table, "v.puffin", files[1], content_offset=44),
        equality_delete(table, "e.parquet"),
    )
    return commit_change(table, planned(table, ChangeKind.ROW_DELTA, added_delete_files=deletes)).table


def test_vectors_are_removed_only_with_their_data_files(table: Table) -> None:
    """CP-20: the vector of another data file in the same Puffin file stays, as do all other deletes."""
    head = head_view(table.metadata, table.io, "main")
    change = planned(table, ChangeKind.SCAN_BASED, removed_data_files=(committed(table, "a.parquet"),))
    found = with_vectors_of_removed_data(change, head)
    assert [(each.file_path[-8:], each.content_offset) for each in found.removed_delete_files] == [("v.puffin", 4)]
    assert with_vectors_of_removed_data(found, head) is found, "it is named once"


def test_change_without_removed_data_files_removes_no_vector(table: Table) -> None:
    """CP-20"""
    change = append(data_file(table, "c.parquet"))
    assert with_vectors_of_removed_data(change, head_view(table.metadata, table.io, "main")) is change


@pytest.mark.parametrize(
    ("sent", "snapshot_id", "text"),
    [
        (Sent.IN_FLIGHT, None, "did not confirm whether the change of the table was applied"),
        (Sent.APPLIED, None, "the change of the table was applied, and was interrupted"),
        (Sent.IN_FLIGHT, 7, "did not confirm whether the commit to the table was applied"),
        (Sent.APPLIED, 7, "the commit to the table was applied as snapshot 7"),
    ],
)
def test_interrupt_error_reports_whether_the_commit_applied(sent: Sent, snapshot_id: int | None, text: str) -> None:
    """CP-51: whether the catalog had applied it, of metadata alone and of snapshots."""
    status = CommitStatus()
    assert not status.may_be_named
    status.sent, status.snapshot_id = sent, snapshot_id
    assert status.may_be_named
    assert text in str(status.told(KeyboardInterrupt()))
