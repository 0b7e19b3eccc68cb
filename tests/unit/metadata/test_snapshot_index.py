"""Snapshots by id, in successive, older and unrelated table metadata."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.table.metadata import TableMetadata

import tableformat as tf
from tableformat.metadata.snapshot_index import snapshot_by_id, snapshots_by_id

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[tf.Catalog]:
    with new_lake(tmp_path / "lake") as opened:
        yield opened


def states(table: tf.Table, count: int) -> list[TableMetadata]:
    """The metadata after each of some appends."""
    made = []
    for number in range(count):
        table.append([{"id": number}])
        made.append(table.metadata)
    return made


def test_each_metadata_version_has_its_own_snapshots(catalog: tf.Catalog) -> None:
    """Regardless of the order in which the states of two tables are queried: an older state lacks later snapshots."""
    one, other = (catalog.create_table(f"db.{name}", SCHEMA) for name in ("a", "b"))
    known = [*states(one, 3), *states(other, 2)]
    for metadata in (*known, *reversed(known), known[0], known[4], known[2], known[1]):
        assert snapshots_by_id(metadata) == {each.snapshot_id: each for each in metadata.snapshots}
    newest = known[2].snapshots[-1]
    assert snapshot_by_id(known[2], newest.snapshot_id) is newest
    assert snapshot_by_id(known[1], newest.snapshot_id) is None
    assert snapshot_by_id(known[4], newest.snapshot_id) is None


def test_index_after_expiry_lacks_expired_snapshots(catalog: tf.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    before = states(table, 4)[-1]
    assert len(snapshots_by_id(before)) == 4
    table.maintenance.expire_snapshots(retain_last=2, older_than=before.snapshots[-1].timestamp_ms + 1)
    assert list(snapshots_by_id(table.metadata)) == [each.snapshot_id for each in reversed(table.metadata.snapshots)]
    assert snapshot_by_id(table.metadata, before.snapshots[0].snapshot_id) is None


def test_duplicate_snapshot_id_returns_the_first(catalog: tf.Catalog) -> None:
    """The metadata models do the same with broken metadata; `verify` reports it."""
    table = catalog.create_table("db.t", SCHEMA)
    metadata = states(table, 2)[-1]
    twice = [*metadata.snapshots, metadata.snapshots[0].model_copy(update={"manifest_list": "elsewhere"})]
    for broken in (metadata.model_copy(update={"snapshots": twice}), metadata):
        found = snapshot_by_id(broken, metadata.snapshots[0].snapshot_id)
        assert found is metadata.snapshots[0]
