"""Deletes that were removed from a branch before it received the rows that they delete from its publish target."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from foreign_summaries import stating
from maintenance_tables import keyed_table, rows
from published_tables import TARGET, TEN_ROWS, branched, heads, opened
from pyiceberg.table.snapshots import Summary

import tableformat as tf
from tableformat.errors import PublishRefusedError
from tableformat.testing.table_files import live_delete_files
from tableformat.testing.table_rows import live_tuples


def parted(tmp_path: Path) -> tuple[tf.Table, tf.Table]:
    """`main`, with a row that `ingest` lacks, and `ingest`, which is not published to it yet."""
    main = keyed_table(tmp_path)
    main.append(rows("a", range(10)))
    main.create_branch("ingest")
    main.append(rows("late", [1]))
    return main, opened(tmp_path, "ingest")


def refuses_to_publish(main: tf.Table) -> bool:
    main.refresh().set_properties(**TARGET)
    before = heads(main)
    with pytest.raises(PublishRefusedError):
        main.maintenance.publish()
    assert heads(main) == before
    return True


@pytest.mark.parametrize("job", ["drop_dead_deletes", "merge_range_deletes", "compact"])
def test_publish_rejects_range_deletes_dropped_before_target_was_set(tmp_path: Path, job: str) -> None:
    """MT-32: no file of the branch had a row for the delete, and the target has one."""
    main, ingest = parted(tmp_path)
    ingest.delete_prefix({"id1": "late"})
    ingest.delete_prefix({"id1": "later"})
    getattr(ingest.maintenance, job)()
    assert live_delete_files(ingest.refresh()) == []
    assert refuses_to_publish(main)


def test_publish_rejects_merge_that_dropped_needed_spans(tmp_path: Path) -> None:
    """MT-32, MT-11: it left a span that rows of the branch need."""
    main, ingest = parted(tmp_path)
    ingest.delete_prefix({"id1": "late"})
    ingest.delete_prefix({"id1": "a", "id2": 3})
    ingest.maintenance.merge_range_deletes()
    assert len(live_delete_files(ingest.refresh())) == 1
    assert refuses_to_publish(main)


def test_publish_accepts_merge_after_target_was_set(tmp_path: Path) -> None:
    """MT-31, MT-32: it kept what the row to be carried needs."""
    main, ingest = branched(tmp_path)
    main.append(rows("late", [1, 2]))
    ingest.delete_prefix({"id1": "late", "id2": 1})
    ingest.delete_prefix({"id1": "a", "id2": 3})
    ingest.delete_prefix({"id1": "zoe"})
    ingest.maintenance.merge_range_deletes()
    ingest.delete_prefix({"id1": "late", "id2": 1})
    ingest.maintenance.merge_range_deletes()
    main.maintenance.publish()
    expected = [("a", number, "x") for number in range(10) if number != 3]
    assert live_tuples(main.refresh()) == [*expected, ("late", 2, "x")]


def test_publish_rejects_equality_deletes_dropped_before_target_was_set(tmp_path: Path) -> None:
    """MT-32"""
    main, ingest = parted(tmp_path)
    ingest.delete_rows(pa.table({"id1": ["late"], "id2": [1]}))
    ingest.maintenance.drop_dead_deletes()
    assert live_delete_files(ingest.refresh()) == []
    assert refuses_to_publish(main)


@pytest.mark.parametrize("job", ["drop_dead_deletes", "merge_range_deletes", "compact"])
def test_publish_accepts_dropped_deletes_that_match_no_target_row(tmp_path: Path, job: str) -> None:
    """MT-32, MT-10: their bounds overlap the bounds of the file to be carried, but their spans match none of its
    rows."""
    main = keyed_table(tmp_path)
    main.append(rows("a", range(10)))
    main.create_branch("ingest")
    main.set_properties(**TARGET)
    ingest = opened(tmp_path, "ingest")
    main.append(rows("late", [5]))
    with ingest.refresh().transaction() as transaction:
        transaction.delete_prefix({"id1": "late", "id2": 1})
        transaction.delete_prefix({"id1": "late", "id2": 9})
    getattr(ingest.maintenance, job)()
    assert live_delete_files(ingest.refresh()) == []
    main.maintenance.publish()
    assert live_tuples(main.refresh()) == [*TEN_ROWS, ("late", 5, "x")]


@pytest.mark.parametrize("summary", ["none", "without counts"])
def test_publish_rejects_foreign_conversion_without_counts(tmp_path: Path, summary: str) -> None:
    """MT-32: the manifests show that the delete left."""
    main, ingest = parted(tmp_path)
    ingest.delete_prefix({"id1": "late"})
    with stating(lambda stated: None if summary == "none" else Summary(stated.operation)):
        ingest.maintenance.convert_deletes()
    assert refuses_to_publish(main)
