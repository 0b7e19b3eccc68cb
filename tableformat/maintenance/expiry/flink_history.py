"""The effect of expiry on a Flink job that writes to the table.

Iceberg's Flink sink (1.11) commits deletion vectors only if it can trace the branch's snapshots back to the first one.
Once any of these snapshots is expired, the sink fails at its next checkpoint with deletion vectors, and at every
restart.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from itertools import zip_longest

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.writer_progress import FLINK
from tableformat.errors import ForeignWriterWarning
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id


def warn_where_flink_stops(name: str, metadata: TableMetadata, expired: Collection[int]) -> None:
    """LK-13: warn of the first expiry from the history of a branch in which a Flink job has written deletion
    vectors."""
    if metadata.format_version < 3 or not expired:
        return
    for branch, ref in metadata.refs.items():
        if ref.snapshot_ref_type is not SnapshotRefType.BRANCH:
            continue
        history = tuple(ancestors(metadata, snapshot_by_id(metadata, ref.snapshot_id)))
        is_whole = bool(history) and history[-1].parent_snapshot_id is None
        has_vectors = any(_has_vectors_of_flink(*pair) for pair in zip_longest(history, history[1:]))
        if is_whole and has_vectors and any(each.snapshot_id in expired for each in history):
            warnings.warn(
                f"{name} (branch {branch}): a Flink job that upserts into this table of version 3 fails at a "
                "checkpoint after this expiry (Iceberg 1.11: cannot determine history between starting snapshot null "
                "and the last known ancestor). Keep the snapshots while the job runs, or use a table of version 2 "
                "for the job.",
                ForeignWriterWarning,
                stacklevel=2,
            )


def _has_vectors_of_flink(snapshot: Snapshot, parent: Snapshot | None) -> bool:
    """Whether a Flink job committed deletion vectors in the snapshot. A snapshot that only repeats the parent's
    progress was written by this library (LK-12)."""
    summary = _summary(snapshot)
    stated, known = ([_summary(each).get(name) for name in FLINK.names] for each in (snapshot, parent))
    is_of_flink = summary.get("engine-name", "flink") == "flink" and "flink.job-id" in summary and stated != known
    return is_of_flink and "added-dvs" in summary


def _summary(snapshot: Snapshot | None) -> Mapping[str, str]:
    return {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
