"""Rows sorted by value: the expected rows of a test do not depend on files and readers."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.testing.table_rows import live_rows, live_tuples, live_values, sorted_rows

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string()), pa.field("v", pa.float64())]
)


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """Ids 3 and 1 in one file, 2 and 4 in a second one; 4 is deleted."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    created.append(pa.table({"id": [3, 1], "name": ["a", None], "v": [math.inf, 0.5]}, schema=SCHEMA))
    created.append(pa.table({"id": [2, 4], "name": ["b", "b"], "v": [None, 1.0]}, schema=SCHEMA))
    created.delete_prefix({"id": 4})
    return created


def test_rows_of_all_files_in_the_order_of_their_values(table: tf.Table) -> None:
    assert live_rows(table) == [
        {"id": 1, "name": None, "v": 0.5},
        {"id": 2, "name": "b", "v": None},
        {"id": 3, "name": "a", "v": math.inf},
    ]
    assert live_tuples(table, columns=["name", "id"]) == [(None, 1), ("a", 3), ("b", 2)]
    assert live_values(table, "v") == [None, 0.5, math.inf]


def test_what_a_scan_takes_is_taken(table: tf.Table) -> None:
    assert live_values(table, "id", "name IS NOT NULL") == [2, 3]
    assert live_tuples(table, where="id > 1", columns=["id"]) == [(2,), (3,)]
    first = table.metadata.snapshots[0].snapshot_id
    assert live_values(table, "id", snapshot_id=first) == [1, 3]


def test_the_handle_decides_which_snapshot_is_read(table: tf.Table) -> None:
    assert table.catalog is not None
    table.catalog.load_table(table.name).append(pa.table({"id": [9], "name": ["z"], "v": [0.0]}, schema=SCHEMA))
    assert live_values(table, "id") == [1, 2, 3]
    assert live_values(table.refresh(), "id") == [1, 2, 3, 9]


def test_nulls_are_first_and_nans_last_in_nested_values_too() -> None:
    struct = pa.struct([("x", pa.float64())])
    found = pa.table(
        {
            "s": pa.array([{"x": math.nan}, {"x": 1.0}, {"x": None}, None], struct),
            "l": pa.array([[1], [2], [3], [4]], pa.list_(pa.int64())),
        }
    )
    assert [row["l"] for row in sorted_rows(found)] == [[4], [3], [2], [1]]
    lists = pa.table({"l": pa.array([[1, 2], [None, 9], [1], [], None], pa.list_(pa.int64()))})
    assert [row["l"] for row in sorted_rows(lists)] == [None, [], [None, 9], [1], [1, 2]]
