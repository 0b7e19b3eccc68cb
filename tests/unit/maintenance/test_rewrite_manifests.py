"""Manifests are rewritten by partition; files, rows, sequence numbers and row ids stay the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from maintenance_tables import another_handle, keyed_table, rows
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.errors import InvalidArgumentError
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.testing.table_files import files_on_disk, live_files
from tableformat.testing.table_rows import live_tuples


def partitioned(directory: Path, **options: object) -> tf.Table:
    """Three partitions, four commits to each, deletes of two kinds, one manifest a commit."""
    table = keyed_table(directory, partition_by=("id1",), **options)
    for start in range(4):
        for name in ("c", "a", "b"):
            table.append(rows(name, range(start, 12, 4)))
    table.delete_range(lower=("a", 3), upper=("a", 5))
    table.delete("id1 = 'b' and id2 = 7", mode="scan")
    return table


def of(table: tf.Table, content: ManifestContent) -> list[ManifestFile]:
    return [manifest for manifest in manifests_of(table.view) if manifest.content is content]


def facts(table: tf.Table) -> dict[str, tuple[object, ...]]:
    """The parts of each entry that a manifest rewrite must not change, by path."""
    view = table.view
    return {
        entry.file.file_path: (entry.snapshot_id, entry.file)
        for manifest in manifests_of(view)
        for entry in read_manifest(view.io, manifest, view.metadata)
        if entry.status is not EntryStatus.DELETED
    }


@pytest.mark.parametrize("version", ["2", "3"])
def test_entries_keep_inherited_values(tmp_path: Path, version: str) -> None:
    """MT-48, CP-15: snapshot id, both sequence numbers and, in version 3, the row ids."""
    table = partitioned(tmp_path, properties={"format-version": version})
    before, entries = live_tuples(table), facts(table)
    manifest_count = len(manifests_of(table.view))
    result = table.maintenance.rewrite_manifests()
    assert facts(table) == entries
    assert live_tuples(table) == before
    assert live_tuples(another_handle(table)) == before
    assert (len(of(table, ManifestContent.DATA)), result.snapshot_id) == (1, table.snapshot_id)
    assert result.rewritten_manifests_count - result.added_manifests_count == manifest_count - len(
        manifests_of(table.view)
    )
    snapshot = table.view.snapshot
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation is Operation.REPLACE
    assert snapshot.summary["total-records"] == "36"


def test_manifests_are_clustered_by_partition(tmp_path: Path) -> None:
    """MT-48: a scan of one partition reads one of them."""
    table = partitioned(tmp_path)
    size = sum(manifest.manifest_length_bytes for manifest in of(table, ManifestContent.DATA))
    table.set_properties(**{"commit.manifest.target-size-bytes": str(size // 3 + 1)})
    table.maintenance.rewrite_manifests()
    bounds = [
        (manifest.partitions[0].lower_bound, manifest.partitions[0].upper_bound)
        for manifest in of(table, ManifestContent.DATA)
        if manifest.partitions
    ]
    assert bounds == [(b"a", b"a"), (b"b", b"b"), (b"c", b"c")]
    plan = table.scan("id1 = 'b'").plan()
    assert (plan.pruning.data_manifest_count, plan.pruning.skipped_data_manifest_count) == (3, 2)


def test_second_run_changes_nothing(tmp_path: Path) -> None:
    """MT-48"""
    table = partitioned(tmp_path)
    first = table.maintenance.rewrite_manifests()
    before = files_on_disk(table)
    second = table.maintenance.rewrite_manifests()
    assert (second.rewritten_manifests_count, second.added_manifests_count) == (0, 0)
    assert second.snapshot_id == first.snapshot_id
    assert files_on_disk(table) == before


def test_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    table = partitioned(tmp_path)
    before = files_on_disk(table)
    planned = table.maintenance.rewrite_manifests(dry_run=True)
    assert files_on_disk(table) == before
    assert planned.dry_run
    done = table.maintenance.rewrite_manifests()
    assert not done.dry_run
    assert planned.rewritten_manifests_count == done.rewritten_manifests_count > 0
    assert planned.added_manifests_count == done.added_manifests_count


def test_manifests_are_rewritten_per_spec(tmp_path: Path) -> None:
    """MT-48: and one spec can be rewritten alone."""
    table = partitioned(tmp_path)
    with table.update_spec() as update:
        update.remove_field("id1")
    table.refresh()
    new_spec = table.metadata.default_spec_id
    table.append(rows("d", range(3)))
    table.append(rows("e", range(3)))
    before, entries = live_tuples(table), facts(table)
    table.maintenance.rewrite_manifests(spec_id=new_spec)
    by_spec = [manifest.partition_spec_id for manifest in of(table, ManifestContent.DATA)]
    assert (by_spec.count(new_spec), len(by_spec)) == (1, 13)
    table.maintenance.rewrite_manifests()
    assert sorted(manifest.partition_spec_id for manifest in of(table, ManifestContent.DATA)) == [0, new_spec]
    assert (live_tuples(table), facts(table)) == (before, entries)


def test_unknown_spec_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no partition spec 17"):
        partitioned(tmp_path).maintenance.rewrite_manifests(spec_id=17)


def test_sort_by_fields_of_an_older_spec(tmp_path: Path) -> None:
    """MT-48: the current one does not have them."""
    table = partitioned(tmp_path)
    with table.update_spec() as update:
        update.remove_field("id1")
    table.refresh()
    assert table.maintenance.rewrite_manifests(spec_id=0, sort_by=["id1"]).rewritten_manifests_count > 0
    with pytest.raises(InvalidArgumentError, match="'id1' is not a field of partition spec 1, which has no fields"):
        table.maintenance.rewrite_manifests(sort_by=["id1"])


def test_concurrent_commits_are_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-48: the manifests are made from the head of each attempt; a lost race loses no file."""
    table = partitioned(tmp_path)
    other = another_handle(table)
    catalog_type = type(table.iceberg.catalog)
    commit_table = catalog_type.commit_table
    actions = [
        lambda: other.append(rows("d", [1])),
        lambda: other.delete_prefix({"id1": "a"}),
        lambda: other.maintenance.compact(min_input_files=2),
    ]

    def late(catalog: object, iceberg: object, *arguments: object) -> object:
        if iceberg is not other.iceberg and actions:
            action = actions.pop(0)
            monkeypatch.setattr(catalog_type, "commit_table", commit_table)
            action()
            monkeypatch.setattr(catalog_type, "commit_table", late)
        return commit_table(catalog, iceberg, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog_type, "commit_table", late)
    table.maintenance.rewrite_manifests()
    assert actions == []
    expected = [("b", key, "x") for key in range(12) if key != 7] + [("c", key, "x") for key in range(12)]
    assert live_tuples(table) == sorted([*expected, ("d", 1, "x")])
    assert {file.file_path for file in live_files(table)} == set(facts(table))


def test_manifests_of_one_partition_are_clustered_by_key(tmp_path: Path) -> None:
    """MT-48, FM-26: a filter on the key opens the manifest that holds its keys, in a table without partitions too."""
    table = keyed_table(tmp_path)
    for name in "fbdace":
        table.append(rows(name, range(4)))
    size = sum(manifest.manifest_length_bytes for manifest in of(table, ManifestContent.DATA))
    table.set_properties(**{"commit.manifest.target-size-bytes": str(size // 3 + 1)})
    table.maintenance.rewrite_manifests()
    bounds = [
        (summary.lower_bound, summary.upper_bound)
        for manifest in of(table, ManifestContent.DATA)
        for summary in (manifest.columns or ())[:1]
    ]
    assert bounds == [(b"a", b"b"), (b"c", b"d"), (b"e", b"f")]
    plan = table.scan("id1 = 'c'").plan()
    assert (plan.pruning.data_manifest_count, plan.pruning.skipped_data_manifest_count) == (3, 2)
    assert [task.data_file.lower_bounds[1] for task in plan.tasks if task.data_file.lower_bounds] == [b"c"]


def test_sort_by_fields_come_first(tmp_path: Path) -> None:
    """MT-48: sort_by puts files of one value of a later field together."""
    table = keyed_table(
        tmp_path, partition_by=("id1", "payload"), properties={"commit.manifest.target-size-bytes": "25000"}
    )
    for name in "abcd":
        for payload in ("y", "x"):
            table.append(rows(name, range(2), payload))
    planned = table.maintenance.rewrite_manifests(sort_by=["payload"], dry_run=True)
    done = table.maintenance.rewrite_manifests(sort_by=["payload"])
    assert done.added_manifests_count == planned.added_manifests_count > 1
    kept = [
        [entry.file.partition[::-1] for entry in read_manifest(table.view.io, manifest, table.view.metadata)]
        for manifest in manifests_of(table.view)
        if manifest.has_live_files
    ]
    assert [each for part in sorted(kept) for each in part] == [(payload, name) for payload in "xy" for name in "abcd"]
    for names, message in (([], "must not be empty"), (["payloat"], "Did you mean 'payload'")):
        with pytest.raises(InvalidArgumentError, match=message):
            table.maintenance.rewrite_manifests(sort_by=names)


def removed_entries(table: tf.Table) -> list[str]:
    """Removed files that the head's manifests still list."""
    view = table.view
    return [
        entry.file.file_path
        for manifest in manifests_of(view)
        for entry in read_manifest(view.io, manifest, view.metadata)
        if entry.status is EntryStatus.DELETED
    ]


@pytest.mark.parametrize("version", ["2", "3"])
def test_entries_of_removed_files_are_dropped(tmp_path: Path, version: str) -> None:
    """MT-48: both in manifests with live files and in manifests without any; they have bounds of deleted rows."""
    table = partitioned(tmp_path, properties={"format-version": version})
    table.maintenance.rewrite_manifests()
    table.maintenance.compact(where="id1 = 'a'", rewrite_all=True)
    assert removed_entries(table)
    before, entries = live_tuples(table), facts(table)
    foreseen = table.maintenance.rewrite_manifests(dry_run=True)
    result = table.maintenance.rewrite_manifests()
    assert result.rewritten_manifests_count == foreseen.rewritten_manifests_count > 0
    assert (removed_entries(table), facts(table), live_tuples(table)) == ([], entries, before)
    assert table.maintenance.rewrite_manifests().rewritten_manifests_count == 0
    assert table.verify(deep=True).is_clean


def test_head_without_live_files_has_no_entries(tmp_path: Path) -> None:
    """MT-48"""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(5)))
    table.delete_rows(pa.table({"id1": ["a"] * 5, "id2": list(range(5))}))
    table.maintenance.compact()
    assert removed_entries(table)
    assert table.maintenance.rewrite_manifests().added_manifests_count == 0
    assert (removed_entries(table), live_tuples(table), manifests_of(table.view)) == ([], [], ())
    table.append(rows("a", [1]))
    assert live_tuples(table) == [("a", 1, "x")]
