"""Calls of several threads on one handle: the handle only moves forward."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.metadata.own_handle import own_handle

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    return catalog.create_table("db.t", SCHEMA, key=["id"])


def other(table: tf.Table) -> tf.Table:
    assert table.catalog is not None
    return table.catalog.load_table(table.name)  # type: ignore[return-value]


def test_slow_call_does_not_move_the_handle_back(table: tf.Table) -> None:
    """CP-61: the snapshot of the second call was not to be seen until the next refresh."""
    writer = other(table)
    with own_handle(table.iceberg) as late:
        writer.append([{"id": 1}])
        late.refresh()
        with own_handle(table.iceberg) as second:
            newest = writer.append([{"id": 2}]).snapshot_id
            second.refresh()
    assert table.snapshot_id == newest
    assert table.scan().count() == 2


def test_failed_call_moves_the_handle_forward(table: tf.Table) -> None:
    """CP-61: an operation that gives up has loaded the newest version."""
    other(table).append([{"id": 1}])
    with pytest.raises(RuntimeError, match="half way"), own_handle(table.iceberg) as own:  # noqa: PT012
        own.refresh()
        raise RuntimeError("half way")
    assert table.scan().count() == 1


def test_unshared_handle_follows_the_catalog_back(table: tf.Table) -> None:
    """CP-61: an earlier version was registered, and no other thread uses the handle."""
    location = table.iceberg.metadata_location
    other(table).append([{"id": 1}])
    assert table.refresh().scan().count() == 1
    assert table.catalog is not None
    table.catalog.iceberg.drop_table(table.iceberg.name())
    table.catalog.iceberg.register_table(table.iceberg.name(), location)
    assert table.refresh().scan().count() == 0


def test_running_call_is_not_moved_by_another(table: tf.Table) -> None:
    """CP-61"""
    with own_handle(table.iceberg) as own:
        before = own.metadata
        table.append([{"id": 1}])
        assert own.metadata is before
    assert table.scan().count() == 1
