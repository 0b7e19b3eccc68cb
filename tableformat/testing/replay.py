"""Replays a change feed on a multiset of rows, event by event (CF-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from tableformat.changes.changes import Changes
from tableformat.changes.range import change_range
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.scan.scan import Scan
from tableformat.testing.key_order import fingerprint

EVENT_COLUMNS: Final = ("_change_type", "_commit_snapshot_id")


def oldest_beginning(view: SnapshotView) -> int | None:
    """CF-2: the oldest snapshot after which a feed up to the view's snapshot can begin; None for the beginning of the
    history."""
    oldest = list(ancestors(view.metadata, view.snapshot))[-1:]
    return oldest[0].snapshot_id if oldest and had_parent(view.io, oldest[0]) else None


def check_feed(view: SnapshotView) -> pa.Table:
    """CF-6: check that the feed turns the scanned rows of each retained snapshot into the rows of the next, and return
    its events.

    Raises AssertionError if it does not, and if the count of events differs from the number of events read.
    """
    names = [field.name for field in view.schema.fields]
    begin = oldest_beginning(view)
    feed = Changes(change_range(view, begin), columns=[*names, *EVENT_COLUMNS])
    events = feed.to_arrow()
    assert feed.count() == events.num_rows, f"{feed.count()} events counted, {events.num_rows} read"
    line = list(ancestors(view.metadata, view.snapshot))[::-1]
    rows = {
        snapshot.snapshot_id: fingerprint(Scan(replace(view, snapshot=snapshot)).to_arrow().to_pylist(), names)
        for snapshot in line
    }
    current = rows[begin] if begin is not None else Counter()
    after = dict(replayed(current, events, names))
    assert set(after) <= set(rows) - {begin}
    for snapshot in line:
        current = after.get(snapshot.snapshot_id, current)
        want = rows[snapshot.snapshot_id]
        assert +current == want, f"{snapshot.snapshot_id}: missing {want - current}, too many {current - want}"
    return events


def replayed(
    rows: Counter[tuple[Any, ...]], events: pa.Table, columns: Sequence[str]
) -> Iterator[tuple[int, Counter[tuple[Any, ...]]]]:
    """The rows after each snapshot that has events, with its id.

    Raises AssertionError if a deleted row does not exist, and if snapshots or changes are not in the order of CF-6.
    """
    seen: list[int] = []
    current = Counter(rows)
    for event in events.to_pylist():
        snapshot_id = event["_commit_snapshot_id"]
        if not seen or seen[-1] != snapshot_id:
            if seen:
                yield seen[-1], Counter(current)
            assert snapshot_id not in seen, f"the events of snapshot {snapshot_id} are not together"
            seen.append(snapshot_id)
            has_inserts = False
        ((row, _),) = fingerprint([event], columns).items()
        if event["_change_type"] == "insert":
            has_inserts = True
            current[row] += 1
            continue
        assert event["_change_type"] == "delete", event
        assert not has_inserts, f"snapshot {snapshot_id} deletes {row} after an insert"
        assert current[row] > 0, f"snapshot {snapshot_id} deletes {row}, which is not there"
        current[row] -= 1
    if seen:
        yield seen[-1], current
