"""A moving window: steps ahead of the current time are added and old partitions are dropped, in one commit (RP-11)."""

from __future__ import annotations

from tableformat.operations.ranges.alter import Altered
from tableformat.range_partitions.alteration import added, dropped
from tableformat.range_partitions.defined import DefinedPartitions
from tableformat.range_partitions.window import old_partitions, steps_ahead


def advanced(defined: DefinedPartitions, now: int) -> Altered:
    """RP-11: the range partitions after the window has moved to `now`."""
    comes = steps_ahead(defined, now)
    goes = old_partitions(defined, now)
    after = dropped(defined, goes) if goes else defined
    after = added(after, comes) if comes else after
    return Altered(after, tuple(comes), tuple(goes))
