"""MT-111 to MT-119: rows leave every snapshot, and so do all traces of their key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from erased_tables import SENTINEL, of, people, people_table, rows_at, rows_of_snapshots, traces, without
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError, InvalidKeyError, UnsupportedFeatureError
from tableformat.metadata.content_file import DeleteFile, DeleteKind, FileContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_choice import view_at
from tableformat.operations.history.cherrypick import cherrypick
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import prepare_task

VERSIONS = ("2", "3")
PARTITIONS = ((), ("customer",), ("bucket(2, n)",), ("truncate(3, customer)",))


def full_history(directory: Path, version: str, **options: Any) -> tf.Table:
    """Every kind of delete, a tag, a branch, and statistics."""
    table = people_table(directory, version, **options)
    table.append(people(*of("alice", range(6)), *of(SENTINEL, range(6)), *of("zoe", range(6))))
    table.create_tag("first")
    table.delete("n = 2", mode="scan")
    table.delete_prefix({"customer": SENTINEL, "n": 3})
    table.delete_range(lower=("bob",), upper=(SENTINEL, 2))
    table.delete_range(lower=(SENTINEL, 4), upper=("zoe", 1))
    table.delete_prefix(pa.table({"customer": [SENTINEL, "zoe"], "n": [5, 5]}), mode="equality")
    table.append(people((SENTINEL, 7), ("carol", 1)))
    table.create_branch("work")
    table.catalog.load_table("db.people", branch="work").append(people((SENTINEL, 9), ("dave", 1)))
    table.refresh()
    table.maintenance.compute_table_stats()
    table.delete(f"customer = '{SENTINEL}' AND n = 7", mode="scan")
    return table


def erased(table: tf.Table, directory: Path, **options: Any) -> tf.ErasureCertificate:
    """Erase the sentinel, and check every snapshot and every byte."""
    before = rows_of_snapshots(table)
    assert traces(directory)
    certificate = table.maintenance.erase({"customer": SENTINEL}, **options)
    after = rows_of_snapshots(table)
    assert {snapshot: after[snapshot] for snapshot in before} == without(before)
    assert traces(directory) == []
    assert certificate.is_complete, certificate.tables[0].not_reached
    assert table.maintenance.verify(deep=True).findings == ()
    return certificate


def live_deletes(table: tf.Table, snapshot_id: int | None = None) -> list[DeleteFile]:
    view = table.view if snapshot_id is None else view_at(table.metadata, table.view.io, snapshot_id)
    entries = [each for one in manifests_of(view) for each in live_entries(read_manifest(view.io, one, view.metadata))]
    return [each.file for each in entries if isinstance(each.file, DeleteFile)]


@pytest.mark.parametrize("partition_by", PARTITIONS, ids=str)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_snapshot_keeps_its_other_rows(tmp_path, version, partition_by):
    """MT-111 to MT-119: tags, branches and time travel, on tables with and without partitions of the person."""
    table = full_history(tmp_path, version, partition_by=partition_by)
    assert erased(table, tmp_path).erased_rows_count == 8


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dry_run_counts_rows_and_changes_nothing(tmp_path, version):
    table = full_history(tmp_path, version)
    files = sorted(str(each) for each in tmp_path.rglob("*"))
    location = table.iceberg.metadata_location
    plan = table.maintenance.erase({"customer": SENTINEL}, dry_run=True)
    assert (plan.dry_run, plan.is_complete, plan.erased_rows_count) == (True, False, 8)
    assert len(plan.tables[0].rewritten_data_files) == 3
    assert table.refresh().iceberg.metadata_location == location
    assert sorted(str(each) for each in tmp_path.rglob("*")) == files


def test_snapshots_keep_ids_and_branches_get_new_heads(tmp_path):
    """MT-116: the log of main, tags, parents, times and numbers stay. The heads of branches are new."""
    table = full_history(tmp_path, "2")
    before = table.metadata
    table.maintenance.erase({"customer": SENTINEL})
    after = table.metadata
    stay = ("snapshot_id", "parent_snapshot_id", "sequence_number", "timestamp_ms", "schema_id")
    for old, new in zip(before.snapshots, after.snapshots, strict=False):
        assert [getattr(old, name) for name in stay] == [getattr(new, name) for name in stay]
    assert after.refs["first"] == before.refs["first"]
    for branch in ("main", "work"):
        head = after.snapshot_by_id(after.refs[branch].snapshot_id)
        assert head.parent_snapshot_id == before.refs[branch].snapshot_id
        assert head.summary.operation.value == "replace"
    assert list(after.statistics) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_erasure_changes_nothing(tmp_path, version):
    table = full_history(tmp_path, version)
    table.maintenance.erase({"customer": SENTINEL})
    location = table.iceberg.metadata_location
    again = table.maintenance.erase({"customer": SENTINEL})
    assert (again.is_complete, again.erased_rows_count) == (True, 0)
    assert table.iceberg.metadata_location == location


@pytest.mark.parametrize("version", VERSIONS)
def test_each_affected_file_is_rewritten_once(tmp_path, version):
    """MT-112, MT-113: a file that several snapshots have is written once, and other files are not opened."""
    table = people_table(tmp_path, version)
    table.append(people(("alice", 1), ("zoe", 1)))
    table.append(people(("alice", 2), (SENTINEL, 2)))
    table.append(people(("zoe", 3)))
    paths = [task.data_file.file_path for task in table.scan().plan().tasks]
    certificate = erased(table, tmp_path)
    (rewritten,) = certificate.tables[0].rewritten_data_files
    left = {task.data_file.file_path for task in table.scan().plan().tasks}
    assert left == ({*paths} - {rewritten.location}) | {rewritten.new_location}


def test_row_lineage_is_kept(tmp_path):
    """MT-113: in version 3 rows keep their ids, whether they were inherited or stored."""
    table = people_table(tmp_path, "3")
    table.append(people(*of("alice", range(3)), *of(SENTINEL, range(3)), *of("zoe", range(3))))
    table.append(people((SENTINEL, 8), ("zoe", 8)))
    table.maintenance.compact(rewrite_all=True)
    columns = ["customer", "n", "_row_id", "_last_updated_sequence_number"]
    ids = [each.snapshot_id for each in table.metadata.snapshots]
    before = {one: table.scan(columns=columns, snapshot_id=one).to_arrow().to_pylist() for one in ids}
    erased(table, tmp_path)
    for one in ids:
        found = sorted(table.scan(columns=columns, snapshot_id=one).to_arrow().to_pylist(), key=str)
        assert found == sorted((row for row in before[one] if row["customer"] != SENTINEL), key=str)


def test_row_ids_are_kept_in_upgraded_table(tmp_path):
    """MT-113: snapshots from before the upgrade have no row ids, later ones do."""
    table = people_table(tmp_path, "2")
    table.append(people(*of("alice", range(3)), *of(SENTINEL, range(3)), *of("zoe", range(3))))
    table.delete("n = 0 AND customer = 'zoe'", mode="scan")
    table.upgrade(3)
    table.append(people(("zoe", 9), (SENTINEL, 9)))
    table.delete("n = 1", mode="scan")
    columns = ["customer", "n", "_row_id"]
    before = table.scan(columns=columns).to_arrow().to_pylist()
    erased(table, tmp_path)
    after = table.scan(columns=columns).to_arrow().to_pylist()
    assert sorted(after, key=str) == sorted((row for row in before if row["customer"] != SENTINEL), key=str)


def test_affected_file_with_ambiguous_row_ids_is_rejected(tmp_path):
    """MT-113: branches that parted before the upgrade give different ids. Other files of this kind stay."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), ("zoe", 1)))
    table.create_branch("work")
    table.append(people(("bob", 1), ("carol", 2)))
    table.upgrade(3)
    table.catalog.load_table("db.people", branch="work").append(people((SENTINEL, 1)))
    table.refresh().append(people(("dave", 1)))
    location = table.iceberg.metadata_location
    for dry_run in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="different row ids on two branches"):
            table.maintenance.erase({"customer": "alice"}, dry_run=dry_run)
    assert table.refresh().iceberg.metadata_location == location
    erased(table, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_position_deletes_and_vectors_are_renumbered(tmp_path, version):
    """MT-114: position deletes and vectors name the same rows of the new files."""
    table = people_table(tmp_path, version)
    keys = [(customer, n) for n in range(30) for customer in ("alice", SENTINEL, "zoe")]
    table.append(people(*keys))
    table.append(people(("bob", 1), (SENTINEL, 40), ("zoe", 40)))
    for n in (3, 11, 12, 29, 40):
        table.delete(f"n = {n}", mode="scan")
    erased(table, tmp_path)
    kind = DeleteKind.POSITION if version == "2" else DeleteKind.DELETION_VECTOR
    assert {each.kind for each in live_deletes(table)} == {kind}


def test_shared_position_delete_file_is_rewritten(tmp_path):
    """MT-114: a position delete file without a stated data file, as other writers create it."""
    from maintenance_tables import unnamed_position_delete

    table = people_table(tmp_path, "2")
    table.append(people(*of("alice", range(3)), *of(SENTINEL, range(3)), *of("zoe", range(3))))
    table.append(people(*of("bob", range(3))))
    files = [task.data_file for task in table.scan().plan().tasks]
    pairs = [(each, position) for each in files for position in range(each.record_count) if position % 3 == 1]
    delete = unnamed_position_delete(table, pairs)
    commit_change(
        table.iceberg,
        TableChange(
            operation=Operation.DELETE,
            kind=ChangeKind.ROW_DELTA,
            planned_snapshot_id=table.snapshot_id,
            planned_sequence_number=table.view.sequence_number,
            added_delete_files=(delete,),
        ),
    )
    table.refresh()
    erased(table, tmp_path)
    (left,) = live_deletes(table)
    assert left.record_count == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_erased_keys_are_removed_from_equality_deletes(tmp_path, version):
    """MT-115: other keys of the file stay, and a file of the person alone leaves."""
    table = people_table(tmp_path, version)
    table.append(people(*of("alice", range(3)), *of(SENTINEL, range(3))))
    table.delete_rows(pa.table({"customer": ["alice", SENTINEL], "n": [1, 1]}))
    table.delete_prefix({"customer": SENTINEL, "n": 2}, mode="equality")
    erased(table, tmp_path)
    (left,) = live_deletes(table)
    assert (left.kind, left.record_count) == (DeleteKind.EQUALITY, 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_range_deletes_are_narrowed_to_remaining_keys(tmp_path, version):
    """MT-115: a range that ends at the person deletes the same other rows, also in files that are added later with
    an older number."""
    table = people_table(tmp_path, version)
    table.append(people(*of("alice", range(4)), *of(SENTINEL, range(6)), *of("zoe", range(4))))
    table.append(people(("bob", 1), ("mike", 1)))
    table.delete_range(lower=("alice", 2), upper=(SENTINEL, 3))
    table.delete_range(lower=(SENTINEL, 5), upper=("zoe", 2))
    table.delete_range(lower=(SENTINEL, 3), upper=(SENTINEL, 4))
    table.append(people(("alice", 2), ("zoe", 0)))
    erased(table, tmp_path)
    kinds = [each for each in live_deletes(table) if each.kind is DeleteKind.RANGE]
    assert len(kinds) == 2
    table.maintenance.convert_deletes()
    assert rows_at(table, table.snapshot_id)[0][:2] == ("alice", 0)
    assert table.scan().count() == 6


def test_merged_integer_ranges_are_narrowed(tmp_path):
    """MT-115, RD-14: the person is the end of a range that several deletes became."""
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string())])
    table = catalog.create_table("db.t", schema, key=["id"])
    table.append(pa.table({"id": list(range(40, 50)), "note": ["x"] * 10}, schema=schema))
    table.delete_prefix(pa.table({"id": [42, 43, 44, 45]}))
    before = {
        each.snapshot_id: table.scan(snapshot_id=each.snapshot_id).to_arrow() for each in table.metadata.snapshots
    }
    certificate = table.maintenance.erase({"id": 45})
    assert certificate.is_complete, certificate.tables[0].not_reached
    for snapshot_id, rows in before.items():
        left = sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())
        assert left == sorted(each for each in rows["id"].to_pylist() if each != 45)
    (delete,) = live_deletes(table)
    assert delete.record_count == 1


def test_erasure_by_a_non_key_column(tmp_path):
    """MT-111: the scope is any filter. Bounds of its column are built from the remaining rows."""
    table = people_table(tmp_path, "2")
    table.append(people(*of("alice", range(3)), *of("zoe", range(3))))
    table.append(people(("bob", 1), note=SENTINEL))
    table.delete_prefix({"customer": "alice", "n": 1})
    certificate = table.maintenance.erase(where=f"note LIKE '{SENTINEL}%'")
    assert certificate.erased_rows_count == 1
    assert traces(tmp_path) == []
    assert certificate.is_complete, certificate.tables[0].not_reached


def test_several_keys_are_erased_in_one_call(tmp_path):
    """MT-111: prefixes are a list, or a table of rows."""
    table = people_table(tmp_path, "2")
    table.append(people(*of("alice", range(3)), *of(SENTINEL, range(3)), *of("zoe", range(3))))
    table.maintenance.erase([{"customer": SENTINEL}, {"customer": "zoe"}])
    assert {row[0] for row in rows_at(table, table.snapshot_id)} == {"alice"}
    table.maintenance.erase(pa.table({"customer": ["alice"], "n": [1]}))
    assert [row[:2] for row in rows_at(table, table.snapshot_id)] == [("alice", 0), ("alice", 2)]


@pytest.mark.parametrize("version", VERSIONS)
def test_staged_and_unreferenced_snapshots_are_erased(tmp_path, version):
    """MT-111: a staged snapshot can be published afterwards, and a branch that was dropped leaves its snapshots."""
    table = people_table(tmp_path, version)
    table.append(people(("alice", 1), (SENTINEL, 1)))
    write = table.new_write()
    files = write.write(people((SENTINEL, 5), ("zoe", 5)))
    staged = commit_change(
        table.iceberg,
        TableChange(operation=Operation.APPEND, added_data_files=files.data_files),
        is_staged=True,
    )
    table.refresh().create_branch("gone")
    table.catalog.load_table("db.people", branch="gone").append(people((SENTINEL, 6), ("zoe", 6)))
    table.refresh().drop_branch("gone")
    assert len(table.metadata.snapshots) == 3
    erased(table, tmp_path)
    cherrypick(table.iceberg, "main", staged.snapshot_id)
    table.refresh()
    assert [row[:2] for row in rows_at(table, table.snapshot_id)] == [("alice", 1), ("zoe", 5)]


def test_restored_range_does_not_contain_erased_rows(tmp_path):
    """MT-111, RP-13: retired ranges are snapshots of tags."""
    table = people_table(tmp_path, "2", range_partitions=tf.RangePartitions(on=["n"], bounds=[(0, 10), (10, 20)]))
    table.append(people(("alice", 1), (SENTINEL, 2), ("zoe", 11), (SENTINEL, 12)))
    tag = table.range_partitions.retire(10, 20).tag
    erased(table, tmp_path)
    table.range_partitions.restore(tag)
    assert [row[:2] for row in rows_at(table, table.snapshot_id)] == [("alice", 1), ("zoe", 11)]


def test_list_partition_of_erased_key_is_removed_from_definition(tmp_path):
    """MT-117: also from the former definitions in summaries, and from a retired range."""
    table = people_table(
        tmp_path,
        "2",
        range_partitions=tf.list_partitions("customer", ["alice", SENTINEL, "zoe"]),
    )
    table.append(people(("alice", 1), (SENTINEL, 2), ("zoe", 3)))
    table.range_partitions.alter(add=[tf.bound("yan", "yan", upper_inclusive=True)])
    table.range_partitions.alter(drop=[tf.bound("alice", "alice", upper_inclusive=True)])
    erased(table, tmp_path)
    names = [each for each in table.range_partitions.list()["partition"].to_pylist() if each is not None]
    assert not any(SENTINEL in each for each in names)


def test_range_bound_at_the_erased_key_is_rejected(tmp_path):
    """MT-117: the border has to be moved first."""
    table = people_table(
        tmp_path, "2", range_partitions=tf.RangePartitions(on=["customer"], bounds=[("a", SENTINEL), ("x", "zz")])
    )
    table.append(people(("alice", 1), ("xaver", 2)))
    location = table.iceberg.metadata_location
    for dry_run in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="Move the border"):
            table.maintenance.erase({"customer": SENTINEL}, dry_run=dry_run)
    assert table.refresh().iceberg.metadata_location == location


def test_erased_value_is_removed_from_snapshot_summaries(tmp_path):
    """MT-117: entries of callers, and records of the library."""
    table = people_table(tmp_path, "2")
    table.append(
        people(("alice", 1), (SENTINEL, 2)), snapshot_properties={"reason": f"import of {SENTINEL}", "by": "me"}
    )
    certificate = erased(table, tmp_path)
    assert certificate.tables[0].changed_entries == ("reason",)
    assert table.metadata.snapshots[0].summary["by"] == "me"


def test_ref_or_property_name_with_the_value_is_reported(tmp_path):
    """MT-119: a branch, a tag or a property of users cannot be renamed by the job."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 2)))
    table.create_tag(f"before-{SENTINEL}")
    table.set_properties({"owner": SENTINEL})
    certificate = table.maintenance.erase({"customer": SENTINEL})
    reasons = [each.reason for each in certificate.tables[0].not_reached]
    assert not certificate.is_complete
    assert any("branch or tag" in each for each in reasons)
    assert any("table property" in each for each in reasons)


def test_unused_dictionary_value_is_erased(tmp_path):
    """MT-113: some writers store the dictionary of a larger table."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 2), ("zoe", 3)))
    path = tmp_path / "other.parquet"
    coded = pa.array(["alice", "zoe"]).dictionary_encode()
    coded = pa.DictionaryArray.from_arrays(coded.indices, pa.array(["alice", "zoe", SENTINEL]))
    pq.write_table(pa.table({"customer": coded, "n": [7, 8], "note": ["a", "b"]}), path, store_schema=False)
    table.add_files([str(path)])
    certificate = table.maintenance.erase({"customer": SENTINEL})
    assert [each.location for each in certificate.tables[0].not_reached] == [str(path)]
    path.unlink()
    assert traces(tmp_path) == []
    assert len(certificate.tables[0].rewritten_data_files) == 2


def test_bloom_filters_are_rebuilt(tmp_path):
    """MT-113: a lookup of the person reads no row group, because of its filter."""
    name = "write.parquet.bloom-filter-enabled.column.customer"
    table = people_table(tmp_path, "2", properties={name: "true"})
    table.append(people(("alice", 1), (SENTINEL, 2), ("zoe", 3)))
    table.maintenance.erase({"customer": SENTINEL})
    (task,) = table.scan(where=f"customer = '{SENTINEL}'").plan().tasks
    context = ReadContext.of(table.view)
    assert prepare_task(task, context) == []
    (task,) = table.scan(where="customer = 'alice'").plan().tasks
    assert len(prepare_task(task, context)) == 1


def test_dropped_column_is_kept_in_past_snapshots(tmp_path):
    """MT-113: earlier snapshots still have the column, and files keep it."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 2)))
    first = table.snapshot_id
    with table.update_schema() as update:
        update.delete_column("note")
    table.append(pa.table({"customer": ["zoe", SENTINEL], "n": [3, 4]}, schema=pa.schema(table.schema)))
    erased(table, tmp_path)
    assert rows_at(table, first) == [("alice", 1, "a of ali 1")]


def test_change_feed_of_erased_history_has_the_other_rows(tmp_path):
    """MT-116: the feed over former snapshots works, and a consumer goes on where it was."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    table.append(people((SENTINEL, 2), ("zoe", 2)))
    table.delete("n = 1", mode="scan")
    first = table.metadata.snapshots[0].snapshot_id
    erased(table, tmp_path)
    events = table.changes(from_snapshot_id=first).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["customer"], row["n"]) for row in events) == [
        ("delete", "alice", 1),
        ("insert", "zoe", 2),
    ]


def test_jobs_run_after_an_erasure(tmp_path):
    table = full_history(tmp_path, "2")
    table.maintenance.erase({"customer": SENTINEL})
    rows = rows_at(table, table.snapshot_id)
    for run in (
        table.maintenance.convert_deletes,
        table.maintenance.compact,
        table.maintenance.rewrite_manifests,
        table.maintenance.expire_snapshots,
        table.maintenance.run,
    ):
        run()
        assert rows_at(table.refresh(), table.snapshot_id) == rows


def test_the_certificate_is_verified_later(tmp_path):
    """MT-119: as text, after a rename, and after a writer has added the person again."""
    table = full_history(tmp_path, "2")
    certificate = table.maintenance.erase(where=f"customer = '{SENTINEL}'")
    kept = tf.ErasureCertificate.from_json(certificate.to_json())
    assert kept == certificate
    with table.update_schema() as update:
        update.rename_column("customer", "client")
    assert table.refresh().verify(erased=kept).is_clean
    with table.update_schema() as update:
        update.rename_column("client", "customer")
    table.refresh().append(people((SENTINEL, 99)))
    found = table.verify(erased=kept)
    assert {each.kind.value for each in found.errors} == {"erased-rows"}


def test_a_certificate_of_another_table_is_refused(tmp_path):
    table = full_history(tmp_path, "2")
    plan = table.maintenance.erase({"customer": SENTINEL}, dry_run=True)
    with pytest.raises(InvalidArgumentError, match="dry run"):
        table.verify(erased=plan)
    certificate = table.maintenance.erase({"customer": SENTINEL})
    other = table.catalog.create_table("db.other", table.schema, key=["customer"])
    with pytest.raises(InvalidArgumentError, match="other tables"):
        other.verify(erased=certificate)
    with pytest.raises(InvalidArgumentError, match="no certificate"):
        tf.ErasureCertificate.from_json("{}")


def test_several_tables_are_erased_with_one_certificate(tmp_path):
    """MT-111, LK-38: one transaction of the catalog."""
    header = people_table(tmp_path, "2")
    lines = header.catalog.create_table("db.lines", header.schema, key=["customer", "n"])
    for table in (header, lines):
        table.append(people(("alice", 1), (SENTINEL, 1)))
    certificate = header.catalog.erase({"db.people": {"customer": SENTINEL}, "db.lines": f"customer = '{SENTINEL}'"})
    assert [each.table for each in certificate.tables] == ["db.people", "db.lines"]
    assert (certificate.is_complete, certificate.erased_rows_count) == (True, 2)
    assert traces(tmp_path) == []
    for table in (header, lines):
        assert table.refresh().verify(erased=certificate).is_clean


def test_wrong_scopes_are_refused(tmp_path):
    """MT-111: nothing is changed."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1)))
    erase = table.maintenance.erase
    for call, message in (
        (erase, "one of them"),
        (lambda: erase({"customer": "a"}, where="n = 1"), "one of them"),
        (lambda: erase(where="TRUE"), "every row"),
        (lambda: erase(where="n = 1 AND n = 2 AND FALSE"), "no row"),
        (lambda: erase({"customer": "a"}, everywhere=False), "not an erasure"),
        (lambda: erase([]), "no row"),
        (lambda: erase("alice"), "names its columns"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(InvalidKeyError, match="prefix"):
        erase({"n": 1})
    keyless = table.catalog.create_table("db.keyless", table.schema)
    with pytest.raises(InvalidKeyError, match="no key"):
        keyless.maintenance.erase({"customer": "a"})


def test_unsupported_tables_are_rejected(tmp_path):
    """MT-111: other catalogs and shared files, with what to do instead."""
    from pyiceberg.catalog.sql import SqlCatalog

    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(UnsupportedFeatureError, match=r"other tables may read its files.*expire"):
        table.maintenance.erase({"customer": SENTINEL})
    foreign = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")
    foreign.create_namespace("db")
    copy = foreign.create_table("db.t", table.iceberg.schema())
    with pytest.raises(UnsupportedFeatureError, match=r"SqlCatalog.*cannot replace.*expire"):
        tf.Table(copy).maintenance.erase(where="n = 1")


def test_external_files_are_kept_and_reported(tmp_path):
    """MT-118: an added file outside of the table is rewritten into it, and is not removed."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1)))
    outside = tmp_path / "outside" / "a.parquet"
    outside.parent.mkdir()
    pq.write_table(people(("zoe", 1), (SENTINEL, 1)), outside)
    table.add_files([str(outside)])
    certificate = table.maintenance.erase({"customer": SENTINEL})
    assert outside.exists()
    reasons = {each.location.rpartition("/")[2]: each.reason for each in certificate.tables[0].not_reached}
    assert list(reasons) == ["a.parquet"]
    assert "outside of the directories" in reasons["a.parquet"]
    assert [row[:2] for row in rows_at(table, table.snapshot_id)] == [("alice", 1), ("zoe", 1)]
    assert table.verify(erased=certificate).is_clean


def test_unreferenced_staged_file_is_reported(tmp_path):
    """MT-119: it may belong to a commit in progress."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    table.new_write().write(people((SENTINEL, 7)))
    certificate = table.maintenance.erase({"customer": SENTINEL})
    (left,) = certificate.tables[0].not_reached
    assert "no metadata names this file" in left.reason
    table.maintenance.remove_orphan_files(older_than=10**15, allow_recent=True)
    assert table.verify(erased=certificate).is_clean
    assert traces(tmp_path) == []


def test_failed_file_removal_is_retried_by_the_next_erasure(tmp_path, monkeypatch):
    """MT-118: the certificate lists the file, and the next erasure removes it."""
    from tableformat.metadata import owned_files

    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    remove = owned_files.delete_if_present

    def refuse(io: Any, location: str) -> None:
        if location.endswith(".parquet"):
            raise PermissionError(location)
        remove(io, location)

    monkeypatch.setattr(owned_files, "delete_if_present", refuse)
    certificate = table.maintenance.erase({"customer": SENTINEL})
    assert "did not remove it" in certificate.tables[0].not_reached[0].reason
    with pytest.raises(tf.TableFormatError, match="earlier erasure"):
        table.maintenance.erase({"customer": "nobody"})
    monkeypatch.undo()
    assert table.maintenance.erase({"customer": SENTINEL}).is_complete
    assert traces(tmp_path) == []


def test_range_delete_of_only_the_erased_key_is_removed(tmp_path):
    """MT-115: a delete of the person alone leaves with its file."""
    table = people_table(tmp_path, "2")
    table.append(people(("alice", 1), (SENTINEL, 1)))
    table.delete_prefix({"customer": SENTINEL})
    assert [each.content for each in live_deletes(table)] == [FileContent.EQUALITY_DELETES]
    erased(table, tmp_path)
    assert live_deletes(table) == []


def test_undecodable_leftover_file_is_reported(tmp_path: Path) -> None:
    """MT-118: a file that no reader can decode may still have the bytes of the key."""
    table = people_table(tmp_path)
    table.append(people((SENTINEL, 1), ("other", 1)))
    torn = tmp_path / "lake" / "db" / "people" / "data" / "torn.parquet"
    torn.write_bytes(b"PAR1" + SENTINEL.encode() + b"no footer")
    certificate = table.maintenance.erase({"customer": SENTINEL})
    assert not certificate.is_complete
    (erasure,) = certificate.tables
    assert [Path(each.location).name for each in erasure.not_reached] == ["torn.parquet"]
    torn.unlink()
    assert table.verify(erased=certificate).is_clean
