"""A stream that adds equality deletes one by one: each is looked up once in a data file that is not small."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("k", pa.string()), ("v", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(pa.table({"id": range(10), "k": [f"k{n % 5}" for n in range(10)], "v": range(10)}, schema=SCHEMA))
    return table


def test_promoted_column_is_looked_up_again(tmp_path: Path) -> None:
    """DA-6: the rows that a delete applies to depend on the current type of its column."""
    catalog = new_lake(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32())]))
    table.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    table.delete_rows(pa.table({"n": pa.array([1], pa.int32())}))
    assert live_values(table, "id") == [2]
    with table.update_schema() as update:
        update.update_column("n", LongType())
    table.refresh().append(pa.table({"id": [3], "n": [2**40]}))
    table.delete_rows(pa.table({"n": [2**40]}))
    assert live_values(table.refresh(), "id") == [2]
