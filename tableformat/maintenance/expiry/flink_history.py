"""What expiry does to a job of Flink that writes to the table.

Iceberg's sink (1.11) commits deletion vectors only where it can follow the branch's snapshots back to the first one.
Once one is expired, by whomever, it fails at its next checkpoint with deletion vectors, and at every restart.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import ForeignWriterWarning
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id


def warn_where_flink_stops(name: str, metadata: TableMetadata, expired: Collection[int]) -> None:
    """LK-13: tell of the first expiry from the history of a branch in which a job of Flink has written vectors."""
    if metadata.format_version < 3 or not expired:
        return
    for branch, ref in metadata.refs.items():
        if ref.snapshot_ref_type is not SnapshotRefType.BRANCH:
            continue
        history = tuple(ancestors(metadata, snapshot_by_id(metadata, ref.snapshot_id)))
        is_whole = bool(history) and history[-1].parent_snapshot_id is None
        if is_whole and any(map(_is_of_flink, history)) and any(each.snapshot_id in expired for each in history):
            warnings.warn(
                f"{name} (branch {branch}): a job of Flink that upserts into this table of version 3 fails at a "
                "checkpoint after this expiry (Iceberg 1.11: cannot determine history between starting snapshot null "
                "and the last known ancestor). Keep the snapshots while the job runs, or let it write to a table of "
                "version 2.",
                ForeignWriterWarning,
                stacklevel=2,
            )


def _is_of_flink(snapshot: Snapshot) -> bool:
    """Of a job that has written deletion vectors."""
    summary = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    return "added-dvs" in summary and summary.get("engine-name", "flink") == "flink" and "flink.job-id" in summary
