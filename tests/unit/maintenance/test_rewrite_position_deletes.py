"""The position deletes of a data file are combined in one file, and the same rows stay deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commit_tables import position_delete
from maintenance_tables import commit_deletes, keyed_table, rows, unnamed_position_delete
from v3_tables import ids, new_catalog, new_table, vectors
from v3_tables import rows as v3_rows

import tableformat as tf
from tableformat.deletes.positions import PositionSet
from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.metadata.content_file import DeleteKind
from tableformat.testing.table_files import files_on_disk, live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.position_deletes import write_position_deletes


def scattered(tmp_path: Path) -> tf.Table:
    """File a with three position delete files, file b with one, file c with none."""
    table = keyed_table(tmp_path)
    for letter in "abc":
        table.append(rows(letter, range(8)))
    for number in (1, 3, 5):
        table.delete(f"id1 = 'a' AND id2 = {number}", mode="scan")
    table.delete("id1 = 'b' AND id2 = 2", mode="scan")
    return table


def test_position_deletes_of_one_data_file_are_merged(tmp_path: Path) -> None:
    """MT-18"""
    table = scattered(tmp_path)
    before = live_tuples(table)
    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (3, 1)
    assert 0 < result.added_bytes < result.rewritten_bytes
    assert sorted(delete.record_count for delete in live_delete_files(table)) == [1, 3]
    assert live_tuples(table) == before
    assert table.snapshot_id == result.snapshot_id
    again = table.maintenance.rewrite_position_delete_files()
    assert (again.snapshot_id, again.rewritten_delete_files_count) == (result.snapshot_id, 0)


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    table = scattered(tmp_path)
    snapshot_id, files = table.snapshot_id, files_on_disk(table)
    result = table.maintenance.rewrite_position_delete_files(dry_run=True)
    assert (result.rewritten_delete_files_count, result.added_delete_files_count, result.added_bytes) == (3, 1, 0)
    assert (table.refresh().snapshot_id, files_on_disk(table)) == (snapshot_id, files)


def test_min_input_files_and_rewrite_all(tmp_path: Path) -> None:
    table = scattered(tmp_path)
    assert table.maintenance.rewrite_position_delete_files(min_input_files=4).rewritten_delete_files_count == 0
    assert table.maintenance.rewrite_position_delete_files(rewrite_all=True).rewritten_delete_files_count == 4
    with pytest.raises(InvalidArgumentError, match="min_input_files must be a whole number above 0, not 0"):
        table.maintenance.rewrite_position_delete_files(min_input_files=0)


@pytest.mark.parametrize("least", [0, -1, True, "2", 1.5, None])
def test_invalid_min_input_files_is_rejected(tmp_path: Path, least: Any) -> None:
    table = scattered(tmp_path)
    with pytest.raises(InvalidArgumentError):
        table.maintenance.rewrite_position_delete_files(min_input_files=least)
    assert table.maintenance.rewrite_position_delete_files(min_input_files=1).rewritten_delete_files_count == 4


def test_filter_selects_data_files(tmp_path: Path) -> None:
    table = scattered(tmp_path)
    assert table.maintenance.rewrite_position_delete_files(where="id1 = 'b'").rewritten_delete_files_count == 0
    assert table.maintenance.rewrite_position_delete_files(where="id1 = 'a'").rewritten_delete_files_count == 3
    with pytest.raises(UnknownColumnError):
        table.maintenance.rewrite_position_delete_files(where="id = 'a'")


def test_shared_file_is_removed_after_all_its_data_files_are_rewritten(tmp_path: Path) -> None:
    """MT-18, DA-1: with a filter that leaves one of the data files out, the shared file stays."""
    table = keyed_table(tmp_path)
    for letter in "ab":
        table.append(rows(letter, range(4)))
    first, second = live_data_files(table)
    commit_deletes(table, unnamed_position_delete(table, [(first, 0), (first, 1), (second, 2)]))
    before = live_tuples(table)
    assert before == [("a", 0, "x"), ("a", 1, "x"), ("a", 3, "x"), ("b", 2, "x"), ("b", 3, "x")]
    result = table.maintenance.rewrite_position_delete_files(where="id1 = 'a'")
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (0, 0)
    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (1, 2)
    assert all(
        delete.referenced_data_file in {first.file_path, second.file_path} for delete in live_delete_files(table)
    )
    assert live_tuples(table) == before


def test_keyed_deletes_are_unchanged(tmp_path: Path) -> None:
    """MT-18: equality and range deletes stay unchanged."""
    table = scattered(tmp_path)
    table.delete_prefix({"id1": "a", "id2": 7})
    table.delete("id1 = 'a' AND id2 = 6", mode="equality")
    before = live_tuples(table)
    table.maintenance.rewrite_position_delete_files()
    kinds = sorted(delete.kind.value for delete in live_delete_files(table))
    assert kinds.count(DeleteKind.POSITION.value) == 2
    assert {DeleteKind.RANGE.value, DeleteKind.EQUALITY.value} <= set(kinds)
    assert max(delete.record_count for delete in live_delete_files(table)) == 3
    assert live_tuples(table) == before


def test_deletes_of_removed_data_files_are_removed(tmp_path: Path) -> None:
    """MT-10"""
    table = scattered(tmp_path)
    a = next(file for file in live_data_files(table) if file.lower_bounds and b"a" in file.lower_bounds.values())
    table.delete("id1 = 'a'", mode="scan")
    assert a.file_path not in {file.file_path for file in live_data_files(table)}
    before = live_tuples(table)
    table.maintenance.rewrite_position_delete_files()
    assert [delete.record_count for delete in live_delete_files(table)] == [1]
    assert live_tuples(table) == before


def test_dangling_delete_files_are_removed_along(tmp_path: Path) -> None:
    """MT-10, MT-18: together with files that are merged; a writer leaves it if it planned before the data file was
    removed."""
    table = keyed_table(tmp_path)
    for letter in "ab":
        table.append(rows(letter, range(4)))
    first, second = sorted(live_data_files(table), key=lambda file: file.sequence_number or 0)
    table.delete("id1 = 'a'", mode="scan")
    context = WriteContext.of(table.metadata, table.view.io)
    commit_deletes(table, *write_position_deletes(context, {first: PositionSet.from_array(np.array([0]))}))
    commit_deletes(table, unnamed_position_delete(table, [(second, 1)]))
    before = live_tuples(table)
    table.maintenance.rewrite_position_delete_files()
    assert [each.referenced_data_file for each in live_delete_files(table)] == [second.file_path]
    assert live_tuples(table) == before == [("b", number, "x") for number in (0, 2, 3)]


def test_v3_position_deletes_become_vectors(tmp_path: Path) -> None:
    """MT-18, DA-7: position delete files of version 2, after an upgrade."""
    table = new_table(new_catalog(tmp_path), 2)
    table.append(v3_rows("a", *range(6)))
    table.append(v3_rows("b", *range(6)))
    table.delete("id = 1", mode="scan")
    table.upgrade(3)
    before = ids(table)
    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (2, 2)
    assert vectors(table).keys() == {data.file_path for data in live_data_files(table)}
    assert ids(table) == before


def test_vector_merges_a_shared_file_that_is_kept_for_others(tmp_path: Path) -> None:
    """MT-18, DA-7"""
    table = keyed_table(tmp_path)
    for letter in "ab":
        table.append(rows(letter, range(4)))
    first, second = live_data_files(table)
    commit_deletes(table, unnamed_position_delete(table, [(first, 0), (first, 1), (second, 2)]))
    before = live_tuples(table)
    table.upgrade(3)
    result = table.maintenance.rewrite_position_delete_files(where="id1 = 'a'")
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (0, 1)
    assert live_tuples(table) == before
    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (1, 1)
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.DELETION_VECTOR}
    assert live_tuples(table) == before


def test_change_feed_reports_each_deleted_row_once(tmp_path: Path) -> None:
    """MT-18: positions that moved to another file are no deletes of that commit."""
    table = scattered(tmp_path)
    before = table.snapshot_id
    rewritten = table.maintenance.rewrite_position_delete_files().snapshot_id
    assert table.changes(from_snapshot_id=before, to_snapshot_id=rewritten).to_arrow().num_rows == 0
    table.delete("id1 = 'a' AND id2 = 7", mode="scan")
    assert table.changes(from_snapshot_id=before).to_arrow()["id2"].to_pylist() == [7]


def test_concurrent_deletes_are_included(tmp_path: Path) -> None:
    """MT-18: planned on the head that it is committed on, so a delete in between is part of it."""
    table = scattered(tmp_path)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    commit, files = table.iceberg.catalog.commit_table, files_on_disk(table)
    calls: list[int] = []

    def after_another(*arguments: object) -> object:
        if not calls:
            calls.append(1)
            other.delete("id1 = 'a' AND id2 = 6", mode="scan")
        return commit(*arguments)

    table.iceberg.catalog.commit_table = after_another
    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (4, 1)
    gone = {("a", 1), ("a", 3), ("a", 5), ("a", 6), ("b", 2)}
    expected = {(letter, number) for letter in "abc" for number in range(8)} - gone
    assert {row[:2] for row in live_tuples(table)} == expected
    added = {path for path in files_on_disk(table) - files if "/data/" in path}
    assert len(added) == 2, "the other's delete and the new file: the one of the attempt that failed was removed"


def test_position_delete_with_data_file_in_bounds(tmp_path: Path) -> None:
    """DA-1: its entry names the data file by bounds or by referenced_data_file."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(4)))
    (data,) = live_data_files(table)
    commit_deletes(table, position_delete(table.iceberg, "one.parquet", data, [0]))
    commit_deletes(table, position_delete(table.iceberg, "two.parquet", data, [0, 2]))
    before = live_tuples(table)
    table.maintenance.rewrite_position_delete_files()
    assert [delete.record_count for delete in live_delete_files(table)] == [2]
    assert live_tuples(table) == before


def test_only_paths_limits_the_data_files(tmp_path: Path) -> None:
    """MT-18"""
    table = scattered(tmp_path)
    named = {file.file_path for file in live_data_files(table)}
    folded = {
        path: table.maintenance.rewrite_position_delete_files(
            only_paths=[path], dry_run=True
        ).rewritten_delete_files_count
        for path in named
    }
    assert sorted(folded.values()) == [0, 0, 3]
