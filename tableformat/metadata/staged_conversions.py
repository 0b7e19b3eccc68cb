"""Staged conversions among the snapshots of a table: snapshots that other engines read in place of their source.

A server adds them (specs/serve.md). No ref points to one until another engine commits on top of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id

CONVERTED_FROM: Final = "tableformat.converted-from"
"""Summary: the id of the snapshot whose conversion this one is (SV-2)."""
STAGED_AT_MS: Final = "tableformat.staged-at-ms"
"""Summary: when the conversion was staged, in milliseconds since 1970. Its snapshot has the time of its source (SV-3).
"""


def staged_conversions(metadata: TableMetadata) -> dict[int, Snapshot]:
    """The newest staged conversion of each snapshot, by the id of its source."""
    found: dict[int, Snapshot] = {}
    for snapshot in metadata.snapshots:
        if (source_id := source_of(snapshot)) is not None:
            found[source_id] = snapshot
    return found


def source_of(snapshot: Snapshot) -> int | None:
    """The id of the snapshot that was converted; None if the snapshot is not a staged conversion."""
    text = _summary(snapshot).get(CONVERTED_FROM, "")
    return int(text) if text.isdecimal() else None


def conversions_out_of_use(metadata: TableMetadata, now_ms: int, max_age_ms: int) -> frozenset[int]:
    """SV-8: the ids of staged conversions that no reader needs.

    A conversion is in use while its source is the head of a ref. Afterwards it stays for `max_age_ms`, because a reader
    may have begun to read it. A conversion that a ref reaches is part of the history and is never returned.
    """
    heads_of_refs = [snapshot_by_id(metadata, ref.snapshot_id) for ref in metadata.refs.values()]
    reached = {snapshot.snapshot_id for head in heads_of_refs for snapshot in ancestors(metadata, head)}
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    children = _first_child_times(metadata.snapshots)
    unused = set()
    for snapshot in metadata.snapshots:
        source_id = source_of(snapshot)
        if source_id is None or snapshot.snapshot_id in reached or source_id in heads:
            continue
        staged_at_ms = _summary(snapshot).get(STAGED_AT_MS, "")
        last_used_ms = max(int(staged_at_ms) if staged_at_ms.isdecimal() else 0, children.get(source_id, 0))
        if last_used_ms < now_ms - max_age_ms:
            unused.add(snapshot.snapshot_id)
    return frozenset(unused)


def _first_child_times(snapshots: Sequence[Snapshot]) -> dict[int, int]:
    """When each snapshot got its first child that is not a staged conversion of it, in milliseconds since 1970."""
    times: dict[int, int] = {}
    for snapshot in snapshots:
        parent_id = snapshot.parent_snapshot_id
        if parent_id is not None and source_of(snapshot) != parent_id:
            times[parent_id] = min(snapshot.timestamp_ms, times.get(parent_id, snapshot.timestamp_ms))
    return times


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}
