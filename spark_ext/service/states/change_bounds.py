"""`FROM VERSION a TO VERSION b`, `FROM TIMESTAMP ...`: resolve such bounds to snapshots.

A version is the sequence number of a snapshot (its `_commit_version`), its id, or the name of a tag or branch, as in
VERSION AS OF. Numbers and times need not belong to a snapshot of the branch: the range contains the snapshots in
between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError, nearest_hint
from tableformat.metadata.snapshot_choice import ancestors

RANGE_OPTIONS: Final = (
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "startingBoundInclusive",
    "endingBoundInclusive",
    "deduplicationMode",
    "computeUpdates",
)
"""Options of a change feed that Spark itself reads."""
ChangeBounds: TypeAlias = Mapping[str, Any]
"""`start` and `end` are null or a bound: a `version` as text or a time as `micros`, and whether it is `inclusive`."""


def last_snapshot(metadata: TableMetadata, head: Snapshot | None, bounds: ChangeBounds) -> Snapshot | None:
    """CF-1: the last snapshot of the range."""
    bound = bounds["end"]
    if bound is None:
        return head
    line = list(ancestors(metadata, head))
    index = _place(metadata, line, bound, is_in=bound["inclusive"])
    if index == len(line):
        raise SnapshotNotFoundError(f"the changes end before the oldest retained snapshot{_oldest(line)}.")
    return line[index]


def snapshot_before(metadata: TableMetadata, last: Snapshot | None, bounds: ChangeBounds) -> int | None:
    """CF-1: the snapshot after which the range that ends with `last` begins; None for the table's beginning."""
    line = list(ancestors(metadata, last))
    if bounds["start"] is None or not line:
        return None
    index = _place(metadata, line, bounds["start"], is_in=not bounds["start"]["inclusive"])
    return line[index].snapshot_id if index < len(line) else line[-1].parent_snapshot_id


def _place(metadata: TableMetadata, line: Sequence[Snapshot], bound: Mapping[str, Any], *, is_in: bool) -> int:
    """SS-8: the index of the newest snapshot before the bound in the line, which is sorted newest first. With `is_in`,
    a snapshot at the bound counts too."""
    if "micros" in bound:
        return _first([snapshot.timestamp_ms * 1000 for snapshot in line], bound["micros"], is_in=is_in)
    version: str = bound["version"]
    number = int(version) if version.isdecimal() else None
    ref = metadata.refs.get(version)
    snapshot_id = ref.snapshot_id if ref is not None else number
    ids = [snapshot.snapshot_id for snapshot in line]
    if snapshot_id in ids:
        return ids.index(snapshot_id) + (0 if is_in else 1)
    if number is None and ref is None:
        hint = nearest_hint(version, metadata.refs)
        raise SnapshotNotFoundError(f"no version {version!r}: this tag or branch does not exist.{hint}")
    if snapshot_id is None or metadata.snapshot_by_id(snapshot_id) is not None:
        raise InvalidArgumentError(
            f"version {version!r} is snapshot {snapshot_id}, which is not an ancestor of the last snapshot of the "
            "changes: it is newer, was rolled back, or belongs to another branch."
        )
    numbers = [snapshot.sequence_number or 0 for snapshot in line]
    assert number is not None, "a ref names a retained snapshot"
    if not numbers or number > numbers[0]:
        newest = f"is version {numbers[0]}, snapshot {ids[0]}" if line else "does not exist"
        raise SnapshotNotFoundError(f"no version {number} in the changes: the last snapshot of their range {newest}.")
    return _first(numbers, number, is_in=is_in)


def _first(falling: Sequence[int], bound: int, *, is_in: bool) -> int:
    return next(
        (index for index, each in enumerate(falling) if each < bound or (is_in and each == bound)), len(falling)
    )


def _oldest(line: Sequence[Snapshot]) -> str:
    return f", version {line[-1].sequence_number}, snapshot {line[-1].snapshot_id}" if line else ": the table has none"
