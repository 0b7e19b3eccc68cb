"""Files that a snapshot adds although deletes were applied to them before: taking them for new rows would bring deleted
rows back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from long_forms import every
from new_lakes import new_lake
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from spark_ext.service.reads.appended_files import appended_files
from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([("n", pa.int64())])
DELETES = ["positions", "key", "range", None]


@pytest.fixture(params=every(2, ["3", "2"]))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    ranges = tf.RangePartitions(on=["n"], bounds=[(0, 20)], splits=[10])
    properties = {"format-version": request.param}
    return catalog.create_table("db.t", SCHEMA, key=["n"], range_partitions=ranges, properties=properties)


def on_branch(table: tf.Table, branch: str) -> tf.Table:
    assert table.catalog is not None
    loaded = table.catalog.load_table("db.t", branch=branch)
    assert isinstance(loaded, tf.Table)
    return loaded


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def delete_one(table: tf.Table, how: str | None) -> None:
    match how:
        case "positions":
            table.delete("n = 1", mode="scan")
        case "key":
            table.delete_rows(rows(1))
        case "range":
            table.delete_prefix({"n": 1})


def retired_and_restored(table: tf.Table, how: str | None) -> int:
    """The snapshot on another branch that restored a range; a delete had removed one row of the range before."""
    table.append(rows(1, 2))
    table.append(rows(11))
    delete_one(table, how)
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.create_branch("b")
    snapshot_id = on_branch(table, "b").range_partitions.restore(tag).snapshot_id
    assert snapshot_id is not None
    return snapshot_id


@pytest.mark.parametrize("how", DELETES)
def test_restored_range_cannot_be_cherry_picked(table: tf.Table, how: str | None) -> None:
    """SP-24, RP-13: as new rows they would escape the deletes that they had met."""
    restored = retired_and_restored(table, how)
    table.refresh().append(rows(12))
    if how is None:
        cherrypick(table.iceberg, "main", restored)
        assert live_values(table, "n") == [1, 2, 11, 12]
        return
    with pytest.raises(InvalidArgumentError, match=f"snapshot {restored} cannot be cherry-picked to 'main'"):
        cherrypick(table.iceberg, "main", restored)
    assert live_values(table, "n") == [11, 12]


@pytest.mark.parametrize("how", DELETES)
def test_restored_range_is_not_read_as_an_append(table: tf.Table, how: str | None) -> None:
    """SP-26."""
    restored = retired_and_restored(table, how)
    view = on_branch(table, "b").view
    assert view.snapshot is not None
    options = {"start-snapshot-id": str(view.snapshot.parent_snapshot_id), "end-snapshot-id": str(restored)}
    if how is None:
        assert sum(data.record_count for data in appended_files(view, options)) == 2
        return
    with pytest.raises(UnsupportedFeatureError, match=f"snapshot {restored} (restored|replaces rows)"):
        appended_files(view, options)


def test_carried_rows_are_not_treated_as_new_rows(table: tf.Table) -> None:
    """SP-24, SP-26, MT-31: rows of a publish target are added to the branch with their sequence numbers."""
    table.append(rows(5))
    for name in ("ingest", "other"):
        table.create_branch(name)
    table.set_properties({"tableformat.publish-target.ingest": "main"})
    ingest, start = on_branch(table, "ingest"), table.snapshot_id
    table.append(rows(1))
    table.append(rows(2))
    delete_one(ingest, "key")
    before = ingest.snapshot_id
    ingest.maintenance.convert_deletes()
    carried = next(each for each in ingest.view.metadata.snapshots if each.parent_snapshot_id == before)
    assert carried.summary is not None
    assert carried.summary.operation is Operation.APPEND
    assert live_values(ingest.refresh(), "n") == [2, 5]
    options = {"start-snapshot-id": str(start), "end-snapshot-id": str(carried.snapshot_id)}
    with pytest.raises(UnsupportedFeatureError, match=f"snapshot {carried.snapshot_id} restored or carried"):
        appended_files(ingest.view, options)
    with pytest.raises(InvalidArgumentError, match="restored or carried 1 data files"):
        cherrypick(ingest.iceberg, "other", carried.snapshot_id)
