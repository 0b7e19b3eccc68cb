"""A publish, and ranges that the branch has dropped in the meantime."""

from __future__ import annotations

from pathlib import Path

import pytest
from maintenance_tables import keyed_table, rows
from pyiceberg.table.snapshots import Operation

import tableformat as tf
from tableformat.commit.publish_target import CARRIED_UNTIL
from tableformat.errors import InvalidArgumentError, PublishRefusedError
from tableformat.testing.table_rows import live_tuples


@pytest.mark.parametrize("splits", [[5], []], ids=["files inside", "files that straddle"])
def test_carried_rows_respect_later_range_drops(tmp_path: Path, splits: list[int]) -> None:
    """RP-26: rows that the target received before the drop are removed. Rows that the branch wrote after it stay, as do
    all other rows."""
    main = keyed_table(tmp_path)
    whole = tf.RangePartitions(on=["id2"], bounds=[(0, 10)], splits=splits)
    main.range_partitions.define(whole)
    main.append(rows("a", [1]))
    main.create_branch("ingest")
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    main.append(rows("b", [2]))
    ingest.maintenance.convert_deletes()
    main.append(rows("b", [7]))
    if not splits:
        ingest.range_partitions.split(5)
    ingest.refresh().range_partitions.drop(5, 10)
    ingest.range_partitions.add(5, 10)
    ingest.append(rows("c", [8]))
    main.maintenance.publish()
    expected = [("a", 1, "x"), ("b", 2, "x"), ("c", 8, "x")]
    assert live_tuples(main.refresh()) == live_tuples(ingest.refresh()) == expected
    assert main.range_partitions.list()["partition"].to_pylist() == ["[0, 5)", "[5, 10)"]
    said = [snapshot.summary for snapshot in main.metadata.snapshots if snapshot.summary is not None]
    carried = [summary.operation for summary in said if CARRIED_UNTIL in summary.additional_properties]
    assert carried == [Operation.APPEND, Operation.OVERWRITE]


def _published(directory: Path, *appended_before: list[int], version: int = 2) -> tuple[tf.Table, tf.Table]:
    """A table of two ranges, [0, 5) and [5, 10), and its branch, which is published to it."""
    main = keyed_table(directory, properties={"format-version": str(version)})
    main.range_partitions.define(tf.RangePartitions(on=["id2"], bounds=[(0, 10)], splits=[5]))
    main.append(rows("a", [1]))
    for numbers in appended_before:
        main.append(rows("r", numbers))
    main.create_branch("ingest")
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    return main, tf.open_catalog(str(directory / "lake")).load_table("db.t", branch="ingest")


def _both(main: tf.Table, branch: tf.Table) -> list[tuple[str, int]]:
    """The rows after a publish, without the values."""
    main.maintenance.publish()
    found = live_tuples(main.refresh())
    assert found == live_tuples(branch.refresh())
    assert main.verify(deep=True).errors == ()
    return [(name, number) for name, number, _ in found]


@pytest.mark.parametrize("version", [2, 3])
def test_restored_rows_stay_after_carry(tmp_path: Path, version: int) -> None:
    """RP-26, RP-13: a drop that was undone removes neither restored rows nor rows that the target received before."""
    main, ingest = _published(tmp_path, [6], version=version)
    main.append(rows("b", [2, 7]))
    retired = ingest.refresh().range_partitions.retire(5, 10)
    assert retired.tag is not None
    ingest.range_partitions.restore(retired.tag)
    ingest.append(rows("c", [8]))
    assert _both(main, ingest) == [("a", 1), ("b", 2), ("b", 7), ("c", 8), ("r", 6)]


@pytest.mark.parametrize("version", [2, 3])
def test_later_drop_keeps_rows_restored_after_it(tmp_path: Path, version: int) -> None:
    """RP-26: the restored file and the carried row are both older than the drop; only the carried row is removed."""
    main, ingest = _published(tmp_path, [6], version=version)
    retired = ingest.refresh().range_partitions.retire(5, 10)
    assert retired.tag is not None
    ingest.range_partitions.add(5, 10)
    main.append(rows("b", [2, 7]))
    ingest.refresh().range_partitions.drop(5, 10)
    ingest.range_partitions.restore(retired.tag)
    assert _both(main, ingest) == [("a", 1), ("b", 2), ("r", 6)]


def test_expiry_keeps_snapshots_with_unpublished_drops(tmp_path: Path) -> None:
    """RP-26, MT-1: without the snapshot of the drop, the publish would bring its rows back. After the publish the
    snapshot expires."""
    main, ingest = _published(tmp_path)
    main.append(rows("b", [2, 7]))
    ingest.refresh().range_partitions.drop(5, 10)
    dropped = ingest.snapshot_id
    ingest.range_partitions.add(5, 10)
    for number in (8, 9):
        ingest.append(rows("c", [number]))
    main.append(rows("e", [3]))
    with pytest.raises(InvalidArgumentError, match="ranges were dropped"):
        main.maintenance.expire_snapshots(snapshot_ids=[dropped])
    main.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
    assert _both(main, ingest) == [("a", 1), ("b", 2), ("c", 8), ("c", 9), ("e", 3)]
    expired = main.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)
    assert dropped in expired.expired_snapshot_ids


def test_publish_is_rejected_if_history_of_drops_has_expired(tmp_path: Path) -> None:
    """RP-26: another program expired the snapshots of the branch, so its drops are unknown."""
    main, ingest = _published(tmp_path)
    main.append(rows("b", [2, 7]))
    ingest.refresh().range_partitions.drop(5, 10)
    dropped = ingest.snapshot_id
    ingest.append(rows("c", [3]))
    main.maintenance.expire_snapshots()  # The tag that publishing starts from is there (MT-31).
    main.refresh().iceberg.maintenance.expire_snapshots().by_id(dropped).commit()
    with pytest.raises(PublishRefusedError):
        main.refresh().maintenance.publish()
    assert ("b", 7, "x") in live_tuples(main.refresh())


def with_retired_range(tmp_path: Path) -> tuple[tf.Table, str]:
    """A table with a branch `ingest` that began behind the retirement of a range, and the tag of that."""
    main = keyed_table(tmp_path)
    main.range_partitions.define(tf.RangePartitions(on=["id2"], bounds=[(0, 10)], splits=[5]))
    main.append(rows("a", [1]))
    main.append(rows("r", [6]))
    retired = main.range_partitions.retire(5, 10)
    assert retired.tag is not None
    main.create_branch("ingest")
    return main, retired.tag


def test_restore_on_publish_target_is_rejected(tmp_path: Path) -> None:
    """MT-30: with its old sequence number, the file would be affected by deletes of the branch that are older than its
    return."""
    main, tag = with_retired_range(tmp_path)
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    with pytest.raises(InvalidArgumentError, match="is the publish target of"):
        main.range_partitions.restore(tag)


def test_range_restored_before_naming_the_target_counts_from_its_restore(tmp_path: Path) -> None:
    """RP-26: the drop is in the history of both branches, and the file was added after it."""
    main, tag = with_retired_range(tmp_path)
    main.range_partitions.restore(tag)
    main.set_properties(**{"tableformat.publish-target.ingest": "main"})
    ingest = tf.open_catalog(str(tmp_path / "lake")).load_table("db.t", branch="ingest")
    ingest.append(rows("c", [3]))
    assert _both(main, ingest) == [("a", 1), ("c", 3), ("r", 6)]
