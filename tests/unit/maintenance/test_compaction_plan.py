"""The files that a compaction would rewrite, and the reasons that it gives."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import keyed_table, rows, table_of

import tableformat as tf
from tableformat.errors import InvalidArgumentError, UnknownColumnError, UnknownOptionError
from tableformat.maintenance.compaction.compaction_plan import CompactionPlan, GroupKind
from tableformat.testing.table_files import live_data_files, live_files

UNIT = 2_000
"""A target size that a file of a few rows is near to."""


def sizes(table: tf.Table) -> list[int]:
    return [file.file_size_bytes for file in live_data_files(table)]


def shape(plan: CompactionPlan) -> list[tuple[str, int, int]]:
    return [(group.kind.value, len(group.tasks), group.output_file_count) for group in plan.groups]


def test_small_files_are_merged_at_the_minimum_count(tmp_path: Path) -> None:
    """MT-41: also small files that overlap."""
    table = table_of(tmp_path, *(range(10 * i, 10 * i + 10) for i in range(4)))
    assert table.maintenance.plan_compaction().groups == ()
    table.append(rows("a", range(40, 50)))
    assert shape(table.maintenance.plan_compaction()) == [("merge", 5, 1)]
    assert shape(table.maintenance.plan_compaction(min_input_files=6)) == []


def test_file_with_many_deleted_rows_is_rewritten(tmp_path: Path) -> None:
    """MT-40: at the threshold, not below it."""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete_range(lower=("a", 0), upper=("a", 3))
    (group,) = table.maintenance.plan_compaction(target_file_size_bytes=UNIT).groups
    assert (group.kind, group.deleted_row_count, group.row_count) == (GroupKind.FOLD, 3, 10)
    assert group.reasons == ("3 of 10 rows are deleted",)
    assert table.maintenance.plan_compaction(target_file_size_bytes=UNIT, delete_ratio_threshold=0.31).groups == ()


@pytest.mark.parametrize("version", ["2", "3"])
def test_file_with_many_position_deletes_is_rewritten(tmp_path: Path, version: str) -> None:
    """MT-40: named in position delete files, or in a deletion vector."""
    table = table_of(tmp_path, range(10), range(10, 20), properties={"format-version": version})
    table.delete("id2 in (1, 2, 3)", mode="scan")
    (fold,) = table.maintenance.plan_compaction(target_file_size_bytes=UNIT).groups
    assert (fold.kind, fold.deleted_row_count, fold.row_count) == (GroupKind.FOLD, 3, 10)


def test_equality_deletes_are_counted_only_if_threshold_is_reachable(tmp_path: Path) -> None:
    """MT-40: the number of keys bounds the number of rows, so the data file is not opened."""
    table = table_of(tmp_path, range(100))
    path = sorted(Path(table.location.removeprefix("file://")).rglob("*.parquet"))[0]
    table.delete_rows(pa.table({"id1": ["a"] * 5, "id2": [1, 2, 3, 4, 500]}))
    bytes_of_file = path.read_bytes()
    path.unlink()
    fresh = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    assert fresh.maintenance.plan_compaction().groups == ()
    path.write_bytes(bytes_of_file)
    (group,) = fresh.maintenance.plan_compaction(delete_ratio_threshold=0.04).groups
    assert group.deleted_row_count == 4


def test_equality_deletes_on_other_columns_are_counted_by_rows(tmp_path: Path) -> None:
    """MT-40: one value may be in every row."""
    table = table_of(tmp_path, range(100))
    table.append(rows("b", range(3)))
    table.delete_rows(pa.table({"id1": ["a"]}))
    drop, *others = table.maintenance.plan_compaction().groups
    assert (drop.kind, drop.deleted_row_count, drop.rewritten_bytes, others) == (GroupKind.DROP, 100, 0, [])


def test_covered_file_is_dropped_first_without_reading(tmp_path: Path) -> None:
    """MT-42, RD-10: it costs nothing."""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete_range(lower=("a", 10))
    table.delete_range(lower=("a", 2), upper=("a", 6))
    plan = table.maintenance.plan_compaction()
    assert shape(plan) == [("drop", 1, 0), ("fold", 1, 1)]
    assert plan.groups[0].saved_per_byte == float("inf")
    assert plan.rewritten_bytes == sizes(table)[1]


def test_delete_file_threshold_selects_files(tmp_path: Path) -> None:
    """MT-40"""
    table = table_of(tmp_path, range(1000))
    for key in range(3):
        table.delete_rows(pa.table({"id1": ["a"], "id2": [key]}))
    assert table.maintenance.plan_compaction().groups == ()
    (group,) = table.maintenance.plan_compaction(delete_file_threshold=3).groups
    assert group.reasons == ("at most 3 of 1,000 rows are deleted", "3 deletes are applied to a file on each read")


def test_large_overlapping_files_are_merged(tmp_path: Path) -> None:
    """MT-41: Kudu's benefit: the sum of widths less the width of the union."""
    table = table_of(tmp_path, range(0, 3000, 3), range(1, 3000, 3), range(2, 3000, 3))
    target = max(sizes(table))
    (group,) = table.maintenance.plan_compaction(target_file_size_bytes=target).groups
    assert (group.kind, len(group.tasks), group.output_file_count) == (GroupKind.MERGE, 3, 3)
    assert group.reasons[-1] == "a key lookup opens 3.0 of the files instead of 1"


def test_file_far_above_the_target_is_split(tmp_path: Path) -> None:
    """MT-44"""
    table = table_of(tmp_path, range(5000))
    (group,) = table.maintenance.plan_compaction(target_file_size_bytes=sizes(table)[0] // 2).groups
    assert (group.kind, group.output_file_count) == (GroupKind.FOLD, 2)


def test_groups_never_cross_partitions(tmp_path: Path) -> None:
    """MT-42: a delete that is limited to a partition must go on applying."""
    table = keyed_table(tmp_path, partition_by=("id1",))
    for name in ("a", "b"):
        for start in range(0, 15, 3):
            table.append(rows(name, range(start, start + 3)))
    plan = table.maintenance.plan_compaction()
    assert sorted((group.partition, len(group.tasks)) for group in plan.groups) == [(("a",), 5), (("b",), 5)]


def test_groups_never_cross_specs(tmp_path: Path) -> None:
    """MT-42: files of an older spec stay in it."""
    table = table_of(tmp_path, *(range(5 * i, 5 * i + 5) for i in range(5)))
    with table.update_spec() as update:
        update.add_identity("id1")
    table.refresh()
    for i in range(5, 10):
        table.append(rows("a", range(5 * i, 5 * i + 5)))
    plan = table.maintenance.plan_compaction()
    assert sorted((group.partition, len(group.tasks)) for group in plan.groups) == [((), 5), (("a",), 5)]


def test_fold_depth_rewrites_only_single_files(tmp_path: Path) -> None:
    table = table_of(tmp_path, *(range(10 * i, 10 * i + 10) for i in range(6)))
    table.delete_range(lower=("a", 5), upper=("a", 15))
    assert shape(table.maintenance.plan_compaction(depth="fold")) == [("fold", 1, 1), ("fold", 1, 1)]


def test_where_selects_files_and_keeps_all_their_deletes(tmp_path: Path) -> None:
    """MT-42: a delete of rows that do not match the filter still belongs to the file."""
    table = table_of(tmp_path, range(10), range(10, 20))
    table.delete_range(lower=("a", 5), upper=("a", 20))
    (group,) = table.maintenance.plan_compaction(where="id2 < 3").groups
    assert (group.row_count, group.deleted_row_count) == (10, 5)


def test_budget_prefers_groups_with_the_highest_savings_per_byte(tmp_path: Path) -> None:
    """MT-42"""
    table = keyed_table(tmp_path, partition_by=("id1",))
    table.append(rows("a", range(3000)))
    table.append(rows("b", range(3000)))
    table.delete_range(lower=("a", 0), upper=("a", 1000))
    table.delete_range(lower=("b", 0), upper=("b", 2000))
    whole = table.maintenance.plan_compaction()
    assert [group.partition for group in whole.groups] == [("b",), ("a",)]
    plan = table.maintenance.plan_compaction(max_rewritten_bytes=whole.groups[0].rewritten_bytes)
    assert [group.partition for group in plan.groups] == [("b",)]
    assert [group.partition for group in plan.left_out] == [("a",)]
    assert "1 more groups" in str(plan)


def test_rewrite_all_groups_overlapping_files(tmp_path: Path) -> None:
    table = table_of(tmp_path, range(1000), range(1000, 2000), range(2000, 3000), range(2500, 2600))
    plan = table.maintenance.plan_compaction(rewrite_all=True, max_file_group_size_bytes=1)
    assert sorted(len(group.tasks) for group in plan.groups) == [1, 1, 2], "files that overlap stay together"


def test_plan_text_lists_groups_and_reasons(tmp_path: Path) -> None:
    table = table_of(tmp_path, *(range(10 * i, 10 * i + 10) for i in range(5)))
    plan = table.maintenance.plan_compaction()
    lines = str(plan).splitlines()
    assert lines[0].startswith(f"compaction of snapshot {table.snapshot_id}: 1 groups, 5 of 5 data files")
    assert lines[1].startswith("merge 5 files into 1, saves ")
    assert lines[2:] == ["    5 files are below 402,653,184 bytes"]
    (row,) = plan.to_arrow().to_pylist()
    assert (row["kind"], row["record_count"], row["reasons"]) == ("merge", 50, ["5 files are below 402,653,184 bytes"])
    assert sorted(row["file_paths"]) == sorted(file.file_path for file in live_files(table))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"depth": "deep"}, InvalidArgumentError, 'depth must be "merge" or "fold"'),
        ({"delete_ratio_threshold": 0}, InvalidArgumentError, "delete_ratio_threshold must be above 0"),
        ({"delete_ratio_threshold": 1.01}, InvalidArgumentError, "at most 1, not 1.01"),
        ({"delete_ratio_threshold": "0.5"}, InvalidArgumentError, "delete_ratio_threshold must be a number"),
        ({"min_input_files": 0}, InvalidArgumentError, "min_input_files must be a whole number above 0"),
        ({"min_input_files": True}, InvalidArgumentError, "min_input_files must be a whole number"),
        ({"max_rewritten_bytes": "9"}, InvalidArgumentError, "max_rewritten_bytes must be a whole number"),
        ({"max_rewritten_bytes": 1.5}, InvalidArgumentError, "max_rewritten_bytes must be a whole number"),
        ({"where": "nonsense = 1"}, UnknownColumnError, "nonsense"),
        ({"min_inputs": 3}, UnknownOptionError, "min_input_files"),
    ],
)
def test_invalid_option_error_names_the_option(
    tmp_path: Path, options: dict[str, object], error: type[Exception], text: str
) -> None:
    table = keyed_table(tmp_path)
    with pytest.raises(error, match=text):
        table.maintenance.plan_compaction(**options)
