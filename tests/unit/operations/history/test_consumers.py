"""Consumers of the change feed, and the history that expiry keeps for them (CF-11)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import tableformat as tf
from tableformat.errors import ConsumerNotFoundError, InvalidArgumentError, SnapshotNotFoundError
from tableformat.maintenance.expiry.snapshot_retention import RetentionRequest, plan_expiry

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    catalog = tf.open_catalog(str(tmp_path / "lake"))
    catalog.create_namespace("shop")
    return catalog.create_table("shop.orders", pa.schema([("id", pa.int64())]), key=["id"])


def append(table: tf.Table, *ids: int) -> int:
    snapshot_id = table.append(pa.table({"id": list(ids)})).snapshot_id
    assert snapshot_id is not None
    return snapshot_id


def expire_everything(table: tf.Table) -> None:
    table.maintenance.expire_snapshots(older_than=timedelta(0), retain_last=1)


def read(table: tf.Table, consumer: str) -> list[int]:
    """Apply the unread changes of a consumer and record the new position."""
    feed = table.changes(consumer=consumer)
    ids: list[int] = feed.to_arrow()["id"].to_pylist()
    assert feed.to_snapshot_id is not None
    table.consumers.advance(consumer, feed.to_snapshot_id)
    return ids


def test_consumer_reads_each_change_once_despite_expiry(table: tf.Table) -> None:
    """CF-11"""
    append(table, 1)
    table.consumers.advance("mart")
    append(table, 2)
    expire_everything(table)
    append(table, 3)
    expire_everything(table)
    assert read(table, "mart") == [2, 3]
    assert read(table, "mart") == []


def test_expiry_removes_snapshots_read_by_all_consumers(table: tf.Table) -> None:
    """CF-11"""
    first, second, third = append(table, 1), append(table, 2), append(table, 3)
    table.consumers.advance("fast", third)
    table.consumers.advance("slow", second)
    expire_everything(table)
    left = {snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots}
    assert left == {second, third}
    assert first not in left
    table.consumers.drop("slow")
    expire_everything(table)
    assert [snapshot.snapshot_id for snapshot in table.refresh().metadata.snapshots] == [third]


def test_consumer_beyond_the_age_limit_protects_nothing(table: tf.Table) -> None:
    """CF-11: the age of its oldest unread snapshot counts, not the time of its last advance."""
    first = append(table, 1)
    table.consumers.advance("mart", first)
    second = append(table, 2)
    committed_ms = table.metadata.snapshots[1].timestamp_ms
    table.set_properties({"tableformat.consumers.max-age-ms": str(DAY_MS)})
    append(table, 3)

    def expired(after_ms: int) -> tuple[int, ...]:
        now_ms = committed_ms + after_ms
        return plan_expiry(table.metadata, RetentionRequest(now_ms=now_ms, older_than_ms=now_ms + 1)).snapshot_ids

    assert expired(DAY_MS) == ()
    assert expired(DAY_MS + 1) == (first, second)


def test_unread_snapshot_cannot_be_expired_by_id(table: tf.Table) -> None:
    """CF-11"""
    first = append(table, 1)
    table.consumers.advance("mart", first)
    second = append(table, 2)
    append(table, 3)
    with pytest.raises(InvalidArgumentError):
        table.maintenance.expire_snapshots(snapshot_ids=[second])


def test_consumer_list_shows_the_lag(table: tf.Table) -> None:
    """CF-11"""
    first = append(table, 1)
    table.consumers.advance("mart", first)
    append(table, 2)
    (row,) = table.consumers.list().to_pylist()
    assert (row["name"], row["branch"], row["snapshot_id"]) == ("mart", "main", first)
    assert (row["lag_snapshots_count"], row["state"]) == (1, "protected")
    assert row["lag_ms"] >= 0
    table.rollback(snapshot_id=first)
    assert table.consumers.list()["lag_ms"].to_pylist() == [0]


def test_consumer_position_is_lost_after_rollback(table: tf.Table) -> None:
    """CF-11"""
    first = append(table, 1)
    second = append(table, 2)
    table.consumers.advance("mart", second)
    table.rollback(snapshot_id=first)
    append(table, 3)
    assert table.consumers.list()["state"].to_pylist() == ["lost"]
    with pytest.raises(InvalidArgumentError):
        table.changes(consumer="mart")


def test_consumer_position_only_moves_forward(table: tf.Table) -> None:
    """CF-11"""
    first, second = append(table, 1), append(table, 2)
    table.consumers.advance("mart", second)
    with pytest.raises(InvalidArgumentError):
        table.consumers.advance("mart", first)
    with pytest.raises(SnapshotNotFoundError):
        table.consumers.advance("mart", 7)
    table.consumers.drop("mart")
    assert table.consumers.advance("mart", first).snapshot_id == first


def test_unknown_consumer_error_suggests_the_nearest(table: tf.Table) -> None:
    append(table, 1)
    table.consumers.advance("mart")
    with pytest.raises(ConsumerNotFoundError) as caught:
        table.changes(consumer="mrat")
    assert "'mart'" in str(caught.value)
    with pytest.raises(ConsumerNotFoundError):
        table.consumers.drop("mrat")
    with pytest.raises(InvalidArgumentError):
        table.changes(consumer="mart", from_snapshot_id=1)


def test_consumers_belong_to_a_branch(table: tf.Table, tmp_path: Path) -> None:
    """CF-11"""
    append(table, 1)
    table.create_branch("ingest")
    side = tf.open_catalog(str(tmp_path / "lake")).load_table("shop.orders", branch="ingest")
    side.consumers.advance("mart")
    append(side, 2)
    expire_everything(side)
    assert read(side, "mart") == [2]
    with pytest.raises(InvalidArgumentError):
        table.refresh().consumers.advance("mart")


@pytest.mark.parametrize("later", [False, True])
def test_upkeep_table_keeps_one_day_for_consumers(table: tf.Table, later: bool, tmp_path: Path) -> None:
    """MT-87: whether upkeep is set at creation or later."""
    if later:
        table.set_properties({"tableformat.upkeep": "writer"})
    else:
        catalog = tf.open_catalog(str(tmp_path / "lake"))
        schema = pa.schema([("id", pa.int64())])
        table = catalog.create_table("shop.kept", schema, key=["id"], properties={"tableformat.upkeep": "writer"})
    first = append(table, 1)
    committed_ms = table.metadata.snapshots[0].timestamp_ms
    append(table, 2)

    def expired(after_ms: int) -> tuple[int, ...]:
        return plan_expiry(table.metadata, RetentionRequest(now_ms=committed_ms + after_ms)).snapshot_ids

    assert expired(DAY_MS) == ()
    assert first in expired(DAY_MS + 1)
