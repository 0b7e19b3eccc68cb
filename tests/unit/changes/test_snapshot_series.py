"""The change feed of snapshots that only add files: they are resolved together, by the first delete that applies to a
row (CF-10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from long_forms import every
from pyiceberg.table.snapshots import Operation
from v3_tables import new_catalog, new_table, rows

import tableformat as tf
from tableformat.changes import event_rows, snapshot_series
from tableformat.changes.changes import Changes
from tableformat.commit import change
from tableformat.commit.change import TableChange
from tableformat.commit.transaction import commit_change
from tableformat.merge_on_read.small_files import batches, delete_groups, first_deletes
from tableformat.scan.context import ReadContext
from tableformat.scan.reader import read_tables
from tableformat.testing.replay import check_feed
from tableformat.testing.table_files import live_data_files
from tableformat.testing.table_rows import live_values

LIMITS: dict[str, tuple[tuple[Any, str, int], ...]] = {
    "no limit": (),
    "two snapshots a series": ((snapshot_series, "SERIES_SNAPSHOTS", 2),),
    "few deletes a series": ((snapshot_series, "SERIES_DELETES", 3),),
    "too many spans over each other": ((delete_groups, "_PAIRS_MAX", 0),),
    "too many rows": ((first_deletes, "_FOUND_BYTES_MAX", -1),),
    "large commits": ((event_rows, "_GROUP_ROWS", 0),),
    "commits one by one": ((event_rows, "_GROUP_BYTES", 0),),
    "rows too large to be read together": ((event_rows, "_GROUP_READ_BYTES", 0),),
    "large files": ((batches, "SMALL_FILE_BYTES", -1),),
}


def busy_table(path: Path, version: int) -> tf.Table:
    """Each of its snapshots but the first deletes, by all kinds of deletes; one compaction in the middle."""
    table = new_table(new_catalog(path), version, partition_by=["region"] if version == 3 else ())
    table.append(pa.concat_tables([rows("A", *range(12)), rows("B", *range(6))]))
    for turn in range(3):
        table.replace(rows("A", turn, turn + 6, note=f"{turn} "), prefix=["region", "id"])
        table.delete_rows(pa.table({"id": pa.array([turn, turn + 3], pa.int64())}))
        table.delete_range(lower=("A", turn), upper=("A", turn + 1))
        table.delete(f"id = {turn + 4}", mode="scan")
        table.append(rows("A", turn + 20, turn, note=f"{turn}. "))
        if turn == 1:
            table.maintenance.compact(min_input_files=1)
        table.delete_prefix({"region": "B", "id": turn})
        with table.transaction() as several:
            several.append(rows("C", turn, turn + 1))
            several.delete_prefix({"region": "C", "id": turn})
    table.delete_range(everything=True)
    return table.refresh()


def by_snapshot(tables: list[pa.Table]) -> list[tuple[Any, Counter[Any]]]:
    """Events of each snapshot and kind, in the order of the feed."""
    found: dict[Any, Counter[Any]] = {}
    for event in pa.concat_tables(tables).to_pylist():
        found.setdefault((event["_commit_version"], event["_change_type"]), Counter())[tuple(event.values())] += 1
    return list(found.items())


NAMES = ["id", "note", "_commit_version", "_change_type"]
CONDITIONS = ("id > 2 AND note <> 'A5'", "_change_type = 'delete' AND (_commit_version > 6 OR id = 1)", None)


@pytest.fixture(scope="module", params=every(2, [3, 2]))
def feeds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Changes, Any]]:
    """Feeds of a table, and their events if each snapshot is resolved alone, as in the plan."""
    table = busy_table(tmp_path_factory.mktemp("lake"), request.param)
    check_feed(table.view)
    found = []
    for where in CONDITIONS:
        feed = table.changes(where, NAMES)
        tasks = (task.scan for task in feed.plan().tasks)
        found.append((feed, by_snapshot(list(read_tables(tasks, ReadContext.of(feed.view, NAMES))))))
    return found


@pytest.mark.parametrize("limits", every(3, LIMITS))
def test_batched_snapshots_produce_the_same_events(
    feeds: list[tuple[Changes, Any]], monkeypatch: pytest.MonkeyPatch, limits: str
) -> None:
    """CF-10: snapshots that are resolved together, read together, or too large for either; with and without filters."""
    for module, name, value in LIMITS[limits]:
        monkeypatch.setattr(module, name, value)
    for feed, want in feeds:
        assert by_snapshot([feed.to_arrow()]) == want
    assert feed.count() == sum(sum(events.values()) for _, events in want)


@pytest.mark.parametrize("limits", ["no limit", "large commits"])
def test_events_with_only_feed_columns(
    feeds: list[tuple[Changes, Any]], monkeypatch: pytest.MonkeyPatch, limits: str
) -> None:
    """Columns of the feed alone, and conditions that leave nothing."""
    for module, name, value in LIMITS[limits]:
        monkeypatch.setattr(module, name, value)
    feed = feeds[-1][0]
    events = feed.select(["_change_type"])
    assert Counter(events.to_arrow()["_change_type"].to_pylist()) == {
        kind: events.filter(f"_change_type = '{kind}'").count() for kind in ("delete", "insert")
    }
    assert feed.filter("_change_type = 'insert' AND _commit_version = 2 AND id = -1").to_arrow().num_rows == 0


@pytest.mark.parametrize("times", [1, 2])
def test_duplicate_file_entries_repeat_their_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """MT-64: entries of two ages, and two entries of one age, as a writer without our check adds them."""
    monkeypatch.setattr(change, "file_keys", list)
    table = new_table(new_catalog(tmp_path), 2)
    table.append(rows("A", *range(6)))
    (data,) = live_data_files(table)
    again = replace(data, sequence_number=None, file_sequence_number=None)
    for number in range(2):
        table.delete_prefix({"region": "A", "id": number})
        commit_change(table.iceberg, TableChange(operation=Operation.APPEND, added_data_files=(again,) * times))
        table.refresh()
    table.delete_prefix({"region": "A", "id": 2})
    table.delete_rows(pa.table({"id": pa.array([0, 3], pa.int64())}))
    events = check_feed(table.view)
    assert Counter(events["_change_type"].to_pylist())["delete"] == table.changes("_change_type = 'delete'").count()
    assert live_values(table, "id") == sorted([4, 5] * (1 + 2 * times) + [1] * times)
