"""Verification of metadata and of the existence of files: each damage is found, and the finding says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from damaged_tables import alter_entries, alter_files, alter_manifests, kinds, path_of, the_finding
from maintenance_tables import commit_deletes, keyed_table, rows, unnamed_position_delete
from pyiceberg.table.refs import SnapshotRef

import tableformat as tf
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.maintenance.verification import verify as verify_module
from tableformat.maintenance.verification.findings import FindingKind, Severity
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.parquet import parquet_file
from tableformat.storage import storage
from tableformat.testing.table_files import live_data_files, live_delete_files
from tableformat.testing.table_rows import live_tuples

V3 = {"format-version": "3"}


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """Two appends and a range delete."""
    made = keyed_table(tmp_path)
    made.append(rows("a", range(4)))
    made.append(rows("b", range(4)))
    made.delete_prefix({"id1": "a", "id2": 1})
    return made


@pytest.fixture
def v3(tmp_path: Path) -> tf.Table:
    """Two appends and a deletion vector for each."""
    made = keyed_table(tmp_path, properties=V3)
    made.append(rows("a", range(4)))
    made.append(rows("b", range(4)))
    made.delete("id2 = 1", mode="scan")
    return made


def snapshot_ids(table: tf.Table) -> list[int]:
    """Oldest first."""
    return [each.snapshot_id for each in sorted(table.metadata.snapshots, key=lambda each: each.sequence_number)]


def test_a_clean_table_has_no_finding(table: tf.Table) -> None:
    """MT-70"""
    found = table.verify()
    assert (found.is_clean, found.findings) == (True, ())
    counts = (found.snapshot_count, found.manifest_count, found.data_file_count, found.delete_file_count)
    assert counts == (3, 3, 2, 1)
    assert not found.deep
    assert "3 snapshots, 3 manifests, 2 data files, 1 delete file\nno problems found" in str(found)


def test_a_clean_table_of_version_3(v3: tf.Table) -> None:
    assert v3.verify(deep=True).findings == ()


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("order", ["table first", "staged first"])
def test_cherry_picked_file_may_have_two_sequence_numbers(tmp_path: Path, version: str, order: str) -> None:
    """MT-72, SP-24: the staged snapshot exists together with the published one."""
    made = keyed_table(tmp_path, properties={"format-version": version})
    made.append(rows("a", range(4)))
    made.create_branch("audit")
    assert made.catalog is not None
    staged = made.catalog.load_table(made.name, branch="audit")
    staged.append(rows("b", range(4)))
    if order == "staged first":
        staged.delete("id2 = 1", mode="scan")
    made.refresh().append(rows("c", range(4)))
    picked = staged.metadata.snapshot_by_id(snapshot_ids(staged)[1])
    assert picked is not None
    cherrypick(made.iceberg, "main", picked.snapshot_id)
    made.delete("id2 = 2", mode="scan")
    assert made.verify(deep=True).findings == ()
    assert len(live_tuples(made)) == 9


def test_a_table_without_snapshots_is_clean(tmp_path: Path) -> None:
    assert keyed_table(tmp_path).verify(deep=True).findings == ()


class TestFiles:
    @pytest.mark.parametrize("how", ["missing", "cut off", "longer"])
    def test_missing_or_truncated_data_file_is_a_finding(self, table: tf.Table, how: str) -> None:
        """MT-71"""
        newest = max(live_data_files(table), key=lambda file: file.sequence_number or 0)
        path = path_of(newest.file_path)
        whole = path.read_bytes()
        path.unlink()
        if how != "missing":
            path.write_bytes(whole[:-7] if how == "cut off" else whole + b"more")
        kind = FindingKind.MISSING_FILE if how == "missing" else FindingKind.WRONG_SIZE
        for deep in (False, True):
            finding = the_finding(table.verify(deep=deep), kind)
            assert (finding.file, finding.severity) == (newest.file_path, Severity.ERROR)
        if how == "cut off":
            assert f"{len(whole) - 7:,} bytes, but the metadata states {len(whole):,}" in finding.what

    @pytest.mark.parametrize("kind", ["manifest", "manifest list", "delete file"])
    def test_missing_metadata_or_delete_file_is_a_finding(self, table: tf.Table, kind: str) -> None:
        """MT-71: files that are already in the caches of a scan are checked too."""
        assert table.scan().count() == 7
        assert table.view.snapshot is not None
        location = {
            "manifest": manifests_of(table.view)[0].manifest_path,
            "manifest list": table.view.snapshot.manifest_list,
            "delete file": live_delete_files(table)[0].file_path,
        }[kind]
        path_of(location).unlink()
        assert the_finding(table.verify(), FindingKind.MISSING_FILE).file == location

    @pytest.mark.parametrize("place", ["manifest", "manifest list", "metadata file"])
    def test_undecodable_metadata_is_a_finding(self, table: tf.Table, place: str) -> None:
        assert table.view.snapshot is not None
        location = {
            "manifest": manifests_of(table.view)[0].manifest_path,
            "manifest list": table.view.snapshot.manifest_list,
            "metadata file": table.iceberg.metadata_location,
        }[place]
        path = path_of(location)
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 255]))
        assert the_finding(table.verify(), FindingKind.UNREADABLE_FILE).file == location

    def test_store_outage_is_not_a_missing_file(self, table: tf.Table, monkeypatch: pytest.MonkeyPatch) -> None:
        """MT-71"""

        def refuse(*_: Any) -> None:
            raise ConnectionError("the store is away")

        monkeypatch.setattr(storage, "size_bytes", refuse)
        with pytest.raises(ConnectionError, match="away"):
            table.verify()

    @pytest.mark.parametrize("place", ["manifest", "data file"])
    def test_transient_read_corruption_is_not_a_finding(
        self, table: tf.Table, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        """MT-71"""
        location = (
            manifests_of(table.view)[0].manifest_path if place == "manifest" else live_data_files(table)[0].file_path
        )
        faults = [1]
        read_bytes = storage.read_bytes

        def read(io: Any, asked: str, size_bytes: int | None = None) -> bytes:
            data = read_bytes(io, asked, size_bytes)
            return data[:-4] + b"oops" if asked == location and faults and faults.pop() else data

        monkeypatch.setattr(storage, "read_bytes", read)
        monkeypatch.setattr(parquet_file, "read_bytes", read)
        assert table.verify(deep=True).findings == ()
        assert faults == [], "it was read"
        faults += [1, 1]
        the_finding(table.verify(deep=True), FindingKind.UNREADABLE_FILE)

    def test_missing_unneeded_files_are_warnings(self, table: tf.Table) -> None:
        """MT-71"""
        oldest = table.metadata.metadata_log[0].metadata_file
        path_of(oldest).unlink()
        found = table.verify()
        assert (the_finding(found, FindingKind.MISSING_LOG).severity, found.is_clean) == (Severity.WARNING, True)
        assert table.verify(snapshot_id=table.snapshot_id).findings == (), "of one snapshot, only what it needs"


class TestWayOut:
    def test_finding_suggests_the_newest_unaffected_snapshot(self, table: tf.Table) -> None:
        """MT-76"""
        first, second, third = snapshot_ids(table)
        path_of(max(live_data_files(table), key=lambda file: file.sequence_number or 0).file_path).unlink()
        finding = the_finding(table.verify(), FindingKind.MISSING_FILE)
        assert finding.snapshot_ids == (second, third)
        assert finding.command == f"table.rollback(snapshot_id={first})"
        assert "the last 2 snapshots" in finding.next_step
        table.rollback(snapshot_id=first)
        assert table.verify(snapshot_id=first).findings == ()
        left = the_finding(table.verify(), FindingKind.MISSING_FILE)
        assert left.command == f"table.maintenance.expire_snapshots(snapshot_ids={sorted([second, third])})"
        table.maintenance.expire_snapshots(snapshot_ids=[second, third])
        assert table.verify().is_clean

    def test_concurrently_expired_snapshots_are_not_findings(
        self, table: tf.Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """MT-76"""
        other = keyed_table_again(table)
        known = list(other.metadata.snapshots)
        table.delete("id1 = 'a'", mode="scan")
        table.maintenance.convert_deletes()
        table.maintenance.compact(rewrite_all=True)
        table.maintenance.expire_snapshots(older_than=2**60)
        assert [each.snapshot_id for each in table.metadata.snapshots] == [table.snapshot_id]
        assert other.metadata.snapshots == known, "a handle keeps what it was loaded with"
        assert other.verify().findings == ()
        monkeypatch.setattr(verify_module, "_still_true", lambda findings, _iceberg: findings)
        assert FindingKind.MISSING_FILE in kinds(other.verify())

    def test_metadata_files_removed_by_commits_are_not_findings(self, tmp_path: Path) -> None:
        """MT-76"""
        settings = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
        table = keyed_table(tmp_path, properties=settings)
        table.append(rows("a", range(4)))
        old = keyed_table_again(table)
        for number in range(3):
            table.append(rows("b", [number]))
        assert not path_of(old.iceberg.metadata_location).exists()
        assert old.verify().findings == ()


def keyed_table_again(table: tf.Table) -> tf.Table:
    assert table.catalog is not None
    return table.catalog.load_table("db.t")


class TestManifests:
    @pytest.mark.parametrize("name", ["added_files_count", "existing_rows_count", "deleted_files_count"])
    def test_wrong_manifest_counts_are_findings(self, table: tf.Table, name: str) -> None:
        """MT-72"""
        alter_manifests(table, lambda manifest: [replace(manifest, **{name: getattr(manifest, name) + 1})])
        found = table.verify()
        assert set(kinds(found)) == {"wrong-count"}
        assert len(found.findings) == len(manifests_of(table.view))
        assert "its list states" in found.findings[0].what.lower()

    def test_wrong_entry_sequence_numbers_are_findings(self, table: tf.Table) -> None:
        """MT-72, DA-9: also if other manifests state another sequence number for the file."""
        alter_files(table, lambda file: replace(file, sequence_number=9) if isinstance(file, DataFile) else file)
        assert set(kinds(table.verify())) == {"wrong-sequence-number"}

    def test_wrong_min_sequence_number_of_manifest_is_a_finding(self, table: tf.Table) -> None:
        alter_manifests(table, lambda manifest: [replace(manifest, min_sequence_number=manifest.sequence_number + 1)])
        found = table.verify()
        assert set(kinds(found)) == {"wrong-sequence-number"}

    def test_manifest_newer_than_its_snapshot_is_a_finding(self, table: tf.Table) -> None:
        alter_manifests(table, lambda manifest: [replace(manifest, sequence_number=12)])
        assert table.view.snapshot is not None
        found = table.verify()
        assert set(kinds(found)) == {"wrong-sequence-number"}
        assert table.view.snapshot.manifest_list in {each.file for each in found.findings}

    def test_contradictory_manifests_are_a_finding(self, table: tf.Table) -> None:
        table.maintenance.rewrite_manifests()
        assert len({each.manifest_path for each in manifests_of(table.view)}) < 3 + 1
        alter_files(table, lambda file: replace(file, record_count=5) if isinstance(file, DataFile) else file)
        found = table.verify()
        assert FindingKind.WRONG_SEQUENCE_NUMBER in kinds(found)
        assert "another manifest states" in found.findings[0].what

    def test_wrong_partition_summaries_are_a_finding(self, tmp_path: Path) -> None:
        """MT-72"""
        table = keyed_table(tmp_path, partition_by=("id1",))
        table.append(rows("b", range(3)))

        def narrow(manifest: Any) -> list[Any]:
            (summary,) = manifest.partitions
            return [replace(manifest, partitions=(replace(summary, upper_bound=b"a", lower_bound=b"a"),))]

        assert table.verify().findings == ()
        alter_manifests(table, narrow)
        finding = the_finding(table.verify(), FindingKind.WRONG_BOUNDS)
        assert "'b'" in finding.what

    def test_unknown_spec_and_column_are_findings(self, table: tf.Table) -> None:
        """MT-72, DA-6"""
        alter_files(table, lambda file: replace(file, equality_ids=(77,)) if isinstance(file, DeleteFile) else file)
        finding = the_finding(table.verify(), FindingKind.UNKNOWN_COLUMN)
        assert "77" in finding.what

        def other_spec(manifest: Any) -> list[Any]:
            return [replace(manifest, partition_spec_id=5 if manifest.content is ManifestContent.DELETES else 0)]

        alter_manifests(table, other_spec)
        (deletes,) = (each for each in manifests_of(table.view) if each.content is ManifestContent.DELETES)
        assert the_finding(table.verify(), FindingKind.UNKNOWN_SPEC).file == deletes.manifest_path

    def test_wrong_refs_and_snapshot_sequence_numbers_are_findings(self, table: tf.Table) -> None:
        """MT-72"""
        sound = table.iceberg.metadata
        refs = {**sound.refs, "lost": SnapshotRef(snapshot_id=42, snapshot_ref_type="tag")}
        table.iceberg.metadata = sound.model_copy(update={"refs": refs})
        assert "42" in the_finding(table.verify(), FindingKind.BROKEN_REFERENCE).what
        table.iceberg.metadata = sound.model_copy(update={"last_sequence_number": 2})
        assert "last is 2" in the_finding(table.verify(), FindingKind.WRONG_SEQUENCE_NUMBER).what
        snapshots = [
            each.model_copy(update={"sequence_number": 3 if each.sequence_number == 2 else each.sequence_number})
            for each in sound.snapshots
        ]
        table.iceberg.metadata = sound.model_copy(update={"snapshots": snapshots})
        assert "its parent" in the_finding(table.verify(), FindingKind.WRONG_SEQUENCE_NUMBER).what


class TestSnapshots:
    def test_duplicate_live_file_is_a_finding(self, table: tf.Table) -> None:
        """MT-73"""
        alter_entries(table, lambda entry: [entry, entry] if isinstance(entry.file, DataFile) else [entry])
        found = table.verify()
        assert {each.file for each in found.errors} == {file.file_path for file in live_data_files(table)}
        assert set(kinds(found)) == {"duplicate-file", "wrong-total"}, "the second snapshot has one of the manifests"

    def test_data_file_with_two_vectors_is_a_finding(self, v3: tf.Table) -> None:
        """MT-73, DA-7"""
        one = min(file.file_path for file in live_data_files(v3))
        alter_files(v3, lambda file: replace(file, referenced_data_file=one) if isinstance(file, DeleteFile) else file)
        assert the_finding(v3.verify(), FindingKind.DUPLICATE_VECTOR).file == one

    def test_dangling_vector_is_found_and_repaired(self, v3: tf.Table) -> None:
        """MT-73, MT-77"""
        gone = min(file.file_path for file in live_data_files(v3))
        alter_entries(v3, lambda entry: [] if entry.file.file_path == gone else [entry])
        before, deletes = live_tuples(v3), live_delete_files(v3)
        finding = next(each for each in v3.verify().findings if each.kind is FindingKind.DANGLING_VECTOR)
        assert (finding.severity, finding.command) == (Severity.WARNING, "table.maintenance.repair()")
        (dead,) = (each for each in live_delete_files(v3) if each.referenced_data_file == gone)
        planned = v3.maintenance.repair(dry_run=True)
        assert [location for location, _ in planned.dropped_deletes.proofs] == [dead.file_path]
        assert FindingKind.DANGLING_VECTOR not in {each.kind for each in planned.left}
        assert live_delete_files(v3) == deletes, "a dry run changes nothing"
        mended = v3.maintenance.repair()
        assert mended.dropped_deletes.proofs == planned.dropped_deletes.proofs
        assert [each.referenced_data_file for each in live_delete_files(v3)] == [
            file.file_path for file in live_data_files(v3)
        ]
        assert live_tuples(v3) == before
        # The snapshot before still has it, and verification reports it.
        later = [each for each in v3.verify().findings if each.kind is FindingKind.DANGLING_VECTOR]
        assert [each.command for each in later] == [None]
        assert "dropped 1 delete file that matches no rows" in str(mended)

    def test_vector_older_than_its_data_file_is_a_finding(self, v3: tf.Table) -> None:
        """MT-73, DA-7"""
        newest = max(live_data_files(v3), key=lambda file: file.sequence_number or 0).file_path

        def change(entry: Any) -> Any:
            is_its = getattr(entry.file, "referenced_data_file", None) == newest
            return [replace(entry, file=replace(entry.file, sequence_number=1)) if is_its else entry]

        alter_manifests(v3, lambda each: [replace(each, min_sequence_number=1)], change)
        assert "or is newer than it" in the_finding(v3.verify(), FindingKind.DANGLING_VECTOR).what

    def test_dead_position_delete_is_found_and_repaired(self, table: tf.Table) -> None:
        """MT-73, MT-77: also if its file no longer exists."""
        table.maintenance.convert_deletes()
        deletes = live_delete_files(table)
        assert [each.kind for each in deletes] == [DeleteKind.POSITION]
        alter_entries(table, lambda entry: [] if entry.file.file_path == named(deletes[0]) else [entry])
        path_of(deletes[0].file_path).unlink()
        before = live_tuples(table)
        found = table.verify(snapshot_id=table.snapshot_id)
        assert {str(each.kind) for each in found.findings} == {"missing-file", "dead-delete"}
        table.maintenance.repair()
        assert live_tuples(table) == before
        assert live_delete_files(table) == []
        kinds = {str(each.kind) for each in table.verify().findings}
        assert kinds == {"missing-file", "wrong-total"}, "dead deletes of older snapshots leave with them"
        assert table.verify(snapshot_id=table.snapshot_id).is_clean

    def test_position_delete_in_another_partition_is_a_finding(self, tmp_path: Path) -> None:
        """MT-73, DA-1"""
        table = keyed_table(tmp_path, partition_by=("id1",))
        table.append(rows("a", range(3)))
        table.append(rows("b", range(3)))
        table.delete("id1 = 'a' AND id2 = 1", mode="scan")
        assert table.verify(deep=True).findings == ()
        alter_files(table, lambda file: replace(file, partition=("b",)) if isinstance(file, DeleteFile) else file)
        finding = the_finding(table.verify(), FindingKind.WRONG_PARTITION)
        assert "another partition" in finding.what

    def test_position_deletes_of_several_files_are_not_findings(self, table: tf.Table) -> None:
        commit_deletes(table, unnamed_position_delete(table, [(each, 1) for each in live_data_files(table)]))
        assert table.verify(deep=True).findings == ()

    @pytest.mark.parametrize(
        ("first_row_id", "told"), [(1, "another data file"), (40, "not assigned yet"), (None, "have no ids")]
    )
    def test_wrong_row_ids_are_a_finding(self, v3: tf.Table, first_row_id: int | None, told: str) -> None:
        """MT-73"""
        newest = max(live_data_files(v3), key=lambda file: file.first_row_id or 0).file_path

        def change(entry: Any) -> Any:
            is_newest = entry.file.file_path == newest
            return [replace(entry, file=replace(entry.file, first_row_id=first_row_id)) if is_newest else entry]

        if first_row_id is None:
            alter_manifests(v3, lambda each: [replace(each, first_row_id=None)], change, list_version=2)
        else:
            alter_entries(v3, change)
        found = v3.verify()
        assert {each.kind for each in found.findings} == {FindingKind.WRONG_ROW_IDS}
        assert any(told in each.what.lower() for each in found.findings), str(found)

    def test_wrong_summary_totals_are_a_finding(self, table: tf.Table) -> None:
        """MT-73"""
        head = table.view.snapshot
        assert head is not None
        assert head.summary is not None
        head.summary.additional_properties["total-records"] = "99"
        finding = the_finding(table.verify(), FindingKind.WRONG_TOTAL)
        assert "total-records 99, but its manifests have 8" in finding.what
        assert finding.severity is Severity.WARNING


def named(delete: DeleteFile) -> str | None:
    return delete.referenced_data_file


def test_verify_one_snapshot(table: tf.Table) -> None:
    """MT-70"""
    first, *_, head = snapshot_ids(table)
    path_of(live_delete_files(table)[0].file_path).unlink()
    assert table.verify(snapshot_id=first).findings == ()
    assert (table.verify(snapshot_id=first).snapshot_count, table.verify(snapshot_id=first).data_file_count) == (1, 1)
    assert the_finding(table.verify(snapshot_id=head), FindingKind.MISSING_FILE).snapshot_ids == (head,)
    with pytest.raises(SnapshotNotFoundError):
        table.verify(snapshot_id=5)


def test_progress_is_reported_and_can_cancel(table: tf.Table) -> None:
    """MT-62"""
    told: list[tuple[int, int, str]] = []
    table.verify(deep=True, progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == step[1]] == [
        (3, 3, "snapshots"),
        (9, 9, "files looked for"),
        (3, 3, "files read"),
    ]

    def stop(done: int, total: int, what: str) -> None:
        raise InvalidArgumentError("enough")

    with pytest.raises(InvalidArgumentError, match="enough"):
        table.verify(progress=stop)


def test_branches_are_verified_too(table: tf.Table) -> None:
    table.create_branch("side")
    assert table.catalog is not None
    side = table.catalog.load_table("db.t", branch="side")
    side.append(rows("c", range(2)))
    (added,) = set(live_data_files(side)) - set(live_data_files(table))
    path_of(added.file_path).unlink()
    table.refresh()
    finding = the_finding(table.verify(), FindingKind.MISSING_FILE)
    assert finding.command == f"table.maintenance.expire_snapshots(snapshot_ids=[{side.snapshot_id}])"
    side_finding = the_finding(side.verify(), FindingKind.MISSING_FILE)
    assert side_finding.command == f"table.rollback(snapshot_id={table.snapshot_id})"
