"""Many range delete files are merged into one, and the same rows of every data file stay deleted."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import keyed_table, rows
from pyiceberg.exceptions import CommitFailedException

import tableformat as tf
from tableformat.errors import CommitConflictError
from tableformat.maintenance.delete_files.merge_range_deletes import merge_range_deletes
from tableformat.metadata.content_file import DeleteKind
from tableformat.scan.context import merge_context
from tableformat.testing.table_files import files_on_disk, live_delete_files
from tableformat.testing.table_rows import live_tuples


def layered(tmp_path: Path, **options: object) -> tf.Table:
    """Data and deletes by turns, so that no single number would be right for the merged spans."""
    table = keyed_table(tmp_path, **options)
    table.append(rows("a", range(8)))
    table.delete_range(lower=("a", 1), upper=("a", 6))
    table.append(rows("a", range(8), "second"))
    table.delete_range(lower=("a", 3), upper=("a", 4))
    table.delete_prefix({"id1": "z"})
    return table


def test_merged_spans_keep_their_sequence_numbers(tmp_path: Path) -> None:
    """MT-11, MT-12, RD-8: rows written between two deletes stay; the entry carries the largest number of a span."""
    table = layered(tmp_path)
    before = live_tuples(table)
    result = table.maintenance.merge_range_deletes()
    (merged,) = live_delete_files(table)
    assert live_tuples(table) == before
    assert (result.removed_range_delete_files_count, result.added_range_delete_files_count) == (3, 1)
    assert (result.removed_spans_count, result.added_spans_count) == (3, 3), "the prefix z shadows nothing"
    spans = merge_context(table.view).loader.range_spans(merged)
    assert list(spans.sequence_numbers) == [2, 4, 2]
    assert merged.sequence_number == 4
    fresh = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    assert live_tuples(fresh) == before


def test_second_run_finds_nothing_to_merge(tmp_path: Path) -> None:
    """MT-11"""
    table = layered(tmp_path)
    first = table.maintenance.merge_range_deletes()
    second = table.maintenance.merge_range_deletes()
    assert (second.snapshot_id, second.removed_range_delete_files_count) == (first.snapshot_id, 0)


def test_older_snapshots_keep_the_original_files(tmp_path: Path) -> None:
    """MT-11: what time travel shows does not change."""
    table = layered(tmp_path)
    shown = {
        snapshot.snapshot_id: live_tuples(table, snapshot_id=snapshot.snapshot_id)
        for snapshot in table.metadata.snapshots
    }
    table.maintenance.merge_range_deletes()
    assert {snapshot_id: live_tuples(table, snapshot_id=snapshot_id) for snapshot_id in shown} == shown


def test_spans_that_delete_nothing_are_removed(tmp_path: Path) -> None:
    """MT-11, MT-10"""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]))
    table.delete_prefix({"id1": "y"})
    table.delete_prefix({"id1": "z"})
    result = table.maintenance.merge_range_deletes()
    assert (result.removed_range_delete_files_count, result.added_range_delete_files_count) == (2, 0)
    assert live_delete_files(table) == []


def test_only_named_files_are_merged(tmp_path: Path) -> None:
    """MT-11: files are merged by path, and the rows stay the same."""
    table = layered(tmp_path)
    before, files = live_tuples(table), {each.file_path for each in live_delete_files(table)}
    stays, *chosen = sorted(files)
    merge_range_deletes(table.iceberg, "main", only_paths=frozenset(chosen))
    table.refresh()
    left = {each.file_path for each in live_delete_files(table)}
    assert left & files == {stays}
    assert live_tuples(table) == before


def test_merged_files_are_converted_to_the_same_rows(tmp_path: Path) -> None:
    """MT-12"""
    table = layered(tmp_path)
    before = live_tuples(table)
    table.maintenance.merge_range_deletes()
    table.maintenance.convert_deletes()
    assert live_tuples(table) == before
    assert {delete.kind for delete in live_delete_files(table)} == {DeleteKind.POSITION}


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    table = layered(tmp_path)
    before = files_on_disk(table)
    planned = table.maintenance.merge_range_deletes(dry_run=True)
    assert (planned.removed_range_delete_files_count, planned.added_spans_count) == (3, 3)
    assert files_on_disk(table) == before


def test_files_of_lost_commit_attempts_are_removed(tmp_path: Path) -> None:
    """CP-18 for the merged files: after a concurrent commit the job plans again, and no file is left."""
    table = layered(tmp_path)
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    catalog = table.iceberg.catalog
    real, calls = catalog.commit_table, []

    def first_somebody_else(*arguments: object) -> object:
        if not calls:
            calls.append(1)
            other.delete_prefix({"id1": "a", "id2": 0})
        return real(*arguments)

    catalog.commit_table = first_somebody_else
    table.maintenance.merge_range_deletes()
    (merged,) = live_delete_files(table)
    assert len(merge_context(table.view).loader.range_spans(merged)) == 4
    assert live_tuples(table)[0] == ("a", 1, "second")
    on_disk = {location for location in files_on_disk(table) if "range-deletes" in location}
    assert merged.file_path in on_disk
    assert len(on_disk) == 5, "four that writers wrote and the merged one"


def test_files_of_a_failed_commit_are_removed(tmp_path: Path) -> None:
    """CP-18"""
    table = layered(tmp_path, properties={"commit.retry.num-retries": "1"})

    def lose(*arguments: object) -> object:
        raise CommitFailedException("always late")

    before = files_on_disk(table)
    table.iceberg.catalog.commit_table = lose
    with pytest.raises(CommitConflictError):
        table.maintenance.merge_range_deletes()
    assert files_on_disk(table) == before


def test_touching_windows_become_one_span(tmp_path: Path) -> None:
    """MT-19: only rows that are older than all of them lie there."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(9)))
    for start in (2, 4, 6):
        table.delete_range(lower=("a", start), upper=("a", start + 2))
    before = live_tuples(table)
    result = table.maintenance.merge_range_deletes()
    assert (result.removed_spans_count, result.added_spans_count) == (3, 1)
    (merged,) = live_delete_files(table)
    spans = merge_context(table.view).loader.range_spans(merged)
    assert list(spans.sequence_numbers) == [4]
    assert live_tuples(table) == before
    table.append(rows("a", [3], "later"))
    assert live_tuples(table) == sorted([*before, ("a", 3, "later")])
    assert table.maintenance.merge_range_deletes().removed_range_delete_files_count == 0


def test_consecutive_prefixes_become_one_span(tmp_path: Path) -> None:
    """MT-19, RD-14: no two of them touch, and no key lies between them."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(9)))
    for start in (2, 4, 6):
        table.delete_prefix(pa.table({"id1": ["a", "a"], "id2": [start, start + 1]}))
    before = live_tuples(table)
    result = table.maintenance.merge_range_deletes()
    assert (result.removed_spans_count, result.added_spans_count) == (3, 1)
    assert live_tuples(table) == before == [("a", number, "x") for number in (0, 1, 8)]
    assert live_delete_files(table)[0].record_count == 1
    assert table.maintenance.merge_range_deletes().removed_range_delete_files_count == 0


def test_windows_with_rows_added_between_are_not_merged(tmp_path: Path) -> None:
    """MT-19: the rows of commit 3 are younger than the first window and older than the second."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(9)))
    table.delete_range(lower=("a", 2), upper=("a", 4))
    table.append(rows("a", [3], "between"))
    table.delete_range(lower=("a", 4), upper=("a", 6))
    before = live_tuples(table)
    result = table.maintenance.merge_range_deletes()
    assert result.added_spans_count == 2
    assert live_tuples(table) == before
    assert "between" in {row[-1] for row in before}


def test_windows_with_possible_carried_rows_are_not_merged(tmp_path: Path) -> None:
    """MT-19, MT-31: rows that another branch got between the two deletes are carried here with their number."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(9)))
    table.create_branch("ingest")
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    ingest.delete_range(lower=("a", 2), upper=("a", 4))
    table.refresh().append(rows("a", [3], "other"))
    ingest.refresh().delete_range(lower=("a", 4), upper=("a", 6))
    assert ingest.maintenance.merge_range_deletes().added_spans_count == 2
    table.refresh().maintenance.publish("ingest")
    assert "other" in {row[-1] for row in live_tuples(table)}
