"""Rows that a filter finds in a later row group are deleted there, not at the same offset of the first row group.

Files have twelve rows in row groups of three, and statistics rule out some of the groups:

    row groups      |  1 2 3  |  4 5 6  |  7 8 9  |  10 11 12  |
    where id = 8       none      none      read        none
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from new_lakes import new_lake
from v3_tables import ids, new_catalog, new_table, rows

import tableformat as tf
from tableformat.merge_on_read.small_files import batches
from tableformat.storage.location import local_path
from tableformat.testing.table_files import live_data_files

IDS = range(1, 13)


@pytest.fixture(params=["together", "alone"], autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are read many in a pass, larger ones row group by row group: both count from the file's first row."""
    if request.param == "alone":
        monkeypatch.setattr(batches, "SMALL_FILE_BYTES", -1)


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    """One file of four row groups."""
    table = new_table(new_catalog(tmp_path), request.param, **{"write.parquet.row-group-limit": "3"})
    table.append(rows("a", *IDS))
    (data,) = live_data_files(table)
    assert pq.read_metadata(local_path(data.file_path)).num_row_groups == 4
    return table


def left(table: tf.Table) -> list[int]:
    return [number for _, number in ids(table)]


@pytest.mark.parametrize("number", [1, 3, 4, 8, 12])
def test_delete_by_scan_uses_positions_across_row_groups(table: tf.Table, number: int) -> None:
    """DA-1, DA-7"""
    table.delete(f"id = {number}", mode="scan")
    assert left(table) == [each for each in IDS if each != number]


def test_second_delete_by_scan_after_deleted_row_groups(table: tf.Table) -> None:
    """DA-1, DA-7: row groups without a live row are not read, and count."""
    table.delete("id <= 6", mode="scan")
    table.delete("note = 'a8' OR id = 11", mode="scan")
    assert left(table) == [7, 9, 10, 12]


def test_deleted_rows_are_not_counted_again(table: tf.Table) -> None:
    """DA-1, DA-7: a deleted row does not match."""
    assert table.delete("id = 8", mode="scan").deleted_row_count == 1
    assert table.delete("id BETWEEN 7 AND 9", mode="scan").deleted_row_count == 2


def test_row_after_skipped_row_group_is_live(table: tf.Table) -> None:
    """DA-1, DA-7: row 2 is deleted, and row 8 has the same offset in the row group that is read."""
    table.delete("id = 2", mode="scan")
    assert ids(table, where="id BETWEEN 7 AND 9") == [("a", 7), ("a", 8), ("a", 9)]
    table.delete("id = 9", mode="scan")
    assert ids(table, where="id BETWEEN 7 AND 9") == [("a", 7), ("a", 8)]


@pytest.mark.parametrize("kind", ["range", "equality"])
def test_key_delete_in_separate_row_groups(table: tf.Table, kind: str) -> None:
    """RD-1, DA-2: what was found before in row groups that were read ends as positions of the file."""
    for number in (4, 8, 12):
        table.delete(f"region = 'a' AND id = {number}", mode=kind)
    assert left(table) == [each for each in IDS if each not in (4, 8, 12)]
    table.maintenance.convert_deletes()
    assert left(table) == [each for each in IDS if each not in (4, 8, 12)]


def test_equality_delete_by_unsorted_column_in_separate_row_groups(table: tf.Table) -> None:
    """DA-2: rows are looked up, in two row groups that lie apart."""
    table.delete_rows([{"note": "a5"}, {"note": "a12"}])
    assert left(table) == [each for each in IDS if each not in (5, 12)]


def test_row_ids_are_counted_from_the_first_row_of_the_file(tmp_path: Path) -> None:
    """FM-20: a row has its id whether or not the row groups before it are read."""
    table = new_table(new_catalog(tmp_path), 3, **{"write.parquet.row-group-limit": "3"})
    table.append(rows("a", *IDS))
    table.delete("id <= 3", mode="scan")
    assert table.scan("id = 8", columns=["id", "_row_id"]).to_arrow().to_pylist() == [{"id": 8, "_row_id": 7}]
    table.maintenance.compact(rewrite_all=True)
    found = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    assert {row["id"]: row["_row_id"] for row in found} == {number: number - 1 for number in range(4, 13)}


def test_rows_with_unknown_filter_result_are_kept(tmp_path: Path) -> None:
    """DA-1: null is neither above 2 nor another value than 3."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3, 4], "v": [1, None, 3, 4]}))
    assert table.delete("v > 3", mode="scan").deleted_row_count == 1
    assert table.update("v <> 3", set={"v": "v + 10"}).deleted_row_count == 1
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "v": 11},
        {"id": 2, "v": None},
        {"id": 3, "v": 3},
    ]
