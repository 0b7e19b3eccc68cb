"""Manifests of a snapshot: which are kept, rewritten or merged, and which sequence numbers their entries keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from commit_tables import (
    append,
    committed,
    data_file,
    delete_blindly,
    equality_delete,
    live,
    metadata_files,
    new_table,
    planned,
    range_delete,
    reachable_metadata_files,
)
from new_lakes import new_lake
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind
from tableformat.commit.manifest_merge import choose_bins, merge_small_manifests
from tableformat.commit.transaction import commit_change
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.testing.table_rows import live_values


def manifest(number: int, size: int, content: ManifestContent = ManifestContent.DATA, spec_id: int = 0) -> ManifestFile:
    return ManifestFile(
        manifest_path=f"m{number}",
        manifest_length_bytes=size,
        partition_spec_id=spec_id,
        content=content,
        sequence_number=number,
        min_sequence_number=number,
        added_snapshot_id=number,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
    )


def sizes(bins: Sequence[Sequence[ManifestFile]]) -> list[list[int]]:
    return [[manifest.manifest_length_bytes for manifest in bin_] for bin_ in bins]


def bins_of(*oldest_to_newest: int, min_count: int = 3, target_bytes: int = 1000) -> list[list[int]]:
    numbered = [manifest(number, size) for number, size in enumerate(oldest_to_newest, 1)]
    return sizes(choose_bins(numbered, min_count, target_bytes))


class TestChoice:
    """CP-15."""

    def test_too_few_small_manifests_are_not_merged(self) -> None:
        assert bins_of(5, 5) == []
        assert bins_of(900, 900, 900, 5, 5) == []

    def test_small_manifests_are_merged(self) -> None:
        assert bins_of(900, 5, 5, 5) == [[5, 5, 5]]

    def test_larger_manifest_is_merged_with_enough_newer_ones(self) -> None:
        assert bins_of(210, 20, 5, 5, 5, 5) == [[5, 5, 5, 5, 20]]
        assert bins_of(210, 30, 5, 5, 5, 5) == [[5, 5, 5, 5]]

    def test_merged_manifests_do_not_exceed_the_target(self) -> None:
        assert bins_of(400, 400, 400, 300, 300) == [[300, 300, 400], [400, 400]]

    def test_manifests_of_different_kind_or_spec_are_not_merged(self) -> None:
        manifests = [
            *(manifest(number, 5) for number in range(1, 4)),
            *(manifest(number, 5, ManifestContent.DELETES) for number in range(4, 6)),
            *(manifest(number, 5, spec_id=1) for number in range(6, 9)),
        ]
        asked: list[list[str]] = []

        def merge(group: Sequence[ManifestFile]) -> ManifestFile:
            asked.append(sorted(each.manifest_path for each in group))
            return manifest(100 + len(asked), 15)

        properties = {"commit.manifest.min-count-to-merge": "3"}
        merged = merge_small_manifests(manifests, properties, merge)
        assert asked == [["m1", "m2", "m3"], ["m6", "m7", "m8"]]
        assert [each.manifest_path for each in merged] == ["m101", "m102", "m4", "m5"]
        assert merge_small_manifests(
            manifests, {**properties, "commit.manifest-merge.enabled": "false"}, merge
        ) == tuple(manifests)

    def test_manifest_entries_are_rewritten_logarithmically_often(self) -> None:
        """2,000 commits of one file each: the manifests stay few, an entry is copied a handful of times."""
        manifests: list[ManifestFile] = []
        copied_bytes, most = 0, 0
        for number in range(1, 2001):
            for bin_ in choose_bins(manifests, 100, 8_000_000):
                total = sum(each.manifest_length_bytes for each in bin_)
                copied_bytes += total
                manifests = [manifest(number, total), *(each for each in manifests if each not in bin_)]
            manifests.append(manifest(number, 5_000))
            most = max(most, len(manifests))
        assert most <= 101
        assert copied_bytes <= 6 * 2000 * 5_000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return new_table(EmbeddedCatalog.at(tmp_path / "lake"), properties={"commit.manifest.min-count-to-merge": "4"})


def manifests_at_head(table: Table) -> tuple[ManifestFile, ...]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    return read_manifest_list(table.io, snapshot.manifest_list)


def test_merged_entries_keep_their_numbers_and_snapshots(table: Table) -> None:
    """CP-15, DA-9: the manifest is new, the files in it are not."""
    snapshots: list[int | None] = []
    for number in range(1, 7):
        outcome = commit_change(table, append(data_file(table, f"{number}.parquet", [number])))
        snapshots.append(outcome.snapshot_id)
    newest, *older = manifests_at_head(outcome.table)
    assert (newest.added_files_count, newest.existing_files_count) == (1, 0)
    merged = [each for each in older if each.existing_files_count > 1]
    assert [(each.sequence_number, each.min_sequence_number) for each in merged] == [(5, 1)]
    entries = read_manifest(table.io, merged[0], outcome.metadata)
    found = {
        entry.file.file_path[-9:]: (entry.status, entry.file.sequence_number, entry.snapshot_id) for entry in entries
    }
    assert found == {
        f"{number}.parquet": (EntryStatus.EXISTING, number, snapshots[number - 1]) for number in range(1, 5)
    }
    assert live(outcome.table) == {f"{number}.parquet": number for number in range(1, 7)}
    assert live_values(outcome.table, "id") == [1, 2, 3, 4, 5, 6]
    assert metadata_files(outcome.table) == reachable_metadata_files(outcome.table)


def test_removed_file_leaves_one_deleted_entry(table: Table) -> None:
    """CP-16: readers of changes see what a snapshot removed, once."""
    files = [data_file(table, f"{name}.parquet") for name in "abc"]
    table = commit_change(table, append(*files)).table
    outcome = commit_change(
        table, planned(table, ChangeKind.SCAN_BASED, removed_data_files=(committed(table, "a.parquet"),))
    )
    (rewritten,) = manifests_at_head(outcome.table)
    entries = read_manifest(table.io, rewritten, outcome.metadata)
    assert [
        (entry.status, entry.snapshot_id == outcome.snapshot_id, entry.file.sequence_number) for entry in entries
    ] == [
        (EntryStatus.DELETED, True, 1),
        (EntryStatus.EXISTING, False, 1),
        (EntryStatus.EXISTING, False, 1),
    ]
    table = outcome.table
    removed = tuple(committed(table, f"{name}.parquet") for name in "bc")
    outcome = commit_change(table, planned(table, ChangeKind.SCAN_BASED, removed_data_files=removed))
    (rewritten,) = manifests_at_head(outcome.table)
    entries = read_manifest(table.io, rewritten, outcome.metadata)
    assert [entry.file.file_path[-9:] for entry in entries] == ["b.parquet", "c.parquet"]
    # A manifest without live files is history: the next snapshot does not list it.
    outcome = commit_change(outcome.table, append(data_file(table, "d.parquet")))
    assert [each.added_files_count for each in manifests_at_head(outcome.table)] == [1]


def test_a_removed_delete_file_leaves_an_entry_unless_it_is_a_range_delete(table: Table) -> None:
    """CP-16, RD-6: other readers reject a manifest with the format name of a range delete."""
    table = commit_change(table, append(data_file(table, "a.parquet"))).table
    staged = (equality_delete(table, "eq.parquet"), range_delete(table, "range.parquet"))
    table = commit_change(table, delete_blindly(*staged)).table
    removed = tuple(committed(table, name) for name in ("eq.parquet", "range.parquet"))
    change = planned(table, ChangeKind.DELETE_REWRITE, Operation.REPLACE, removed_delete_files=removed)
    outcome = commit_change(table, change)
    (of_deletes,) = (each for each in manifests_at_head(outcome.table) if each.content is ManifestContent.DELETES)
    entries = read_manifest(table.io, of_deletes, outcome.metadata)
    found = [(entry.file.file_path.rpartition("/")[2], entry.status, entry.snapshot_id) for entry in entries]
    assert found == [("eq.parquet", EntryStatus.DELETED, outcome.snapshot_id)]


def test_manifest_list_header_has_the_parent_snapshot(table: Table) -> None:
    parents = []
    for name in "ab":
        table = commit_change(table, append(data_file(table, f"{name}.parquet"))).table
        snapshot = table.metadata.current_snapshot()
        assert snapshot is not None
        with table.io.new_input(snapshot.manifest_list).open() as file:
            parents.append(fastavro.reader(file).metadata["parent-snapshot-id"])
    assert parents == ["null", str(table.metadata.snapshots[0].snapshot_id)]


def test_removal_of_files_in_single_file_manifests(table: Table) -> None:
    """CP-16: a stream commits a manifest for each checkpoint, and a conversion takes the deletes out of all of them."""
    for name in "abc":
        table = commit_change(table, append(data_file(table, f"{name}.parquet"))).table
    table = commit_change(table, append(*(data_file(table, f"{name}.parquet") for name in "de"))).table
    removed = tuple(committed(table, f"{name}.parquet") for name in "abcd")
    outcome = commit_change(table, planned(table, ChangeKind.SCAN_BASED, removed_data_files=removed))
    found = [read_manifest(table.io, each, outcome.metadata) for each in manifests_at_head(outcome.table)]
    assert [
        [(entry.status, entry.file.file_path[-9], entry.file.sequence_number) for entry in each] for each in found
    ] == [
        [(EntryStatus.DELETED, "d", 4), (EntryStatus.EXISTING, "e", 4)],
        [(EntryStatus.DELETED, name, number) for name, number in (("c", 3), ("b", 2), ("a", 1))],
    ]
    assert live(outcome.table) == {"e.parquet": 4}


def test_commit_with_data_and_deletes_of_two_specs(table: Table) -> None:
    """CP-16: a manifest holds one kind and one spec."""
    with table.update_spec() as update:
        update.add_identity("region")
    files = (data_file(table, "a.parquet"), data_file(table, "b.parquet", spec_id=1, partition=("x",)))
    outcome = commit_change(table, append(*files))
    outcome = commit_change(outcome.table, delete_blindly(equality_delete(table, "e.parquet")))
    assert {(each.content, each.partition_spec_id) for each in manifests_at_head(outcome.table)} == {
        (ManifestContent.DATA, 0),
        (ManifestContent.DATA, 1),
        (ManifestContent.DELETES, 0),
    }


def summary(table: Table) -> dict[str, str]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}


def test_summary_counts_changes_and_totals(table: Table) -> None:
    """FM-18: range deletes count as equality deletes, so engines do not answer COUNT(*) from the totals."""
    table = commit_change(table, append(data_file(table, "a.parquet"), data_file(table, "b.parquet"))).table
    assert summary(table) == {
        "operation": "append",
        "added-data-files": "2",
        "added-records": "2",
        "added-files-size": "2000",
        "changed-partition-count": "1",
        "total-data-files": "2",
        "total-delete-files": "0",
        "total-records": "2",
        "total-files-size": "2000",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    of_three_spans = replace(range_delete(table, "r.parquet"), record_count=3)
    deletes = delete_blindly(of_three_spans, equality_delete(table, "e.parquet"))
    table = commit_change(table, deletes).table
    counted = summary(table)
    assert (counted["added-equality-delete-files"], counted["added-range-delete-files"]) == ("2", "1")
    assert (counted["added-equality-deletes"], counted["added-range-deletes"]) == ("4", "3")
    assert (counted["total-equality-deletes"], counted["total-delete-files"]) == ("4", "2")
    assert "total-range-deletes" not in counted
    change = planned(
        table,
        ChangeKind.SCAN_BASED,
        removed_data_files=(committed(table, "a.parquet"),),
        removed_delete_files=(committed(table, "r.parquet"),),
    )
    counted = summary(commit_change(table, change).table)
    assert (counted["deleted-data-files"], counted["deleted-records"]) == ("1", "1")
    assert (counted["removed-range-delete-files"], counted["removed-range-deletes"]) == ("1", "3")
    assert counted["removed-equality-deletes"] == "3"
    assert (counted["removed-files-size"], counted["total-files-size"]) == ("1500", "1500")
    assert (counted["total-data-files"], counted["total-equality-deletes"]) == ("1", "1")


def test_snapshot_timestamps_of_a_branch_increase(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was set back must not make `as_of` skip snapshots."""
    first = commit_change(table, append(data_file(table, "a.parquet")))
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    second = commit_change(first.table, append(data_file(table, "b.parquet")))
    times = [snapshot.timestamp_ms for snapshot in second.metadata.snapshots]
    assert times[1] > times[0]


def partitioned_by_a_dropped_column(catalog: tf.Catalog, name: str, column: pa.DataType, values: list[Any]) -> tf.Table:
    """A table whose rows (ids from 1) are in spec 0, partitioned by a column `p` that the test drops later."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", column)])
    found = catalog.create_table(f"db.{name}", schema, key=["id"], partition_by=["p"])
    found.append(pa.table({"id": range(1, len(values) + 1), "p": pa.array(values, column)}, schema=schema))
    return found


def drop_partition_source(found: tf.Table) -> None:
    with found.update_spec() as spec:
        spec.remove_field("p")
    with found.update_schema() as update:
        update.delete_column("p")


def rewrite_old_partitions(found: tf.Table) -> None:
    """New manifests of spec 0: one that is rewritten, and ones of delete files and of data files that leave."""
    found.maintenance.rewrite_manifests()
    found.delete("id = 1", mode="scan")
    found.maintenance.compact(rewrite_all=True)


def test_partition_type_of_widened_and_dropped_column(tmp_path: Path) -> None:
    """FM-30: the newest schema that has the source column determines the type of its partition values."""
    with new_lake(tmp_path / "lake") as catalog:
        found = partitioned_by_a_dropped_column(catalog, "t", pa.int32(), [1])
        with found.update_schema() as update:
            update.update_column("p", LongType())
        found.append(pa.table({"id": [2, 3], "p": [2**40, None]}))
        assert found.verify(deep=True).findings == ()
        drop_partition_source(found)
        assert found.verify(deep=True).findings == ()
        rewrite_old_partitions(found)
        assert live_values(found, "id") == [2, 3]
        assert {row["partition"]["p"] for row in found.inspect.files().to_pylist()} == {2**40, None}
        assert found.verify(deep=True).findings == ()
