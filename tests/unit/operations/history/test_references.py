"""Operations that move branches: rollback, set_current_snapshot, fast_forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from new_lakes import new_lake

from tableformat import Catalog, Table
from tableformat.errors import AlreadyCommittedError, AlreadyExistsError, InvalidArgumentError, SnapshotNotFoundError
from tableformat.operations.history.cherrypick import cherrypick, publish_append, staged_snapshot
from tableformat.operations.options import CommitOptions
from tableformat.testing.table_rows import live_values

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with new_lake(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Three snapshots, each with one row more."""
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    for number in (1, 2, 3):
        append(created, number)
    return created


def append(table: Table, number: int) -> None:
    table.append(pa.table({"id": [number]}, schema=SCHEMA))


def snapshots(table: Table) -> list[int]:
    found: list[int] = table.inspect.snapshots()["snapshot_id"].to_pylist()
    return found


def test_set_current_snapshot_to_rolled_back_snapshot(table: Table) -> None:
    first, second, third = snapshots(table)
    table.rollback(snapshot_id=first)
    append(table, 4)
    assert live_values(table, "id") == [1, 4]
    with pytest.raises(InvalidArgumentError, match="not an ancestor"):
        table.rollback(snapshot_id=third)
    assert table.set_current_snapshot(third).snapshot_id == third
    assert live_values(table, "id") == [1, 2, 3]
    append(table, 5)
    assert live_values(table, "id") == [1, 2, 3, 5]
    assert table.refresh().set_current_snapshot(second).snapshot_id == second


def test_set_current_snapshot_by_ref_name(catalog: Catalog, table: Table) -> None:
    first = snapshots(table)[0]
    table.create_tag("one", first).create_branch("ingest")
    append(catalog.load_table("db.t", branch="ingest"), 9)
    table.refresh().set_current_snapshot(ref_name="one")
    assert live_values(table, "id") == [1]
    table.set_current_snapshot(ref_name="ingest")
    assert live_values(table, "id") == [1, 2, 3, 9]
    with pytest.raises(SnapshotNotFoundError):
        table.set_current_snapshot(ref_name="ingst")


def test_set_current_snapshot_requires_exactly_one_argument(table: Table) -> None:
    with pytest.raises(InvalidArgumentError, match="pass one of snapshot_id, ref_name to choose"):
        table.set_current_snapshot()
    with pytest.raises(InvalidArgumentError, match="pass only one of"):
        table.set_current_snapshot(snapshots(table)[0], ref_name="main")
    with pytest.raises(SnapshotNotFoundError):
        table.set_current_snapshot(7)


def test_publish_target_can_only_be_moved_by_publish(catalog: Catalog, table: Table) -> None:
    """MT-30: if it moved to a branch with range deletes, readers without range deletes would see the deleted rows. It
    may move back."""
    first, _, third = snapshots(table)
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    ingest = catalog.load_table("db.t", branch="ingest")
    ingest.delete_prefix({"id": 1})
    table.refresh()
    for move in (
        lambda: table.set_current_snapshot(ref_name="ingest"),
        lambda: table.set_current_snapshot(ingest.snapshot_id),
        lambda: table.fast_forward("main", "ingest"),
    ):
        with pytest.raises(InvalidArgumentError, match=r"is the publish target of branch 'ingest'.*converts deletes"):
            move()
        assert table.refresh().snapshot_id == third
    assert table.set_current_snapshot(first).snapshot_id == first
    table.maintenance.publish("ingest")
    assert live_values(table.refresh(), "id") == [2, 3]
    assert ingest.refresh().set_current_snapshot(third).snapshot_id == third


def test_fast_forward_moves_a_branch_to_its_descendant(catalog: Catalog, table: Table) -> None:
    table.create_branch("audit")
    audit = catalog.load_table("db.t", branch="audit")
    append(audit, 4)
    append(audit, 5)
    assert live_values(table.refresh(), "id") == [1, 2, 3]
    assert table.fast_forward("main", "audit").snapshot_id == audit.snapshot_id
    assert live_values(table, "id") == [1, 2, 3, 4, 5]
    location = table.iceberg.metadata_location
    assert table.fast_forward("main", "audit").iceberg.metadata_location == location


@pytest.mark.parametrize(
    "publish",
    [lambda table: table.fast_forward("main", "audit"), lambda table: table.set_current_snapshot(ref_name="audit")],
)
def test_fast_forward_uses_the_current_ref_heads(
    catalog: Catalog, table: Table, publish: Callable[[Table], Table]
) -> None:
    """Commits to the branch after the handle was loaded are published too; they used to be left out without an
    error."""
    table.create_branch("audit")
    append(catalog.load_table("db.t", branch="audit"), 4)
    assert live_values(publish(table), "id") == [1, 2, 3, 4]
    assert live_values(catalog.load_table("db.t"), "id") == [1, 2, 3, 4]


def test_fast_forward_rejects_diverged_branches(catalog: Catalog, table: Table) -> None:
    table.create_branch("audit")
    append(catalog.load_table("db.t", branch="audit"), 4)
    append(table.refresh(), 5)
    with pytest.raises(InvalidArgumentError, match="cannot be moved forward to 'audit'"):
        table.fast_forward("main", "audit")
    assert live_values(table.refresh(), "id") == [1, 2, 3, 5]
    with pytest.raises(SnapshotNotFoundError):
        table.fast_forward("main", "audti")
    table.create_tag("here")
    with pytest.raises(InvalidArgumentError, match="'here' is a tag"):
        table.fast_forward("here", "main")


def test_fast_forward_of_publish_target_is_rejected(catalog: Catalog, table: Table) -> None:
    """MT-30"""
    table.create_branch("ingest").set_properties({"tableformat.publish-target.ingest": "main"})
    catalog.load_table("db.t", branch="ingest").delete_prefix({"id": 1})
    with pytest.raises(InvalidArgumentError, match=r"publish\('ingest', 'main'\)"):
        table.refresh().fast_forward("main", "ingest")
    assert live_values(table.refresh(), "id") == [1, 2, 3]


def test_branch_of_empty_table_starts_with_empty_snapshot(catalog: Catalog) -> None:
    """`main` is unchanged; after a write to the branch, `main` can follow it."""
    empty = catalog.create_table("db.empty", SCHEMA)
    empty.create_branch("audit")
    assert set(empty.refresh().metadata.refs) == {"audit"}
    assert empty.snapshot_id is None
    with pytest.raises(AlreadyExistsError):
        empty.create_branch("audit")
    empty.create_branch("other")
    assert empty.refresh().scan(branch="other").count() == 0
    audit = catalog.load_table("db.empty", branch="audit")
    assert audit.scan().count() == 0
    append(audit, 1)
    assert empty.refresh().scan().count() == 0
    assert empty.fast_forward("main", "audit").scan().count() == 1


def test_only_appends_are_cherry_picked_and_only_once(table: Table) -> None:
    """SP-24."""
    assert table.catalog is not None
    table.create_branch("audit")
    audit = table.catalog.load_table("db.t", branch="audit")
    rows = audit.scan().to_arrow()
    added = audit.append(rows).snapshot_id
    deleted = audit.delete("true", mode="scan").snapshot_id
    assert added is not None
    assert deleted is not None
    before = table.append(rows).snapshot_id
    picked = cherrypick(table.iceberg, "main", added)
    assert picked not in (added, before)
    assert table.refresh().scan().count() == 3 * len(rows)
    for snapshot_id, message in ((added, "is already in the history of 'main'"), (deleted, "deletes or replaces rows")):
        with pytest.raises(InvalidArgumentError, match=message):
            cherrypick(table.iceberg, "main", snapshot_id)
    table.create_branch("other", added)
    assert cherrypick(table.iceberg, "other", deleted) == deleted
    assert table.refresh().scan(branch="other").count() == 0


def test_append_is_not_cherry_picked_twice_after_expiry(table: Table) -> None:
    """SP-24, CP-23: the history no longer shows that the snapshot was published, but its files do."""
    table.create_tag("base").create_branch("audit")
    audit = table.catalog.load_table("db.t", branch="audit")
    append(audit, 4)
    append(table, 5)
    assert audit.snapshot_id is not None
    cherrypick(table.iceberg, "main", audit.snapshot_id)
    append(table, 6)
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    with pytest.raises(AlreadyCommittedError):
        cherrypick(table.iceberg, "main", audit.snapshot_id)
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4, 5, 6]


def test_compacted_cherry_pick_with_expired_history_is_rejected(table: Table) -> None:
    """CP-33: it was published, compacted, and what published it has expired; its rows would be there twice."""
    table.create_tag("base").create_branch("audit")
    audit = table.catalog.load_table("db.t", branch="audit")
    append(audit, 4)
    append(table, 5)
    assert audit.snapshot_id is not None
    cherrypick(table.iceberg, "main", audit.snapshot_id)
    table.refresh().maintenance.compact(rewrite_all=True)
    append(table, 6)
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    with pytest.raises(InvalidArgumentError, match="unknown whether one of them published it"):
        cherrypick(table.iceberg, "main", audit.snapshot_id)
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4, 5, 6]


def test_own_append_is_not_cherry_picked_from_tag_after_expiry(table: Table) -> None:
    """CP-33: the tagged snapshot was the branch's own."""
    tagged = table.create_tag("loaded").snapshot_id
    assert tagged is not None
    table.maintenance.compact(rewrite_all=True)
    append(table, 4)
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    with pytest.raises(InvalidArgumentError, match=r"unknown whether|its parent .* has expired"):
        cherrypick(table.iceberg, "main", tagged)
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4]


def stage(table: Table, number: int, wap_id: str) -> int:
    """A row in a snapshot that no branch has, under this name."""
    table.refresh().create_branch("staging")
    staged = table.catalog.load_table("db.t", branch="staging")
    result = staged.append(pa.table({"id": [number]}, schema=SCHEMA), snapshot_properties={"wap.id": wap_id})
    table.refresh().drop_branch("staging")
    assert result.snapshot_id is not None
    return result.snapshot_id


def test_staged_name_is_used_and_published_once(table: Table) -> None:
    """SP-24."""
    first, second, third = stage(table, 4, "a"), stage(table, 5, "b"), stage(table, 6, "a")
    table.refresh()
    assert staged_snapshot(table.iceberg, "b") == second
    with pytest.raises(SnapshotNotFoundError):
        staged_snapshot(table.iceberg, "c")
    with pytest.raises(InvalidArgumentError, match="2 snapshots were staged"):
        staged_snapshot(table.iceberg, "a")
    assert cherrypick(table.iceberg, "main", first) == first
    cherrypick(table.iceberg, "main", second)
    summary = table.refresh().iceberg.metadata.current_snapshot().summary.additional_properties
    assert (summary["published-wap-id"], summary["source-snapshot-id"]) == ("b", str(second))
    with pytest.raises(InvalidArgumentError, match="the WAP id 'a' was already published"):
        cherrypick(table.iceberg, "main", third)
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4, 5]


def test_expired_snapshot_cannot_be_cherry_picked(table: Table) -> None:
    """SP-24."""
    with pytest.raises(SnapshotNotFoundError):
        cherrypick(table.iceberg, "main", 7)
    with pytest.raises(SnapshotNotFoundError):
        publish_append(table.iceberg, "main", 7, CommitOptions.of("append"))


def test_staged_append_is_published_once_as_a_batch(table: Table) -> None:
    """RP-22, CP-14: regardless of concurrent commits, and of snapshots that have expired."""
    staged = stage(table, 4, "a")
    table.refresh().create_tag("parent").create_tag("kept", staged)
    append(table, 5)
    append(table, 7)
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    batch = CommitOptions.of("append", application_id="loader", batch_id=1, snapshot_properties={"told": "yes"})
    publish_append(table.iceberg, "main", staged, batch)
    summary = table.refresh().iceberg.metadata.current_snapshot().summary.additional_properties
    assert (summary["told"], summary["source-snapshot-id"]) == ("yes", str(staged))
    table.maintenance.compact(rewrite_all=True)
    append(table, 6)
    table.maintenance.expire_snapshots(older_than=10**15, retain_last=1)
    publish_append(table.iceberg, "main", staged, batch)
    assert live_values(table.refresh(), "id") == [1, 2, 3, 4, 5, 6, 7]
