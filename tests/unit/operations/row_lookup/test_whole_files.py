"""Deletes that match all rows of a data file remove the file and write no delete file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.metadata.content_file import DataFile
from tableformat.testing.table_files import live_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


def made(catalog: tf.Catalog, version: str = "2", partition_by: tuple[str, ...] = ()) -> tf.Table:
    options = {"format-version": version}
    return catalog.create_table("db.t", SCHEMA, key=["n"], partition_by=partition_by, properties=options)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "id": numbers}, schema=SCHEMA)


def kinds(table: tf.Table) -> Counter[str]:
    return Counter("data" if isinstance(file, DataFile) else file.kind.value for file in live_files(table))


@pytest.mark.parametrize("version", ["2", "3"])
def test_fully_matching_files_are_removed_without_delete_file(version: str, catalog: tf.Catalog) -> None:
    """RP-17: by partition, by bounds, and a file with row deletes, which are removed with it."""
    table = made(catalog, version, ("truncate(10, n)",))
    table.append(rows(*range(30)))
    table.delete("n = 3", mode="scan")
    paths = [file.file_path.removeprefix("file://") for file in live_files(table) if "n_trunc=10" in file.file_path]
    for path in paths:
        Path(path).unlink()
    result = table.delete("n >= 10 AND n < 20")
    assert (result.deleted_row_count, result.added_delete_files_count) == (10, 0)
    assert table.delete("n < 10").deleted_row_count is None
    assert live_values(table, "n") == list(range(20, 30))
    assert kinds(table) == {"data": 1}


def test_partially_matching_file_uses_one_range_delete(catalog: tf.Catalog) -> None:
    """RP-17: then one range delete covers everything, as before."""
    table = made(catalog)
    table.append(rows(1, 2))
    table.append(rows(2, 3))
    assert table.delete("n <= 2").added_delete_files_count == 1
    assert live_values(table, "n") == [3]
    assert kinds(table) == {"data": 2, "range": 1}


@pytest.mark.parametrize("mode", ["range", "equality", "scan"])
def test_explicit_delete_modes_are_honoured(mode: str, catalog: tf.Catalog) -> None:
    """RP-17"""
    table = made(catalog)
    table.append(rows(1))
    table.append(rows(2))
    table.delete("n = 1", mode=mode)
    assert live_values(table, "n") == [2]
    assert kinds(table) == ({"data": 1} if mode == "scan" else {"data": 2, mode: 1})


def test_delete_in_a_transaction_is_blind(catalog: tf.Catalog) -> None:
    """RP-17: it cannot be staged again."""
    table = made(catalog)
    table.append(rows(1))
    with table.transaction() as transaction:
        transaction.append(rows(1, 2))
        transaction.delete("n = 1")
    assert live_values(table, "n") == [2]
    assert kinds(table)["range"] == 1


def test_concurrently_added_matching_rows_are_deleted(catalog: tf.Catalog) -> None:
    """RP-17, CP-5: a handle that is behind conflicts, and looks again."""
    table = made(catalog)
    table.append(rows(1))
    behind = catalog.load_table("db.t")
    table.append(rows(1, 7))
    behind.delete("n = 1")
    assert live_values(behind, "n") == [7]
