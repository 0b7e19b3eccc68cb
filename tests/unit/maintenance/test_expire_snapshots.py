"""Old snapshots are removed, with exactly the files that nothing else needs."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from maintenance_tables import another_handle, commit_deletes, keyed_table, rows
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.statistics import StatisticsFile
from pyiceberg.types import LongType

import tableformat as tf
from tableformat.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from tableformat.maintenance.expiry.expired_metadata import unneeded_metadata
from tableformat.maintenance.expiry.snapshot_retention import RetentionRequest, plan_expiry
from tableformat.metadata import owned_files
from tableformat.testing.raw_files import foreign_equality_delete
from tableformat.testing.table_files import files_on_disk, live_files
from tableformat.testing.table_rows import live_tuples
from tableformat.write.context import WriteContext

FUTURE = 10**15


def history(tmp_path: Path, **options: Any) -> tf.Table:
    """Five snapshots: two appends, a scan delete of the whole first file, an upsert, a prefix delete."""
    table = keyed_table(tmp_path, **options)
    table.append(rows("a", range(3)))
    table.append(rows("b", range(3)))
    table.delete(where="id1 = 'a'", mode="scan")
    table.upsert(rows("b", [1], "new"))
    table.delete_prefix({"id1": "b", "id2": 2})
    return table


def ids(table: tf.Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


def test_expiry_keeps_only_the_head_and_its_rows(tmp_path: Path) -> None:
    """MT-1, MT-3: the file whose rows are all deleted is removed from the disk with the last snapshot that had it."""
    table = history(tmp_path)
    head, before = table.snapshot_id, live_tuples(table)
    sizes = {location: Path(location.removeprefix("file://")).stat().st_size for location in files_on_disk(table)}
    result = table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    assert result.freed_bytes == sum(sizes[location] for location in sizes.keys() - files_on_disk(table))
    assert ids(table) == [head]
    assert live_tuples(table) == before == [("b", 0, "x"), ("b", 1, "new")]
    assert (result.expired_snapshots_count, result.deleted_data_files_count) == (4, 1)
    assert result.deleted_manifest_lists_count == 4
    data = {location for location in files_on_disk(table) if "/data/" in location}
    assert data == {file.file_path for file in live_files(table)}
    assert not result.undeleted_file_locations
    assert live_tuples(tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")) == before


def test_snapshots_newer_than_the_handle_expire(tmp_path: Path) -> None:
    """MT-1: the state in the catalog counts."""
    table = keyed_table(tmp_path)
    table.append(rows("a", range(3)))
    other = another_handle(table)
    other.append(rows("b", range(3)))
    assert table.maintenance.expire_snapshots(older_than=FUTURE).expired_snapshots_count == 1
    assert ids(table) == [other.snapshot_id]


def test_dry_run_reports_the_same_and_changes_nothing(tmp_path: Path) -> None:
    table = history(tmp_path)
    before = files_on_disk(table)
    planned = table.maintenance.expire_snapshots(older_than=FUTURE, dry_run=True)
    assert (files_on_disk(table), len(ids(table))) == (before, 5)
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    names = [name for name in done.__dataclass_fields__ if name not in ("dry_run", "duration_seconds")]
    assert {name: getattr(planned, name) for name in names} == {name: getattr(done, name) for name in names}


def test_tag_keeps_only_its_snapshot_readable(tmp_path: Path) -> None:
    """MT-1, MT-3: files that only the tag needs stay."""
    table = history(tmp_path)
    first = ids(table)[0]
    table.create_tag("first", first)
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert ids(table) == [first, table.snapshot_id]
    assert live_tuples(table, tag="first") == [("a", number, "x") for number in range(3)]


def test_branch_keeps_its_files(tmp_path: Path) -> None:
    """MT-1, MT-3: a branch that left `main` behind keeps the files that `main` has lost."""
    table = history(tmp_path)
    table.create_branch("old", ids(table)[1])
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="old")
    other.append(rows("c", [1]))
    table.refresh()
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert ids(table) == [table.snapshot_id, other.snapshot_id]
    assert [row[0] for row in live_tuples(table, branch="old")] == ["a"] * 3 + ["b"] * 3 + ["c"]


def test_retain_last_applies_per_branch(tmp_path: Path) -> None:
    """MT-1"""
    table = history(tmp_path)
    kept = ids(table)[-3:]
    assert table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=3).expired_snapshots_count == 2
    assert ids(table) == kept
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        table.maintenance.expire_snapshots(retain_last=0)


def test_table_properties_are_the_default_arguments(tmp_path: Path) -> None:
    """MT-1: by default nothing is older than five days here."""
    table = history(tmp_path, properties={"history.expire.min-snapshots-to-keep": "2"})
    assert table.maintenance.expire_snapshots().expired_snapshots_count == 0
    time.sleep(0.01)
    table.set_properties(**{"history.expire.max-snapshot-age-ms": "1"})
    kept = ids(table)[-2:]
    assert table.maintenance.expire_snapshots().expired_snapshots_count == 3
    assert ids(table) == kept


def test_expire_snapshots_by_id(tmp_path: Path) -> None:
    """MT-1: a snapshot in the middle is removed; files of its neighbours stay."""
    table = history(tmp_path)
    middle = ids(table)[1:3]
    first = live_tuples(table, snapshot_id=ids(table)[0])
    result = table.maintenance.expire_snapshots(snapshot_ids=middle)
    assert result.expired_snapshot_ids == tuple(middle)
    assert result.deleted_data_files_count == 0
    assert live_tuples(table, snapshot_id=ids(table)[0]) == first
    with pytest.raises(SnapshotNotFoundError):
        table.maintenance.expire_snapshots(snapshot_ids=middle)
    with pytest.raises(InvalidArgumentError, match="branch 'main' refers to it"):
        table.maintenance.expire_snapshots(snapshot_ids=[table.snapshot_id])


def test_expiry_by_id_expires_nothing_else(tmp_path: Path) -> None:
    """MT-1, MT-4: refs and batch records that are too old stay until a call expires by age."""
    table = history(tmp_path, properties={"history.expire.max-ref-age-ms": "1", "tableformat.txn.retention-ms": "1"})
    table.append(rows("c", [1]), application_id="job", batch_id=1)
    table.create_tag("stale", ids(table)[1])
    time.sleep(0.01)
    result = table.maintenance.expire_snapshots(snapshot_ids=ids(table)[2:3])
    assert (result.expired_snapshots_count, result.removed_refs, result.forgotten_batches_count) == (1, (), 0)
    assert "stale" in table.metadata.refs
    assert table.append(rows("c", [1]), application_id="job", batch_id=1).already_applied


def test_refs_beyond_max_age_are_removed(tmp_path: Path) -> None:
    """MT-1: a tag with its own maximum age, a branch by the table's property; `main` never."""
    table = history(tmp_path)
    table.create_tag("short", ids(table)[0], max_ref_age_ms=1)
    table.create_tag("long", ids(table)[1], max_ref_age_ms=10**12)
    table.create_branch("stale", ids(table)[2])
    table.set_properties(**{"history.expire.max-ref-age-ms": "1"})
    time.sleep(0.01)
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert set(result.removed_refs) == {"short", "stale"}
    assert set(table.metadata.refs) == {"main", "long"}
    assert ids(table) == [table.metadata.refs["long"].snapshot_id, table.snapshot_id]


def test_branch_settings_override_arguments(tmp_path: Path) -> None:
    """MT-1"""
    table = history(tmp_path)
    metadata = table.metadata
    ref = SnapshotRef.model_validate(
        {"snapshot-id": metadata.current_snapshot_id, "type": "branch", "min-snapshots-to-keep": 4}
    )
    changed = metadata.model_copy(update={"refs": {"main": ref}})
    request = RetentionRequest(now_ms=FUTURE, older_than_ms=FUTURE, retain_last=1)
    assert plan_expiry(changed, request).snapshot_ids == (ids(table)[0],)


def test_items_exactly_at_the_age_limit_are_kept(tmp_path: Path) -> None:
    """MT-1, MT-4: to the millisecond: a snapshot of a branch, one that no ref leads to, a tag, a writer's batch."""
    table = history(tmp_path, properties={"tableformat.txn.retention-ms": "200"})
    table.append(rows("c", [1]), application_id="job", batch_id=1)
    name = "tableformat.txn.main.job"
    table.set_properties(**{name: json.dumps({**json.loads(table.properties[name]), "time-ms": 300})})
    table.create_tag("third", ids(table)[2], max_ref_age_ms=200)
    at = {snapshot_id: 100 * place for place, snapshot_id in enumerate(ids(table), 1)}
    snapshots = [each.model_copy(update={"timestamp_ms": at[each.snapshot_id]}) for each in table.metadata.snapshots]
    metadata = table.metadata.model_copy(update={"snapshots": snapshots})
    without_line = metadata.model_copy(update={"refs": {"other": metadata.refs["third"]}})

    def expired(metadata: Any, **request: Any) -> list[int]:
        expiry = plan_expiry(metadata, RetentionRequest(**request))
        return [at[snapshot_id] for snapshot_id in expiry.snapshot_ids]

    assert expired(metadata, now_ms=500, older_than_ms=200) == [100]
    assert expired(metadata, now_ms=500, older_than_ms=201) == [100, 200]
    assert expired(without_line, now_ms=500, older_than_ms=200) == [100]
    of_branch = metadata.refs["main"].model_copy(update={"max_snapshot_age_ms": 300})
    limited = metadata.model_copy(update={"refs": {"main": of_branch}})
    assert expired(limited, now_ms=500, older_than_ms=FUTURE) == [100]
    assert expired(limited, now_ms=501, older_than_ms=FUTURE) == [100, 200]
    assert expired(limited, now_ms=501, older_than_ms=0) == [100, 200], "that the caller would keep them is no matter"
    for now_ms, gone in ((500, False), (501, True)):
        expiry = plan_expiry(metadata, RetentionRequest(now_ms=now_ms, older_than_ms=0))
        assert (expiry.refs == ("third",), expiry.batch_properties == (name,)) == (gone, gone)


def test_unreferenced_snapshot_expires_by_age(tmp_path: Path) -> None:
    """MT-1: what a rollback left behind."""
    table = history(tmp_path)
    table.rollback(snapshot_id=ids(table)[1])
    assert live_tuples(table)[0] == ("a", 0, "x")
    assert table.maintenance.expire_snapshots().expired_snapshots_count == 0
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert result.expired_snapshots_count == 4
    assert result.deleted_data_files_count == 1, (
        "the upserted row's file; those of the first two appends are live again"
    )
    assert live_tuples(table) == [(id1, number, "x") for id1 in "ab" for number in range(3)]


def test_statistics_files_are_removed_with_their_snapshot(tmp_path: Path) -> None:
    """MT-3: statistics files of retained snapshots stay."""
    table = history(tmp_path)
    first, head = ids(table)[0], table.snapshot_id
    for snapshot_id in (first, head):
        path = Path(table.location.removeprefix("file://"), "metadata", f"{snapshot_id}.stats")
        path.write_bytes(b"1234")
        with table.iceberg.update_statistics() as update:
            update.set_statistics(_statistics(snapshot_id, f"file://{path}"))
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert result.deleted_statistics_files_count == 1
    assert {location.rpartition("/")[2] for location in files_on_disk(table) if location.endswith(".stats")} == {
        f"{head}.stats"
    }
    assert [statistics.snapshot_id for statistics in table.metadata.statistics] == [head]


def _statistics(snapshot_id: int, location: str) -> Any:
    return StatisticsFile.model_validate(
        {
            "snapshot-id": snapshot_id,
            "statistics-path": location,
            "file-size-in-bytes": 4,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    )


def test_batch_record_survives_expiry_of_its_snapshot(tmp_path: Path) -> None:
    """MT-4: exactly once does not hang on snapshots; only the retention of batches forgets a writer."""
    table = keyed_table(tmp_path)
    table.append(rows("a", [1]), application_id="job", batch_id=7)
    table.append(rows("a", [2]))
    assert table.maintenance.expire_snapshots(older_than=FUTURE).forgotten_batches_count == 0
    assert table.append(rows("a", [1]), application_id="job", batch_id=7).already_applied
    table.set_properties(**{"tableformat.txn.retention-ms": "1"})
    time.sleep(0.01)
    assert table.maintenance.expire_snapshots().forgotten_batches_count == 1
    assert not table.append(rows("a", [3]), application_id="job", batch_id=7).already_applied


class Interrupting:
    """A catalog that lets something happen before or after a commit."""

    def __init__(self, catalog: Any, *, before: Any = None, after: Any = None) -> None:
        self._catalog, self._before, self._after = catalog, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit_table(self, *arguments: Any) -> Any:
        before, self._before = self._before, None
        if before is not None:
            before()
        response = self._catalog.commit_table(*arguments)
        if self._after is not None:
            self._after()
        return response


@pytest.mark.parametrize("kind", ["tag", "branch", "rollback"])
def test_concurrently_added_ref_is_kept(tmp_path: Path, kind: str) -> None:
    """MT-2: a catalog drops refs to removed snapshots, so the commit must not pass one that it did not know."""
    table = history(tmp_path)
    first = ids(table)[0]
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    meanwhile = {
        "tag": lambda: other.create_tag("late", first),
        "branch": lambda: other.create_branch("late", first),
        "rollback": lambda: other.rollback(snapshot_id=first),
    }
    table.iceberg.catalog = Interrupting(table.iceberg.catalog, before=meanwhile[kind])
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert first in ids(table)
    assert live_tuples(table, snapshot_id=first) == [("a", number, "x") for number in range(3)]
    assert kind == "rollback" or "late" in table.metadata.refs


def test_concurrently_committed_batch_record_is_kept(tmp_path: Path) -> None:
    """MT-2, MT-4: the record that the commit would remove has been replaced by a newer one."""
    table = keyed_table(tmp_path, properties={"tableformat.txn.retention-ms": "60000"})
    table.append(rows("a", [1]), application_id="job", batch_id=1)
    name = "tableformat.txn.main.job"
    table.set_properties(**{name: json.dumps({**json.loads(table.properties[name]), "time-ms": 0})})
    other = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")
    table.iceberg.catalog = Interrupting(
        table.iceberg.catalog,
        before=lambda: other.append(rows("a", [2]), application_id="job", batch_id=2),
    )
    assert table.maintenance.expire_snapshots().forgotten_batches_count == 0
    assert table.append(rows("a", [2]), application_id="job", batch_id=2).already_applied


def test_unknown_outcome_removes_no_file(tmp_path: Path) -> None:
    """MT-3, CP-13"""
    table = history(tmp_path)

    def lose_the_answer() -> None:
        raise ConnectionError("reset by peer")

    before = files_on_disk(table)
    table.iceberg.catalog = Interrupting(table.iceberg.catalog, after=lose_the_answer)
    with pytest.raises(CommitStateUnknownError):
        table.maintenance.expire_snapshots(older_than=FUTURE)
    assert before <= files_on_disk(table)


def test_expiry_with_gc_disabled_removes_no_files(tmp_path: Path) -> None:
    """MT-3"""
    table = history(tmp_path, properties={"gc.enabled": "false"})
    for older_than in (FUTURE, 0):
        with pytest.raises(UnsupportedFeatureError, match="other tables"):
            table.maintenance.expire_snapshots(older_than=older_than)
    before = files_on_disk(table)
    result = table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_files=False)
    assert (result.expired_snapshots_count, result.freed_bytes) == (4, 0)
    assert before <= files_on_disk(table)


def test_undeletable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-3"""
    table = history(tmp_path)
    real = owned_files.delete_if_present

    def refuse_data(io: Any, location: str) -> None:
        if "/data/" in location:
            raise PermissionError(location)
        real(io, location)

    monkeypatch.setattr(owned_files, "delete_if_present", refuse_data)
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (result.deleted_data_files_count, len(result.undeleted_file_locations)) == (0, 1)
    assert "/data/" in result.undeleted_file_locations[0]


def evolved(tmp_path: Path) -> tf.Table:
    """A table whose column payload, which an equality delete compares, is dropped; partition fields were added and
    removed."""
    table = history(tmp_path)
    context = WriteContext.of(table.metadata, table.iceberg.io)
    schema = table.metadata.schema()
    commit_deletes(
        table,
        foreign_equality_delete(context, [{"payload": "new"}], schema, equality_columns=["payload"], spec_id=0),
    )
    with table.iceberg.update_schema() as update:
        update.add_column("more", LongType())
    with table.iceberg.update_schema() as update:
        update.delete_column("payload")
    for number in (2, 4):
        with table.iceberg.update_spec() as update:
            update.add_field("id2", f"bucket[{number}]", "b")
        with table.iceberg.update_spec() as update:
            update.remove_field("b")
    return table.refresh()


def test_unused_schemas_and_specs_are_removed_on_request(tmp_path: Path) -> None:
    """MT-1: of a dropped column that a delete file compares the newest schema stays."""
    table = evolved(tmp_path)
    before = live_tuples(table)
    assert before == [("b", 0, None)]
    kept = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (kept.removed_schema_ids, kept.removed_spec_ids) == ((), ())
    table.maintenance.rewrite_manifests()
    planned = table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True, dry_run=True)
    assert (planned.removed_schema_ids, planned.removed_spec_ids) == ((0,), (1,))
    assert len(table.refresh().metadata.schemas) == 3
    done = table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert (done.removed_schema_ids, done.removed_spec_ids) == ((0,), (1,))
    assert live_tuples(tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")) == before
    table.maintenance.convert_deletes()
    last = table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert last.removed_schema_ids == (1,)
    assert live_tuples(tf.open_catalog(str(tmp_path / "lake")).load_table("db.t")) == before


def test_ids_of_removed_specs_and_schemas_are_not_reused(tmp_path: Path) -> None:
    """MT-1: otherwise pending files would be attributed to another spec, and filters would miss rows."""
    table = keyed_table(tmp_path)
    with table.update_spec() as update:
        update.add_field("id2", "identity", "b")
    write = table.new_write()
    staged = write.write(rows("a", range(2)))
    with table.update_spec() as update:
        update.remove_field("b")
    with table.update_schema() as update:
        update.add_column("note", LongType())
    with table.update_schema() as update:
        update.delete_column("note")
    table.maintenance.expire_snapshots(clean_expired_metadata=True)
    for field, transform in (("c", "bucket[2]"), ("d", "truncate[2]")):
        with table.refresh().update_spec() as update:
            for known in table.metadata.spec().fields:
                update.remove_field(known.name)
            update.add_field("id1", transform, field)
    with table.update_schema() as update:
        update.add_column("other", LongType())
    assert [each.schema_id for each in table.metadata.schemas] == [0, 1, 2]
    table.commit(write, [staged])
    assert table.scan("id2 = 1").count() == 1
    assert table.verify(deep=True).is_clean


def test_schema_made_current_concurrently_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-1: without its newest column the table has its first schema again, which the job is about to remove."""
    table = keyed_table(tmp_path)
    with table.update_schema() as update:
        update.add_column("note", LongType())
    looked = []

    def look_and_lose(io: Any, metadata: Any) -> Any:
        looked.append(unneeded_metadata(io, metadata))
        if len(looked) == 2:
            with another_handle(table).update_schema() as update:
                update.delete_column("note")
        return looked[-1]

    monkeypatch.setattr("tableformat.maintenance.expiry.expire_snapshots.unneeded_metadata", look_and_lose)
    assert 0 not in table.maintenance.expire_snapshots(clean_expired_metadata=True).removed_schema_ids
    assert looked[1].schema_ids == (0,)
    fresh = another_handle(table)
    assert fresh.metadata.schema().column_names == ["id1", "id2", "payload"]
    fresh.append(rows("a", [1]))
    assert fresh.verify(deep=True).is_clean


def test_schema_of_retained_snapshot_is_kept(tmp_path: Path) -> None:
    """MT-1: time travel returns the columns of that time, and the tag on the newest snapshot has its own schema."""
    table = history(tmp_path)
    table.create_tag("then")
    then = live_tuples(table)
    for name in ("first", "second"):
        with table.iceberg.update_schema() as update:
            update.add_column(name, LongType())
    table.refresh().append(pa.table({"id1": ["c"], "id2": [1], "payload": ["x"], "first": [1], "second": [2]}))
    result = table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert result.removed_schema_ids == (1,)
    fresh = another_handle(table)
    assert live_tuples(fresh, tag="then") == then
    assert fresh.scan(tag="then").to_arrow().column_names == ["id1", "id2", "payload"]


def test_schema_of_dropped_partition_source_column_is_kept(tmp_path: Path) -> None:
    """MT-1, DA-6: it has the type of the partition value."""
    table = keyed_table(tmp_path)
    with table.iceberg.update_spec() as update:
        update.add_identity("payload")
    table.refresh().append(rows("a", range(3)))
    with table.iceberg.update_spec() as update:
        update.remove_field("payload")
    with table.iceberg.update_schema() as update:
        update.delete_column("payload")
    table.refresh().append(pa.table({"id1": ["b"], "id2": [1]}))
    before = live_tuples(table)
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    fresh = another_handle(table)
    assert live_tuples(fresh) == before
    assert fresh.maintenance.compact(rewrite_all=True).rewritten_data_files_count == 2
    assert live_tuples(fresh) == before


@pytest.mark.parametrize("version", ["2", "3"])
def test_delete_files_are_counted_by_kind(tmp_path: Path, version: str) -> None:
    """MT-3: those with deletion vectors among the position deletes."""
    table = keyed_table(tmp_path, properties={"format-version": version})
    table.append(rows("a", range(8)))
    for number in (1, 2):
        table.delete(f"id2 = {number}", mode="scan")
    table.delete_rows(pa.table({"id1": ["a"], "id2": [3]}))
    table.delete_prefix({"id1": "a", "id2": 4})
    before = live_tuples(table)
    table.maintenance.compact(rewrite_all=True)
    table.maintenance.drop_dead_deletes()
    result = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert result.deleted_position_delete_files_count == 2
    assert (result.deleted_equality_delete_files_count, result.deleted_range_delete_files_count) == (1, 1)
    assert result.deleted_data_files_count == 1
    assert live_tuples(table) == before == [("a", number, "x") for number in (0, 5, 6, 7)]


def test_staged_files_of_a_removed_spec_are_rejected(tmp_path: Path) -> None:
    """MT-1: a writer that began before."""
    table = keyed_table(tmp_path)
    with table.iceberg.update_spec() as update:
        update.add_field("id2", "bucket[2]", "b")
    table.refresh()
    other = another_handle(table)
    with ExitStack() as stack:
        writer = stack.enter_context(table.transaction())
        writer.append(rows("a", range(2)))
        for change in (
            lambda update: update.remove_field("b"),
            lambda update: update.add_field("id2", "bucket[4]", "c"),
            lambda update: update.remove_field("c"),
        ):
            with other.refresh().update_spec() as update:
                change(update)
        assert other.maintenance.expire_snapshots(clean_expired_metadata=True).removed_spec_ids == (1,)
        with pytest.raises(CommitConflictError):
            stack.close()
    assert live_tuples(another_handle(table)) == []
