"""Files that were added and removed between two snapshots."""

from __future__ import annotations

from pathlib import Path

from commit_tables import append, data_file, delete_blindly, new_table, range_delete

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.table_diff import TableDiff, diff_snapshots
from tableformat.commit.transaction import commit_change
from tableformat.metadata.content_file import ContentFile


def names(files: tuple[ContentFile, ...]) -> list[str]:
    return [file.file_path.rpartition("/")[2] for file in files]


def test_diff_with_empty_table_adds_or_removes_all_files(tmp_path: Path) -> None:
    table = new_table(EmbeddedCatalog.at(tmp_path / "lake"))
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    table = commit_change(table, delete_blindly(range_delete(table, "r.parquet"))).table
    head = table.metadata.current_snapshot()
    came, went = (diff_snapshots(table.io, table.metadata, *pair) for pair in ((None, head), (head, None)))
    assert (names(came.added_data_files), names(came.added_delete_files)) == (["a.parquet"], ["r.parquet"])
    assert (names(went.removed_data_files), names(went.removed_delete_files)) == (["a.parquet"], ["r.parquet"])
    assert (came.removed_data_files, came.removed_delete_files, went.added_data_files) == ((), (), ())
    assert diff_snapshots(table.io, table.metadata, None, None) == TableDiff()
