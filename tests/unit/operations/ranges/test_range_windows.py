"""Sliding windows, and partitions that are retired and restored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, TimestamptzType

import tableformat as tf
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.operations.ranges.window import advanced
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.window import now_of
from tableformat.testing.table_files import live_data_files, live_files
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([("n", pa.int64()), ("id", pa.int64())])


def made(catalog: tf.Catalog, **given: Any) -> tf.Table:
    options = {"on": ["n"], "bounds": [(0, 50)], "step": 10, **given}
    properties = {"format-version": str(given.pop("version", 2))}
    options.pop("version", None)
    ranges = tf.RangePartitions(**options)
    return catalog.create_table("db.t", SCHEMA, key=["n", "id"], range_partitions=ranges, properties=properties)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64()), "id": [1] * len(numbers)})


def test_advance_adds_new_and_drops_old_ranges_in_one_commit(catalog: tf.Catalog) -> None:
    """RP-11: only partitions that end at or before the horizon."""
    table = made(catalog, retain=25, ahead=1)
    table.append(rows(5, 15, 25, 45))
    before = len(table.history())
    tried = table.range_partitions.advance(now=45, dry_run=True)
    result = table.range_partitions.advance(now=45)
    assert (result.added, result.dropped) == (tried.added, tried.dropped) == (("[50, 60)",), ("[0, 10)", "[10, 20)"))
    assert len(table.history()) == before + 1
    assert live_values(table, "n") == [25, 45]
    again = table.range_partitions.advance(now=45)
    assert (again.added, again.dropped, again.snapshot_id) == ((), (), None)


@pytest.mark.parametrize(
    ("guards", "dropped"),
    [
        ({"keep_latest": 4}, ("[0, 10)",)),
        ({"protect": [(12, 13)]}, ("[0, 10)", "[20, 30)", "[30, 40)", "[40, 50)")),
        ({"max_drops": 2}, ("[0, 10)", "[10, 20)")),
    ],
)
def test_window_guards_limit_dropped_ranges(
    guards: dict[str, Any], dropped: tuple[str, ...], catalog: tf.Catalog
) -> None:
    """RP-11: now is wrong by far, and the guards hold."""
    table = made(catalog, retain=10, **guards)
    assert table.range_partitions.advance(now=9_999_999).dropped == dropped


def test_window_days_follow_the_time_zone() -> None:
    """RP-11, RP-4"""
    schema = Schema(NestedField(1, "at", TimestamptzType(), required=True))
    days = tf.RangePartitions(on=["at"], step="1 day", ahead=1, time_zone="Europe/Berlin")
    defined = define(days, schema)
    found = advanced(defined, now_of(defined, datetime(2024, 3, 30, 23, 30, tzinfo=UTC)))
    assert [defined.text(each) for each in found.added] == ["[2024-03-30T23:00:00, 2024-04-01T22:00:00)"]


def test_advance_requires_a_clock_and_a_window(catalog: tf.Catalog) -> None:
    """RP-11"""
    table = made(catalog, retain=10)
    with pytest.raises(InvalidArgumentError, match="does not represent time: pass now="):
        table.range_partitions.advance()
    catalog.drop_table("db.t")
    with pytest.raises(InvalidArgumentError, match="has no window"):
        made(catalog).range_partitions.advance(now=5)


@pytest.mark.parametrize("version", [2, 3])
def test_restored_range_is_unchanged(version: int, catalog: tf.Catalog) -> None:
    """RP-13: the same files with their sequence numbers and the deletes that were applied to them; other rows keep
    their current state."""
    table = made(catalog, version=version)
    table.append(rows(1, 2, 3, 4, 15))
    table.delete_prefix({"n": 1})
    table.delete("n = 2", mode="scan")
    table.delete_rows(pa.table({"n": pa.array([3], pa.int64())}))
    files = {file.file_path: file.sequence_number for file in live_data_files(table)}
    retired = table.range_partitions.retire(0, 10)
    assert retired.tag is not None
    assert live_values(table, "n") == [15]
    assert table.scan(tag=retired.tag).count() == 2
    table.maintenance.drop_dead_deletes()
    table.maintenance.convert_deletes()
    table.append(rows(16))
    result = table.range_partitions.restore(retired.tag)
    assert result.restored_data_files_count == 1
    assert live_values(table, "n") == [4, 15, 16]
    assert files.items() <= {file.file_path: file.sequence_number for file in live_data_files(table)}.items()
    table.append(rows(9))
    assert table.verify(deep=True).is_clean, table.verify(deep=True)
    with pytest.raises(SnapshotNotFoundError):
        table.range_partitions.restore(retired.tag)


def test_range_retired_before_upgrade_is_restored_with_vectors(catalog: tf.Catalog) -> None:
    """RP-13, CP-19: version 3 takes no position delete files, of several for one data file either."""
    table = made(catalog, version=2)
    table.append(rows(1, 2, 3, 4))
    table.append(rows(11, 12))
    table.append(rows(25))
    for number in (2, 3, 12):
        table.delete(f"n = {number}", mode="scan")
    tags = [table.range_partitions.retire(lower, lower + 10).tag for lower in (0, 10)]
    table.upgrade()
    table.append(rows(26))
    for tag in tags:
        assert tag is not None
        assert table.range_partitions.restore(tag, dry_run=True).restored_data_files_count == 1
        table.range_partitions.restore(tag)
    assert live_values(table, "n") == [1, 4, 11, 25, 26]
    assert table.inspect.delete_files()["kind"].to_pylist() == ["deletion-vector"] * 2
    table.delete("n = 4", mode="scan")
    assert live_values(table, "n") == [1, 11, 25, 26]
    found = table.verify(deep=True)
    assert found.is_clean, found
    assert table.maintenance.remove_orphan_files(older_than=10**15, allow_recent=True).deleted_files_count == 0


@pytest.mark.parametrize("is_compacted", [False, True])
def test_restore_on_branch_with_the_files_adds_nothing_twice(is_compacted: bool, catalog: tf.Catalog) -> None:
    """RP-13: what was retired on one branch is restored on another that has its files."""
    table = made(catalog)
    table.append(rows(5, 15, 25))
    table.create_branch("b")
    tag = table.range_partitions.retire(10, 20).tag
    assert tag is not None
    branch = catalog.load_table("db.t", branch="b")
    before = live_values(branch, "n")
    if is_compacted:
        branch.maintenance.compact(rewrite_all=True)
    assert branch.refresh().range_partitions.restore(tag).restored_data_files_count == 0
    assert live_values(branch.refresh(), "n") == before == [5, 15, 25]
    assert "[10, 20)" in branch.range_partitions.list()["partition"].to_pylist()


LATER_DELETES: dict[str, Callable[[tf.Table], Any]] = {
    "range delete": lambda table: table.delete_prefix({"n": 2}),
    "equality delete": lambda table: table.delete_rows(pa.table({"n": pa.array([2], pa.int64())})),
    "scan": lambda table: table.delete("n = 2", mode="scan"),
    "several": lambda table: [table.delete_prefix({"n": number}) for number in (2, 7)],
}


@pytest.mark.parametrize("version", every(2, [3, 2]))
@pytest.mark.parametrize("job", ["none", "convert_deletes", "compact"])
@pytest.mark.parametrize("name", LATER_DELETES)
@pytest.mark.parametrize("deletes", ["apply", "ignore"])
def test_delete_during_retirement_is_applied_or_ignored(
    deletes: str, name: str, job: str, version: int, catalog: tf.Catalog
) -> None:
    """RP-13: whether the delete is live, converted, or compacted away; rows that were deleted before stay deleted."""
    table = made(catalog, version=version)
    table.append(rows(1, 2, 3, 15))
    table.delete("n = 3", mode="scan")
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.append(rows(16, 17))
    LATER_DELETES[name](table)
    if name == "scan":
        table.delete("n = 2 OR n = 17", mode="scan")
    if job != "none":
        getattr(table.maintenance, job)()
    before = table.refresh().iceberg.metadata_location
    with pytest.raises(InvalidArgumentError, match="deletes='apply'"):
        table.range_partitions.restore(tag)
    assert table.refresh().iceberg.metadata_location == before
    assert table.range_partitions.restore(tag, deletes=deletes, dry_run=True).restored_data_files_count == 1
    table.range_partitions.restore(tag, deletes=deletes)
    others = [15, 16] if name == "scan" else [15, 16, 17]
    assert live_values(table, "n") == [1, *([] if deletes == "apply" else [2]), *others]
    assert table.verify(deep=True).is_clean, table.verify(deep=True)
    table.maintenance.convert_deletes()
    table.maintenance.compact(rewrite_all=True)
    assert live_values(table.refresh(), "n") == [1, *([] if deletes == "apply" else [2]), *others]


@pytest.mark.parametrize("where", ["n < 10 AND id > 1", "n < 20 AND id > 1", "id > 1 AND n > 0"])
@pytest.mark.parametrize("options", [{}, {"mode": "scan"}])
@pytest.mark.parametrize("deletes", ["apply", "ignore"])
def test_scan_delete_of_retired_rows_is_recorded(
    deletes: str, options: dict[str, str], where: str, catalog: tf.Catalog
) -> None:
    """RP-13: whether or not the delete also matches a row that is not retired."""
    table = made(catalog)
    table.append(pa.table({"n": [1, 2, 15, 16, 25], "id": [1, 2, 1, 2, 1]}))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    deleted = table.delete(where, **options).deleted_row_count
    assert deleted == (0 if where == "n < 10 AND id > 1" else 1)
    with pytest.raises(InvalidArgumentError, match="1 deletes that may affect"):
        table.range_partitions.restore(tag)
    table.range_partitions.restore(tag, deletes=deletes)
    others = [15, 25] if deleted else [15, 16, 25]
    assert live_values(table, "n") == [1, *([] if deletes == "apply" else [2]), *others]
    assert table.verify(deep=True).is_clean, table.verify(deep=True)


def test_delete_of_only_retired_rows_is_recorded_without_blind_deletes(catalog: tf.Catalog) -> None:
    """RP-13: all rows are found by their condition."""
    table = made(catalog)
    table.set_properties({"write.delete.blind": "off"})
    table.append(rows(1, 2, 15))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    before = table.snapshot_id
    result = table.delete("n = 2")
    assert (result.deleted_row_count, result.added_delete_files_count) == (0, 0)
    assert result.snapshot_id != before
    assert table.changes(from_snapshot_id=before).to_arrow().num_rows == 0
    with pytest.raises(InvalidArgumentError, match="deletes='apply'"):
        table.range_partitions.restore(tag)
    table.range_partitions.restore(tag, deletes="apply")
    assert live_values(table, "n") == [1, 15]


def test_delete_of_other_rows_does_not_affect_restore(catalog: tf.Catalog) -> None:
    """RP-13: its bounds do not overlap the retired files. A replacement of an existing range does not overlap them
    either."""
    table = made(catalog)
    table.append(rows(1, 15, 25))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.delete_prefix({"n": 15})
    table.replace(rows(25), prefix=["n"])
    table.range_partitions.restore(tag)
    assert live_values(table, "n") == [1, 25]


def test_update_during_retirement_does_not_affect_restore(catalog: tf.Catalog) -> None:
    """RP-13: it changed rows of other ranges."""
    ranges = tf.RangePartitions(on=["n"], bounds=[(0, 50)], step=10)
    schema = pa.schema([("n", pa.int64()), ("v", pa.int64())])
    table = catalog.create_table("db.v", schema, key=["n"], range_partitions=ranges)
    table.append(pa.table({"n": [1, 25], "v": [0, 0]}))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.update("n = 25", set={"v": "v + 1"})
    table.range_partitions.restore(tag)
    assert live_values(table, "v") == [0, 1]


def test_restore_with_expired_history_can_only_ignore_deletes(catalog: tf.Catalog) -> None:
    """RP-13: the deletes that were committed are unknown."""
    table = made(catalog)
    table.append(rows(1, 2, 15))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.delete_prefix({"n": 2})
    table.maintenance.convert_deletes()
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    for deletes in (None, "apply"):
        with pytest.raises(InvalidArgumentError, match="expired"):
            table.range_partitions.restore(tag, deletes=deletes)
    table.range_partitions.restore(tag, deletes="ignore")
    assert live_values(table, "n") == [1, 2, 15]


def test_restore_cannot_apply_deletes_without_recorded_condition(catalog: tf.Catalog) -> None:
    """RP-13: such as one of another engine, or of a version that recorded none."""
    table = made(catalog)
    table.append(rows(1, 2, 15, 16))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.iceberg.delete("n = 16")
    table.refresh()
    with pytest.raises(InvalidArgumentError, match="have no recorded condition"):
        table.range_partitions.restore(tag, deletes="apply")
    table.range_partitions.restore(tag, deletes="ignore")
    assert live_values(table, "n") == [1, 2, 15]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("has_equality_deletes", [False, True])
def test_restore_does_not_apply_deletes_to_other_ranges(
    has_equality_deletes: bool, version: int, catalog: tf.Catalog
) -> None:
    """RP-13: a delete that no longer exists was made while the first range was retired, and both ranges contain its
    keys."""
    table = made(catalog, version=version)
    if has_equality_deletes:
        table.set_properties({"write.delete.prefix-encoding": "equality"})
    table.set_key(["id", "n"])
    table.append(pa.table({"n": [1, 2, 11, 12, 13, 21, 22], "id": [7, 8, 7, 8, 9, 7, 8]}))
    first = table.range_partitions.retire(0, 10).tag
    table.delete_prefix({"id": 7})
    table.delete("n = 12", mode="scan")
    second = table.range_partitions.retire(10, 20).tag
    table.maintenance.convert_deletes()
    assert first is not None
    assert second is not None
    table.range_partitions.restore(first, deletes="ignore")
    assert live_values(table, "n") == [1, 2, 22]
    assert table.range_partitions.restore(second, dry_run=True).restored_data_files_count == 1
    table.range_partitions.restore(second)
    assert live_values(table, "n") == [1, 2, 13, 22]
    again = table.range_partitions.retire(0, 10).tag
    assert again is not None
    table.range_partitions.restore(again)
    assert live_values(table, "n") == [1, 2, 13, 22]
    found = table.verify(deep=True)
    assert found.is_clean, found
    assert table.maintenance.remove_orphan_files(older_than=10**15, allow_recent=True).deleted_files_count == 0


def test_restore_over_existing_range_is_rejected(catalog: tf.Catalog) -> None:
    """RP-13"""
    table = made(catalog)
    table.append(rows(1))
    tag = table.range_partitions.retire(0, 10).tag
    assert tag is not None
    table.range_partitions.add(5, 8)
    with pytest.raises(InvalidArgumentError, match=r"\[5, 8\) already exists.*drop or retire \[5, 8\) first"):
        table.range_partitions.restore(tag)
    with pytest.raises(SnapshotNotFoundError, match=rf"{tag}.*range_partitions\.list\(\)"):
        table.range_partitions.restore("april")
    assert table.range_partitions.drop(5, 8).snapshot_id is not None
    assert table.range_partitions.restore(tag, dry_run=True).restored_data_files_count == 1
    assert table.range_partitions.restore(tag).added == ("[0, 10)",)
    assert live_values(table, "n") == [1]


def test_only_whole_files_are_retired(catalog: tf.Catalog) -> None:
    """RP-13: and tags of the same range have different names."""
    table = catalog.create_table(
        "db.w", SCHEMA, key=["n"], range_partitions=tf.RangePartitions(on=["n"], bounds=[(0, 100)])
    )
    table.append(rows(10, 60))
    table.range_partitions.split(50)
    with pytest.raises(InvalidArgumentError, match="rows both inside and outside"):
        table.range_partitions.retire(50, 100)
    table.maintenance.compact()
    tags = []
    for _ in range(2):
        result = table.refresh().range_partitions.retire(50, 100)
        tags.append(result.tag)
        assert (result.removed_row_count, live_values(table, "n")) == (1, [10])
        table.range_partitions.restore(result.tag or "")
        table.create_tag(result.tag or "", table.snapshot_id)
    assert tags == ["retired-50-100", "retired-50-100-2"]


def test_drop_removes_row_deletes_of_dropped_files(catalog: tf.Catalog) -> None:
    """RP-12"""
    table = made(catalog)
    table.append(rows(1, 2, 15))
    table.delete("n = 2", mode="scan")
    table.range_partitions.drop(0, 10)
    assert [file.record_count for file in live_files(table)] == [1]
    assert table.verify(deep=True).is_clean
