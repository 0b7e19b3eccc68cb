"""Dropped range partitions in the change feed: as rows, omitted, or as separate events (RP-25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa

from tableformat.changes.range import ChangeRange
from tableformat.operations.ranges.drops import RangeDrop, drop_of
from tableformat.range_partitions.cuts import range_text
from tableformat.range_partitions.listing import range_ends

RANGE_DROPS: Final = ("rows", "skip", "event")


def without_drops(changes: ChangeRange) -> ChangeRange:
    """RP-25: the range without the snapshots that dropped ranges. Their rows do not count as deletes."""
    kept = tuple(each for each in changes.snapshots if drop_of(each, changes.view.metadata) is None)
    return replace(changes, snapshots=kept)


def events_of(drops: Sequence[RangeDrop]) -> pa.Table:
    """One row a range, oldest snapshot first. `lower` and `upper` have the form of `TableRangePartitions.list`."""
    found = [(drop, each) for drop in drops for each in drop.ranges]
    moments = [datetime.fromtimestamp(drop.snapshot.timestamp_ms / 1000, UTC) for drop, _ in found]
    # If range partitions were removed and then defined on other columns, ends have different types. Only text is
    # returned.
    key = found[0][0].key if found and all(drop.key == found[0][0].key for drop, _ in found) else None
    cuts = [(each.lower, each.upper) for _, each in found]
    lower, upper = (
        pa.nulls(len(found)) if key is None else range_ends(key, [pair[side] for pair in cuts]) for side in (0, 1)
    )
    return pa.table(
        {
            "event": pa.array(["retire" if drop.tag else "drop" for drop, _ in found], pa.string()),
            "range": pa.array([range_text(drop.key, each) for drop, each in found], pa.string()),
            "lower": lower,
            "upper": upper,
            "tag": pa.array([drop.tag for drop, _ in found], pa.string()),
            "_commit_version": pa.array([drop.snapshot.sequence_number or 0 for drop, _ in found], pa.int64()),
            "_commit_timestamp": pa.array(moments, pa.timestamp("us", "UTC")),
            "_commit_snapshot_id": pa.array([drop.snapshot.snapshot_id for drop, _ in found], pa.int64()),
        }
    )
