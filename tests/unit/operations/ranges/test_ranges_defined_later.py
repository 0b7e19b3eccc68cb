"""Range partitions for tables that had none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

import tableformat as tf
from tableformat.errors import InvalidArgumentError, InvalidKeyError, UncoveredRowsError
from tableformat.properties import RANGE_PARTITIONS
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), ("v", pa.int64())])


RANGES = tf.RangePartitions(on=["n"], bounds=[(0, 20)], splits=[10])


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = new_lake(tmp_path / "lake")
    return catalog.create_table("db.t", SCHEMA, key=["n"])


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "v": numbers}, schema=SCHEMA)


def test_existing_uncovered_rows_are_kept_and_reported(table: tf.Table) -> None:
    """RP-20, RP-14: and files that straddle a border are."""
    for numbers in ((1,), (5, 15), (50,)):
        table.append(rows(*numbers))
    before = table.snapshot_id
    tried = table.range_partitions.define(RANGES, dry_run=True)
    assert (tried.dry_run, tried.snapshot_id, table.refresh().snapshot_id) == (True, None, before)
    result = table.range_partitions.define(RANGES)
    assert result.snapshot_id == table.snapshot_id != before
    assert (result.added, result.straddling_data_files_count, result.uncovered_data_files_count) == (("[0, 20)",), 1, 1)
    listed = table.range_partitions.list().select(["partition", "file_count"]).to_pylist()
    assert [tuple(each.values()) for each in listed] == [("[0, 10)", 2), ("[10, 20)", 1), ("uncovered", 1)]
    with pytest.raises(UncoveredRowsError):
        table.append(rows(7, 50))
    assert live_values(table.refresh(), "n") == [1, 5, 15, 50]


@pytest.mark.parametrize("first", [(), (1,)])
def test_define_creates_a_snapshot_and_rollback_removes_ranges(table: tf.Table, first: tuple[int, ...]) -> None:
    """RP-8, RP-15, RP-20"""
    if first:
        table.append(rows(*first))
    before = table.snapshot_id
    assert table.range_partitions.define(RANGES).snapshot_id is not None
    if before is not None:
        table.rollback(snapshot_id=before)
        assert RANGE_PARTITIONS not in table.refresh().metadata.properties
        assert table.append(rows(99)).added_row_count == 1


def test_staged_rows_are_checked_against_new_ranges(table: tf.Table) -> None:
    """RP-6, RP-20"""
    other = table.catalog
    assert other is not None
    inside, outside = table.new_write(), table.new_write()
    staged = inside.write(rows(3)), outside.write(rows(30))
    table.range_partitions.define(RANGES)
    table.commit(inside, [staged[0]])
    with pytest.raises(UncoveredRowsError):
        table.commit(outside, [staged[1]])
    assert live_values(table.refresh(), "n") == [3]


def test_range_partitions_are_defined_only_once(table: tf.Table) -> None:
    table.range_partitions.define(RANGES)
    before = table.iceberg.metadata_location
    with pytest.raises(InvalidArgumentError, match=r"already has range partitions.*alter\("):
        table.range_partitions.define(RANGES)
    assert table.refresh().iceberg.metadata_location == before


def test_nullable_range_column_is_rejected(table: tf.Table) -> None:
    """RP-2"""
    with pytest.raises((InvalidArgumentError, InvalidKeyError), match="v"):
        table.range_partitions.define(tf.RangePartitions(on=["v"], bounds=[(0, 10)]))
    assert RANGE_PARTITIONS not in table.refresh().metadata.properties


def test_define_on_publish_target_is_rejected(table: tf.Table) -> None:
    """MT-30"""
    table.append(rows(1))
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    with pytest.raises(InvalidArgumentError, match="Make the change on 'ingest'"):
        table.range_partitions.define(RANGES)
