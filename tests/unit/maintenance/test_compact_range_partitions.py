"""Compaction with range partitions: groups stay within partition bounds, and files that cross a bound are split."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])


def made(catalog: tf.Catalog, version: str = "2", **given: Any) -> tf.Table:
    ranges = tf.RangePartitions(**{"on": ["n"], "bounds": [(0, 100)], **given})
    options = {"format-version": version}
    return catalog.create_table("db.t", SCHEMA, key=["id"], range_partitions=ranges, properties=options)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers, "n": numbers}, schema=SCHEMA)


def listed(table: tf.Table) -> list[tuple[str, int, int, int]]:
    found = table.refresh().range_partitions.list().to_pylist()
    return [(e["partition"], e["file_count"], e["record_count"], e["straddling_file_count"]) for e in found]


@pytest.mark.parametrize("version", ["2", "3"])
def test_file_that_crosses_a_range_bound_is_split(version: str, catalog: tf.Catalog) -> None:
    """RP-16: alone, without being asked for; its deletes are applied."""
    table = made(catalog, version)
    table.append(rows(10, 20, 60, 70))
    table.delete("n = 20", mode="scan")
    table.range_partitions.split(50)
    assert listed(table) == [("[0, 50)", 1, 4, 1), ("[50, 100)", 1, 4, 1)]
    plan = table.maintenance.plan_compaction()
    assert [group.reasons[0] for group in plan.groups] == ["it straddles range partitions"]
    table.maintenance.compact()
    assert listed(table) == [("[0, 50)", 1, 1, 0), ("[50, 100)", 1, 2, 0)]
    assert live_values(table, "n") == [10, 60, 70]
    assert table.maintenance.plan_compaction().groups == ()


def test_compaction_groups_do_not_cross_range_bounds(catalog: tf.Catalog) -> None:
    """RP-16: files of one partition of the spec, and of several ranges."""
    table = made(catalog, splits=[50])
    for start in range(4):
        table.append(rows(start, 50 + start))
    table.maintenance.compact(rewrite_all=True)
    assert listed(table) == [("[0, 50)", 1, 4, 0), ("[50, 100)", 1, 4, 0)]


def test_upkeep_does_not_merge_across_range_bounds(catalog: tf.Catalog) -> None:
    """RP-16: each range has its own levels."""
    table = made(catalog, splits=[50])
    table.set_properties({"tableformat.upkeep.files-per-level": "3", "tableformat.upkeep.write-amplification": "100"})
    for start in range(3):
        table.append(rows(start, 50 + start))
    assert sum(result.merged_data_files_count for result in table.maintenance.upkeep()) == 6
    assert listed(table) == [("[0, 50)", 1, 3, 0), ("[50, 100)", 1, 3, 0)]


def test_uncovered_rows_are_compacted_separately(catalog: tf.Catalog) -> None:
    """RP-16, RP-10"""
    table = made(catalog, bounds=[(0, 50), (60, 100)])
    table.append(rows(1, 70))
    for number in (55, 200, 56):
        table.iceberg.refresh()
        table.iceberg.append(rows(number))
    table.refresh().maintenance.compact(rewrite_all=True)
    assert listed(table) == [("[0, 50)", 1, 1, 0), ("[60, 100)", 1, 1, 0), ("uncovered", 2, 3, 0)]
    assert live_values(table, "n") == [1, 55, 56, 70, 200]


def test_split_rows_of_interleaved_ranges_stay_sorted_by_key(catalog: tf.Catalog) -> None:
    """RP-16: the range column is outside of the key."""
    table = made(catalog)
    ids = list(range(1_000))
    table.append(pa.table({"id": ids, "n": [number % 100 for number in ids]}, schema=SCHEMA))
    table.range_partitions.alter(split=[25, 50, 75])
    table.maintenance.compact()
    assert [count for _, _, count, _ in listed(table)] == [250] * 4
    assert table.verify(deep=True).is_clean
