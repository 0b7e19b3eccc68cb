"""Commits of the publish target that the source branch lacks (MT-30, MT-31).

    target   P ---- m1 ---- m2            others append
              \
    branch     b1 ---- b2 ---- b3         deletes by key, upserts, conversions

The tag `carried.<branch>` marks the newest snapshot of the target whose files the branch has: P, then m2. Without the
tag it is the newest common ancestor of both branches. Newer files of the target belong to the branch with their
sequence numbers, so a delete of the branch may reach their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetSnapshotRefUpdate, TableRequirement, TableUpdate

from tableformat.commit.metadata_commit import assert_ref, commit_metadata
from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.commit.publish_target import carried_tag, carried_until, publish_bases, publish_target_of
from tableformat.commit.table_diff import TableDiff, diff_snapshots, live_files, manifests_of_snapshot
from tableformat.errors import PublishRefusedError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.snapshot_index import snapshot_by_id

_FOR_EVER_MS = 2**62
"""A maximum age of a ref that never expires, regardless of the table's default."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """The target of a branch, in one version of the table's metadata."""

    branch: str
    name: str
    head: Snapshot
    appended: tuple[DataFile, ...]
    """Data files of the target that the branch does not have yet, with their sequence numbers."""

    def unmoved(self) -> TableRequirement:
        """MT-31: the commit succeeds only if the target still has the same head."""
        return assert_ref(self.name, self.head.snapshot_id)

    def carried(self, snapshot_id: int) -> SetSnapshotRefUpdate:
        """Moves the tag to the snapshot of the target up to which the branch has everything."""
        return tag_update(carried_tag(self.branch), snapshot_id)


def tag_publish_bases(iceberg: IcebergTable) -> None:
    """MT-31: create the tag of every branch with a publish target. The tag keeps the snapshot from expiry, by this or
    another program, because the new files of the target are computed from it. Commits nothing if all tags exist."""

    def prepare(table: IcebergTable) -> tuple[Sequence[TableUpdate], Sequence[TableRequirement]]:
        metadata = table.metadata
        updates: list[TableUpdate] = []
        requirements: list[TableRequirement] = []
        for branch, snapshot_id in publish_bases(metadata).items():
            target = publish_target_of(metadata, branch)
            if carried_tag(branch) in metadata.refs or target is None:
                continue
            updates.append(tag_update(carried_tag(branch), snapshot_id))
            requirements += [assert_ref(name, metadata.refs[name].snapshot_id) for name in (branch, target)]
            requirements.append(assert_ref(carried_tag(branch), None))
        return updates, requirements

    commit_metadata(iceberg, prepare)


def target_state(metadata: TableMetadata, io: FileIO, branch: str, target: str | None = None) -> TargetState | None:
    """MT-31: the target of a branch, and the files that the branch lacks; None for a branch without a target.

    `target` overrides the table's property. Raises PublishRefusedError if the target has changes that cannot be
    carried, or if its changes are unknown.
    """
    name = publish_target_of(metadata, branch) if target is None else target
    if name is None:
        return None
    head = _head(metadata, name, branch, name)
    source = _head(metadata, branch, branch, name)
    since = carried_until(metadata, branch, name)
    if since is None:
        raise PublishRefusedError(
            f"branch {branch!r} cannot be published to {name!r}: their common snapshot has expired, so later changes "
            f"of {name!r} are unknown. Nothing was moved. Start a new branch at {name!r}."
        )
    diff = diff_snapshots(io, metadata, since, head)
    _check_only_appends(diff, branch, name, since)
    present = _live_paths(metadata, io, source) if diff.added_data_files else frozenset()
    appended = tuple(file for file in diff.added_data_files if file.file_path not in present)
    return TargetState(branch, name, head, appended)


def asserting_target(state: TargetState | None) -> UpdatesAndRequirements:
    """The requirements that a job on the branch adds to its commit."""
    return (), () if state is None else (state.unmoved(),)


def tag_update(name: str, snapshot_id: int, max_age_ms: int = _FOR_EVER_MS) -> SetSnapshotRefUpdate:
    """Creates a tag at a snapshot, or moves it there."""
    return SetSnapshotRefUpdate.model_validate(
        {
            "ref-name": name,
            "type": SnapshotRefType.TAG,
            "snapshot-id": snapshot_id,
            "max-ref-age-ms": max_age_ms,
        }
    )


def _head(metadata: TableMetadata, name: str, branch: str, target: str) -> Snapshot:
    """The head of `name`, which is the branch or the target."""
    ref = metadata.refs.get(name)
    snapshot = snapshot_by_id(metadata, ref.snapshot_id) if ref is not None else None
    if ref is None or snapshot is None or ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise PublishRefusedError(
            f"branch {branch!r} cannot be published to {target!r}: branch {name!r} does not exist or has no snapshot."
        )
    return snapshot


def _live_paths(metadata: TableMetadata, io: FileIO, snapshot: Snapshot) -> frozenset[str]:
    manifests = manifests_of_snapshot(io, snapshot)
    return frozenset(file.file_path for file in live_files(io, metadata, manifests, ManifestContent.DATA))


def _check_only_appends(diff: TableDiff, branch: str, target: str, since: Snapshot) -> None:
    """MT-32: raises an error unless the target has only appends. Rows that were deleted or rewritten on the target
    cannot be carried."""
    found = {
        "data files were removed": diff.removed_data_files,
        "delete files were added": diff.added_delete_files,
        "delete files were removed": diff.removed_delete_files,
    }
    met = [
        f"{len(files)} {what} ({files[0].file_path}{', ...' if len(files) > 1 else ''})"
        for what, files in found.items()
        if files
    ]
    if met:
        raise PublishRefusedError(
            f"branch {branch!r} cannot be published to {target!r}: since snapshot {since.snapshot_id}, "
            f"{'; '.join(met)} on {target!r}, but only appends can be carried over. Nothing was moved. Either roll "
            f"{target!r} back to that snapshot and make the changes on {branch!r}, or start a new branch at "
            f"{target!r}."
        )
