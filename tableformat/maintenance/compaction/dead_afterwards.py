"""Drops the delete files that match no row after a compaction (MT-95)."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.change import file_key
from tableformat.commit.publish_target import published_to
from tableformat.errors import CommitConflictError, PublishRefusedError
from tableformat.maintenance.compaction.compaction_plan import CompactionPlan
from tableformat.maintenance.delete_files.dead_deletes import dead_deletes
from tableformat.maintenance.delete_files.drop_dead_deletes import drop_dead_deletes
from tableformat.maintenance.running.head_jobs import head_state
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DroppedDeletes:
    """The delete files that were removed from the branch after a compaction."""

    kinds: Counter[DeleteKind] = field(default_factory=Counter)
    """The number of removed files by kind."""
    snapshot_id: int | None = None
    """The snapshot without them; None if nothing was dropped."""
    not_dropped_because: str = ""
    """The reason why dead delete files were left in the branch; empty if none were left."""


def drop_dead_afterwards(iceberg: IcebergTable, branch: str) -> DroppedDeletes:
    """MT-95: drop the dead delete files of the branch's head in a separate commit, and move the handle to it.

    If that is currently not possible, the compaction is complete nevertheless, and the result gives the reason why they
    stay.
    """
    if not _may_have_dead_deletes(head_view(iceberg.metadata, iceberg.io, branch), branch):
        return DroppedDeletes()
    try:
        dropped = drop_dead_deletes(iceberg, branch)
    except (CommitConflictError, PublishRefusedError) as error:
        logger.warning("compacted; delete files without matching rows remain in branch %s: %s", branch, error)
        return DroppedDeletes(not_dropped_because=str(error))
    kinds = Counter(
        {
            DeleteKind.POSITION: dropped.removed_position_delete_files_count,
            DeleteKind.DELETION_VECTOR: dropped.removed_deletion_vectors_count,
            DeleteKind.EQUALITY: dropped.removed_equality_delete_files_count,
            DeleteKind.RANGE: dropped.removed_range_delete_files_count,
        }
    )
    return DroppedDeletes(kinds, dropped.snapshot_id if dropped.proofs else None)


def removed_by(plan: CompactionPlan, view: SnapshotView, branch: str, *, with_dead: bool) -> DroppedDeletes:
    """The delete files that a planned compaction would remove: the row deletes of its groups and, with `with_dead`, the
    delete files that are dead afterwards.

    New files carry the planned sequence number (CP-7), so no keyed delete of the planned snapshot reaches them. No row
    delete names them either. Only the remaining data files matter.
    """
    removed: list[DeleteFile] = [delete for group in plan.groups for delete in group.row_deletes]
    if not with_dead or not _may_have_dead_deletes(view, branch):
        return DroppedDeletes(_kinds(removed))
    try:
        state = head_state(view, branch)
    except PublishRefusedError as error:
        return DroppedDeletes(_kinds(removed), not_dropped_because=str(error))
    rewritten = {data.file_path for group in plan.groups for data in group.data_files}
    staying = [data for data in state.files_in_reach if data.file_path not in rewritten]
    dead = dead_deletes(view, staying, state.delete_files, state.context)
    return DroppedDeletes(_kinds([*removed, *(each.delete for each in dead)]))


def _may_have_dead_deletes(view: SnapshotView, branch: str) -> bool:
    """Whether the head has delete files. MT-30: the delete files of a publish target are dropped on its source
    branch."""
    if published_to(view.metadata, branch):
        return False
    return any(each.content is ManifestContent.DELETES and each.has_live_files for each in manifests_of(view))


def _kinds(deletes: Iterable[DeleteFile]) -> Counter[DeleteKind]:
    return Counter(delete.kind for delete in {file_key(delete): delete for delete in deletes}.values())
