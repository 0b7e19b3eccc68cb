"""MT-63: what writers and jobs hold at their peak, rows of 20 bytes to 100 KB.

Each test does one thing to tables that a fixture made; memray counts every allocation of Python, numpy and Arrow in
between. The limits are the table's memory plus `CONSTANT`, whatever the number of rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rows_of_width import MIB, WideRows, loaded, new_table

import tableformat as tf
from tableformat.scan import reader

MEMORY = 16 * MIB
CONSTANT = 24 * MIB
"""Pages and dictionaries of open files, footers, row numbers."""
LIMIT = f"{(MEMORY + CONSTANT) // MIB} MB"
DUCKDB = 128 * MIB
"""The least that DuckDB gets to find the last row of each key beyond the memory."""
TOTAL = 96 * MIB
pytestmark = pytest.mark.slow
WIDTHS = pytest.mark.parametrize("row_bytes", [20, pytest.param(1_000, marks=pytest.mark.long), 100_000])


@pytest.fixture(autouse=True, scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Everything is imported and has run once: code is no part of what a job holds."""
    table = new_table(tmp_path_factory.mktemp("warm"), MEMORY)
    few = WideRows(100, MIB // 8)
    for _ in range(2):
        table.append(few.reader())
    table.upsert(few.reader())
    table.replace(few.reader(), prefix=["id"])
    table.delete_prefix({"id": 1})
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    assert table.scan().to_arrow().num_rows == few.row_count - 1


def interleaved(directory: Path, row_bytes: int, *, file_count: int = 6, **kind: bool) -> tf.Table:
    """Files that each go over the whole key space, written with more memory than the jobs may use."""
    table = new_table(directory, 256 * MIB)
    for number in range(file_count):
        part = WideRows(row_bytes, TOTAL // file_count, first_id=number, id_step=file_count, **kind)
        table.append(part.reader())
    table.set_properties(**{"tableformat.write.memory-bytes": str(MEMORY)})
    return loaded(directory)


class TestWriting:
    @pytest.fixture
    def table(self, tmp_path: Path) -> tf.Table:
        return new_table(tmp_path, MEMORY)

    @WIDTHS
    @pytest.mark.limit_memory(LIMIT)
    def test_append_of_a_stream(self, table: tf.Table, row_bytes: int) -> None:
        """MT-63"""
        rows = WideRows(row_bytes, TOTAL)
        assert table.append(rows.reader()).added_row_count == rows.row_count

    @WIDTHS
    @pytest.mark.limit_memory(LIMIT)
    def test_append_of_unsorted_rows(self, table: tf.Table, row_bytes: int) -> None:
        """MT-63"""
        rows = WideRows(row_bytes, TOTAL, is_sorted=False)
        assert table.append(rows.reader()).added_row_count == rows.row_count

    @pytest.mark.limit_memory(LIMIT)
    def test_append_of_rows_that_become_wider(self, table: tf.Table) -> None:
        """MT-63: what was found out of the first rows does not hold for the later ones."""
        widths = [WideRows(row_bytes, TOTAL // 4) for row_bytes in (40, 1_000, 20_000, 1_000_000)]
        batches = (batch for rows in widths for batch in rows.batches())
        table.append(pa.RecordBatchReader.from_batches(table.iceberg.schema().as_arrow(), batches))
        table.maintenance.compact(rewrite_all=True)

    @pytest.mark.parametrize("row_bytes", [1_000, 100_000])
    @pytest.mark.limit_memory(LIMIT)
    def test_replacement_of_prefixes(self, table: tf.Table, row_bytes: int) -> None:
        """MT-63"""
        rows = WideRows(row_bytes, TOTAL, is_sorted=False)
        assert table.replace(rows.reader(), prefix=["id"]).added_row_count == rows.row_count

    @pytest.mark.parametrize("row_bytes", [1_000, 100_000])
    @pytest.mark.limit_memory(f"{(MEMORY + CONSTANT + DUCKDB) // MIB} MB")
    def test_upsert_of_a_stream(self, table: tf.Table, row_bytes: int) -> None:
        """MT-63"""
        rows = WideRows(row_bytes, TOTAL, is_sorted=False)
        assert table.upsert(rows.reader()).added_row_count == rows.row_count


@WIDTHS
@pytest.mark.limit_memory(LIMIT)
def test_append_to_fifty_partitions(fanned: tf.Table, row_bytes: int) -> None:
    """MT-63"""
    rows = WideRows(row_bytes, TOTAL, is_sorted=False)
    assert fanned.append(rows.reader()).added_row_count == rows.row_count


@pytest.fixture
def fanned(tmp_path: Path) -> tf.Table:
    return new_table(tmp_path, MEMORY, partition_by=("part",))


class TestCompaction:
    @pytest.fixture
    def table(self, request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
        row_bytes, repeats = request.param
        return interleaved(tmp_path, row_bytes, repeats=repeats)

    @pytest.mark.parametrize(
        "table",
        [
            pytest.param((20, False), id="20 B"),
            pytest.param((1_000, False), id="1 KB", marks=pytest.mark.long),
            pytest.param((100_000, False), id="100 KB", marks=pytest.mark.long),
            pytest.param((1_000, True), id="1 KB, a dictionary in the file"),
        ],
        indirect=True,
    )
    @pytest.mark.limit_memory(LIMIT)
    def test_overlapping_files(self, table: tf.Table) -> None:
        """MT-63, MT-43"""
        assert table.maintenance.compact(rewrite_all=True).rewritten_data_files_count >= 6


class TestConversion:
    @pytest.fixture(params=[pytest.param(2, marks=pytest.mark.long), 8], ids="{} files".format)
    def table(self, request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
        """Files of a million rows each; every one is met by range and equality deletes."""
        table = new_table(tmp_path, 64 * MIB)
        rows = WideRows(20, 20_000_000)
        for _ in range(request.param):
            table.append(rows.reader())
        for id_ in range(0, rows.row_count, rows.row_count // 20):
            table.delete_prefix({"id": id_})
        keys = np.arange(0, rows.row_count, 13)
        table.delete_rows(pa.table({"id": keys}))
        table.set_properties(**{"tableformat.write.memory-bytes": str(MEMORY)})
        return loaded(tmp_path)

    @pytest.mark.limit_memory("192 MB")
    def test_conversion_memory_does_not_grow_with_the_table(self, table: tf.Table) -> None:
        """MT-63"""
        assert table.maintenance.convert_deletes().removed_range_delete_files_count == 20


class TestScan:
    @pytest.fixture(
        params=[*(pytest.param(size, marks=pytest.mark.long) for size in (TOTAL // 2, TOTAL)), 2 * TOTAL],
        ids=lambda size: f"{size // MIB} MiB",
    )
    def table(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tf.Table:
        monkeypatch.setattr(reader, "ROW_GROUP_RUN_BYTES", 4 * MIB)
        table = new_table(tmp_path, MEMORY)
        for number in range(4):
            table.append(WideRows(1_000, request.param // 4, first_id=number, id_step=4).reader())
        return loaded(tmp_path)

    @pytest.mark.limit_memory("48 MB")
    def test_to_batches_memory_does_not_grow_with_the_table(self, table: tf.Table) -> None:
        """MT-63: four stretches are in flight on two cores, each as it is in the file and decoded."""
        assert sum(batch.nbytes for batch in table.scan().to_batches()) > 45 * MIB

    @pytest.mark.limit_memory("48 MB")
    def test_changes_memory_does_not_grow_with_deleted_rows(self, table: tf.Table) -> None:
        """CF-7: four files come, and one range delete, which covers them whole, takes every row away."""
        table.delete_range(everything=True)
        assert sum(batch.nbytes for batch in table.changes().to_batches()) > 2 * 45 * MIB
