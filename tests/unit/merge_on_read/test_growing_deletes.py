"""A stream that adds equality deletes one by one: each is looked up once in a data file that is not small."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.merge_on_read import delete_index
from tableformat.merge_on_read.delete_loader import DeleteLoader
from tableformat.merge_on_read.together import batches
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("k", pa.string()), ("v", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, key=["id"])
    table.append(pa.table({"id": range(10), "k": [f"k{n % 5}" for n in range(10)], "v": range(10)}, schema=SCHEMA))
    return table


@pytest.fixture(params=[16, 1])
def looked_up(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """How many equality delete files each look-up took; listed for each data file, and shared by all of a plan."""
    monkeypatch.setattr(delete_index, "SHARED_FROM", request.param)
    counts: list[int] = []
    original = DeleteLoader.equality_keys

    def counted(self: DeleteLoader, deletes: list[object], types: object, digest: object = None) -> object:
        counts.append(len(deletes))
        return original(self, deletes, types, digest)  # type: ignore[arg-type]

    monkeypatch.setattr(DeleteLoader, "equality_keys", counted)
    monkeypatch.setattr(batches, "SMALL_FILE_BYTES", 0)
    return counts


def test_only_new_deletes_are_looked_up(table: tf.Table, looked_up: list[int]) -> None:
    """DA-2: a row is deleted if any delete matches it."""
    for key in ("k0", "k1"):
        table.delete_rows(pa.table({"k": [key]}))
    assert live_values(table, "id") == [2, 3, 4, 7, 8, 9]
    table.delete_rows(pa.table({"k": ["k2"]}))
    table.delete_rows(pa.table({"id": [3]}))
    assert live_values(table, "id") == [4, 8, 9]
    table.delete_prefix({"id": 4})
    assert live_values(table, "id") == [8, 9]
    assert looked_up == [2, 1, 1], "the two of the first scan together, later ones by their columns, ranges none"


def test_fewer_deletes_than_before_are_looked_up_anew(table: tf.Table, looked_up: list[int]) -> None:
    first = table.delete_rows(pa.table({"k": ["k0"]})).snapshot_id
    table.delete_rows(pa.table({"k": ["k1"]}))
    assert live_values(table, "id") == [2, 3, 4, 7, 8, 9]
    assert table.scan(snapshot_id=first).to_arrow()["id"].to_pylist() == [1, 2, 3, 4, 6, 7, 8, 9]
    assert looked_up == [2, 1]


def test_a_promoted_column_is_looked_up_anew(tmp_path: Path) -> None:
    """DA-6: the rows that a delete applies to depend on the current type of its column."""
    catalog = tf.open_catalog(tmp_path / "lake")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32())]))
    table.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    table.delete_rows(pa.table({"n": pa.array([1], pa.int32())}))
    assert live_values(table, "id") == [2]
    with table.update_schema() as update:
        update.update_column("n", LongType())
    table.refresh().append(pa.table({"id": [3], "n": [2**40]}))
    table.delete_rows(pa.table({"n": [2**40]}))
    assert live_values(table.refresh(), "id") == [2]
