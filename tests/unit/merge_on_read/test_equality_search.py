"""Many keys over many sorted files: each file holds few of them, and these are searched in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.merge_on_read import equality_positions
from tableformat.merge_on_read.small_files import batches
from tableformat.testing.table_rows import live_values

FILES, ROWS = 4, 3_000
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64(), nullable=False)])


def rows(numbers: range) -> pa.Table:
    return pa.table({"id": [f"{n:06d}" for n in numbers], "n": numbers}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id", "n"])
    for file in range(FILES):
        table.append(rows(range(file * ROWS, (file + 1) * ROWS)))
    return table


@pytest.mark.parametrize(
    ("step", "is_searched"), [(150, True), (149, False)], ids=["a key in 150 rows", "a key in 149 rows"]
)
def test_keys_are_searched_only_within_file_bounds(
    table: tf.Table, monkeypatch: pytest.MonkeyPatch, step: int, is_searched: bool
) -> None:
    """RD-11, RD-12"""
    monkeypatch.setattr(batches, "SMALL_FILE_BYTES", 0)
    looked_up: list[Any] = []
    original = equality_positions._looked_up
    monkeypatch.setattr(
        equality_positions, "_looked_up", lambda *arguments: looked_up.append(1) or original(*arguments)
    )
    deleted = range(0, FILES * ROWS, step)
    table.delete_rows(rows(deleted))
    assert live_values(table, "n", columns=["n"]) == [n for n in range(FILES * ROWS) if n % step]
    assert (looked_up == []) == is_searched


def test_keys_outside_all_files_delete_nothing(table: tf.Table) -> None:
    """RD-10: keys below, between and above all rows delete nothing."""
    table.delete_rows(pa.table({"id": ["", "0029995", "~"], "n": [0, 2999, 0]}, schema=SCHEMA))
    assert table.scan().count() == FILES * ROWS
