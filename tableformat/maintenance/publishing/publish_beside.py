"""Creates a separate snapshot for the target, if writers of the branch commit first again and again (LK-16).

    branch   p -- w1 ---- c -- w2      w: commits of a writer; c: p's deletes converted, on the head at that time
              \
    target     s                       p's deletes converted, and nothing else

`c` still has the keyed deletes of `w1`, so the target cannot move there. Their conversion takes longer than the time
between commits of the writer. `s` consists of the delete files of `c` and the manifests of `p`, so a lost race costs
only one manifest list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate, TableUpdate

from tableformat.commit.change import TableChange, file_keys
from tableformat.commit.metadata_commit import assert_ref
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.publish_target import PUBLISHED_NUMBER, carried_tag, publishing_tag
from tableformat.commit.snapshot_summary import ROWS_UNCHANGED
from tableformat.commit.table_diff import lineage, live_files, manifests_of_snapshot
from tableformat.commit.transaction import commit_change
from tableformat.errors import CommitConflictError
from tableformat.maintenance.publishing.publish_scope import tag_update
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB

_PINNED_MS: Final = 24 * 60 * 60 * 1000
"""The tag of a process that was killed is removed by the next publish, or by an expiry after a day."""


@dataclass(frozen=True, slots=True)
class ConvertedSnapshot:
    """A snapshot of the branch, and the change that converts its keyed deletes."""

    view: SnapshotView
    """The view with the metadata of the plan: at that time, the branch had everything from the target (MT-31)."""
    change: TableChange
    """The change that was committed to the branch, possibly on a later head. Empty if the snapshot has no keyed delete.
    """

    @property
    def snapshot(self) -> Snapshot:
        assert self.view.snapshot is not None, "a published branch has a snapshot"
        return self.view.snapshot


def pin_planned(planned: SnapshotView, branch: str) -> SetSnapshotRefUpdate:
    """LK-16: a tag that keeps the snapshot and its manifests from expiry, until the target has a snapshot made from
    them."""
    assert planned.snapshot is not None, "a published branch has a snapshot"
    return tag_update(publishing_tag(branch), planned.snapshot.snapshot_id, _PINNED_MS)


def unpin(metadata: TableMetadata, branch: str) -> tuple[TableUpdate, ...]:
    """Removes the tag if it exists."""
    name = publishing_tag(branch)
    return (RemoveSnapshotRefUpdate.model_validate({"ref-name": name}),) if name in metadata.refs else ()


def publish_beside(iceberg: IcebergTable, branch: str, target: str, converted: ConvertedSnapshot) -> int:
    """LK-16: commit the converted snapshot to the target alone, and move the handle. Returns the new snapshot id.

    Raises CommitConflictError if the target or the branch has changed so that another round is needed.
    """
    outcome = commit_change(
        iceberg,
        _Beside(branch, target, converted),
        ref=target,
        snapshot_properties={
            ROWS_UNCHANGED: "true",
            JOB: "publish",
            PUBLISHED_NUMBER: str(converted.view.sequence_number),
        },
    )
    outcome.move(iceberg)
    assert outcome.snapshot_id is not None, "the change is not empty"
    return outcome.snapshot_id


class _Beside(PlannedChange):
    """The change of a conversion on its planned snapshot, for the target."""

    def __init__(self, branch: str, target: str, converted: ConvertedSnapshot) -> None:
        self._branch = branch
        self._target = target
        self._converted = converted

    def base_on(self, head: SnapshotView) -> SnapshotView:
        source = head_view(head.metadata, head.io, self._branch)
        snapshot = self._converted.snapshot
        if lineage(head.metadata, source.snapshot, snapshot.snapshot_id) is None:
            raise CommitConflictError(f"{self._branch!r} was moved and {snapshot.snapshot_id} is not in its history.")
        planned_head = self._converted.view.metadata.refs[self._target].snapshot_id
        if head.metadata.refs[self._target].snapshot_id != planned_head:
            raise CommitConflictError(f"{self._target!r} got commits that {snapshot.snapshot_id} lacks.")
        self._check_deletes_are_live(source)
        return SnapshotView(head.metadata, head.io, snapshot, head.schema)

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del head, attempt
        return self._converted.change

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """The requirements include the branch, because expiry never removes files that its head lists."""
        refs = head.metadata.refs
        updates = (tag_update(carried_tag(self._branch), snapshot.snapshot_id), *unpin(head.metadata, self._branch))
        return updates, (
            assert_ref(self._branch, refs[self._branch].snapshot_id),
            assert_ref(publishing_tag(self._branch), self._converted.snapshot.snapshot_id),
        )

    def _check_deletes_are_live(self, source: SnapshotView) -> None:
        manifests = manifests_of_snapshot(source.io, source.snapshot)
        live = file_keys(live_files(source.io, source.metadata, manifests, ManifestContent.DELETES))
        if not file_keys(self._converted.change.added_delete_files) <= live:
            raise CommitConflictError(
                f"delete files of the conversion were removed from {self._branch!r}, and may be removed from storage."
            )
