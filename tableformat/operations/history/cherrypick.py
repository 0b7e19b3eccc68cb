"""Cherry-picking: applies the change of a snapshot outside the history of a branch to that branch (SP-24).

staged     P ---- s (appended)              main   P ---- m ---- s' (the same files, with the number of s')
           P ---- s (anything)              main   P ---- s          no commit in between: the branch moves
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import RemoveSnapshotRefUpdate

from tableformat.commit.change import TableChange
from tableformat.commit.committed_once import check_committed_once, is_cut_after
from tableformat.commit.coverage_change import coverage_for
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.table_diff import diff_snapshots
from tableformat.commit.transaction import commit_change
from tableformat.errors import InvalidArgumentError, SnapshotNotFoundError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import ancestors, head_view, view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.history.held_checks import checks_are, refuse_rows_that_do_not_fit
from tableformat.operations.history.older_files import met_by_deletes
from tableformat.operations.history.references import move_to_child, new_tag
from tableformat.operations.options import CommitOptions

WAP_ID: Final = "wap.id"
"""Summary key of a staged snapshot: the name under which it will be published."""
_PUBLISHED_WAP_ID: Final = "published-wap-id"
_SOURCE: Final = "source-snapshot-id"


def staged_snapshot(iceberg: IcebergTable, wap_id: str) -> int:
    """The id of the snapshot that was staged under this name. Raises SnapshotNotFoundError if no snapshot has the name,
    InvalidArgumentError if several have it."""
    staged = [each.snapshot_id for each in iceberg.metadata.snapshots if _summary(each).get(WAP_ID) == wap_id]
    if not staged:
        raise SnapshotNotFoundError(f"{'.'.join(iceberg.name())}: no snapshot was staged with the WAP id {wap_id!r}.")
    if len(staged) > 1:
        raise InvalidArgumentError(
            f"{'.'.join(iceberg.name())}: {len(staged)} snapshots were staged with the WAP id {wap_id!r}: "
            f"{', '.join(map(str, staged))}. Publish them one by one with cherrypick_snapshot, in their order."
        )
    return staged[0]


def cherrypick(iceberg: IcebergTable, branch: str, snapshot_id: int) -> int:
    """SP-24: publish the snapshot to the branch and move the handle. Returns the new head of the branch.

    Raises SnapshotNotFoundError for an id that is not in the table. Raises InvalidArgumentError for a snapshot that is
    already in the branch, AlreadyCommittedError if only its files show this (CP-23). Raises InvalidArgumentError if
    nothing can show it (CP-33). Raises InvalidArgumentError, too, if the snapshot is not an append and its parent is
    not the current head of the branch.
    """
    move_to_newest(iceberg)
    picked = snapshot_by_id(iceberg.metadata, snapshot_id)
    if picked is None:
        raise SnapshotNotFoundError(f"{'.'.join(iceberg.name())} has no snapshot {snapshot_id}; it may have expired.")
    head = head_view(iceberg.metadata, iceberg.io, branch)
    _check_not_there(picked, head, branch)
    if picked.parent_snapshot_id == (None if head.snapshot is None else head.snapshot.snapshot_id):
        made_in = view_at(iceberg.metadata, iceberg.io, snapshot_id)
        added = diff_snapshots(iceberg.io, iceberg.metadata, head.snapshot, picked).added_data_files
        _hold_rows(made_in, added, iceberg.metadata, ".".join(iceberg.name()))
        move_to_child(iceberg, branch, picked, checks_are(iceberg.metadata, iceberg.catalog))
        return snapshot_id
    files = _appended(iceberg, picked, branch)
    told = {_SOURCE: str(snapshot_id)}
    if (wap_id := _summary(picked).get(WAP_ID)) is not None:
        told[_PUBLISHED_WAP_ID] = wap_id
    planned = _Picked(picked, branch, files, ".".join(iceberg.name()), is_named=False)
    outcome = commit_change(iceberg, planned, ref=branch, snapshot_properties=told)
    outcome.move(iceberg)
    assert outcome.snapshot_id is not None, "an append without files cannot be cherry-picked and was rejected"
    return outcome.snapshot_id


def publish_append(iceberg: IcebergTable, branch: str, snapshot_id: int, options: CommitOptions) -> None:
    """RP-22: add the files of a staged append as the batch of the options, once (CP-14); the handle moves.

    Raises SnapshotNotFoundError for an expired snapshot.
    """
    move_to_newest(iceberg)
    picked = snapshot_by_id(iceberg.metadata, snapshot_id)
    if picked is None:
        raise SnapshotNotFoundError(f"{'.'.join(iceberg.name())} has no snapshot {snapshot_id}; it may have expired.")
    outcome = commit_change(
        iceberg,
        _Picked(picked, branch, _appended(iceberg, picked, branch), ".".join(iceberg.name()), is_named=True),
        ref=branch,
        application_id=options.application_id,
        batch_id=options.batch_id,
        snapshot_properties={**(options.snapshot_properties or {}), _SOURCE: str(snapshot_id)},
    )
    outcome.move(iceberg)


@dataclass(frozen=True, slots=True)
class _Picked(PlannedChange):
    """The files of an append, committed once on any head of the branch."""

    picked: Snapshot
    branch: str
    files: tuple[DataFile, ...]
    table: str
    is_named: bool
    """Whether the commit is a batch of its writer, so that CP-14 shows whether it was made."""

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        """The change for this head.

        RP-6: the rows were checked against the range partitions at the time of staging, so now the bounds of the files
        decide. CK-10: the rows were checked against the constraints at that time, so changed constraints are checked.

        CP-23: if the history in which the snapshot was published has expired, its files show whether it was. CP-33:
        files that were compacted, too, cannot show it.
        """
        del attempt
        _check_not_there(self.picked, head, self.branch)
        made_in = view_at(head.metadata, head.io, self.picked.snapshot_id)
        _hold_rows(made_in, self.files, head.metadata, self.table)
        new = tuple(
            replace(data, sequence_number=None, file_sequence_number=None, first_row_id=None) for data in self.files
        )
        paths = frozenset(data.file_path for data in new)
        coverage = coverage_for(new, head.metadata, held_against=None, unchecked=paths, table=self.table)
        change = TableChange(
            operation=Operation.APPEND,
            added_data_files=new,
            adopted_paths=paths,
            adopted_since=self.picked.sequence_number or 0,
            coverage=coverage,
        )
        if not self.is_named:
            check_committed_once(change, head, f"{self.table} (branch {self.branch})")
            _check_history_tells(self.picked, head, self.branch)
        return change

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """CP-62: a tag at the picked snapshot, which is created and removed in the same commit. If the snapshot has
        expired since the head was read, its files are being removed, and the catalog refuses the tag."""
        del head
        name = f"cherrypick-{snapshot.snapshot_id}"
        tags, requirements = new_tag(name, self.picked.snapshot_id)
        return (*tags, RemoveSnapshotRefUpdate.model_validate({"ref-name": name})), requirements


def _appended(iceberg: IcebergTable, picked: Snapshot, branch: str) -> tuple[DataFile, ...]:
    """The data files that the snapshot added. Raises InvalidArgumentError for a snapshot that did more."""
    metadata, subject = iceberg.metadata, f"snapshot {picked.snapshot_id} cannot be cherry-picked to {branch!r}"
    if picked.summary is None or picked.summary.operation is not Operation.APPEND:
        raise InvalidArgumentError(
            f"{subject}: it deletes or replaces rows of its parent, {picked.parent_snapshot_id}, which is no longer "
            "the head of the branch. Nothing was changed. Run its statement again on the branch."
        )
    parent_id = picked.parent_snapshot_id
    parent = None if parent_id is None else snapshot_by_id(metadata, parent_id)
    if parent is None and parent_id is not None:
        raise InvalidArgumentError(
            f"{subject}: its parent {parent_id} has expired, so the files that it added are unknown."
        )
    added = diff_snapshots(iceberg.io, metadata, parent, picked).added_data_files
    if not added:
        raise InvalidArgumentError(f"{subject}: it added no file.")
    if met := met_by_deletes(view_at(metadata, iceberg.io, picked.snapshot_id), added):
        raise InvalidArgumentError(
            f"{subject}: it restored or carried {len(met)} data files with older sequence numbers, such as "
            f"{met[0].file_path}, whose rows are partly deleted. As new files they would not be affected by those "
            f"deletes. Nothing was changed. Append the rows of the snapshot: scan(snapshot_id={picked.snapshot_id})."
        )
    return tuple(added)


def _hold_rows(made_in: SnapshotView, added: Sequence[DataFile], metadata: TableMetadata, table: str) -> None:
    assert made_in.snapshot is not None, "a view at a snapshot has one"
    refuse_rows_that_do_not_fit(made_in, added, metadata, since=made_in.snapshot, table=table)


def _check_not_there(picked: Snapshot, head: SnapshotView, branch: str) -> None:
    """Raise InvalidArgumentError if the branch already has the snapshot or its WAP id; each is published to a branch
    once."""
    wap_id = _summary(picked).get(WAP_ID)
    for snapshot in ancestors(head.metadata, head.snapshot):
        summary = _summary(snapshot)
        if str(picked.snapshot_id) in (str(snapshot.snapshot_id), summary.get(_SOURCE)):
            by = "" if snapshot.snapshot_id == picked.snapshot_id else f", by snapshot {snapshot.snapshot_id}"
            raise InvalidArgumentError(f"snapshot {picked.snapshot_id} is already in the history of {branch!r}{by}.")
        if wap_id is not None and wap_id in (summary.get(WAP_ID), summary.get(_PUBLISHED_WAP_ID)):
            raise InvalidArgumentError(
                f"the WAP id {wap_id!r} was already published to {branch!r}, by snapshot {snapshot.snapshot_id}."
            )


def _check_history_tells(picked: Snapshot, head: SnapshotView, branch: str) -> None:
    """CP-33: every snapshot of the branch since the picked one is retained, so no snapshot that published it has
    expired."""
    if is_cut_after(head, picked.sequence_number or 0):
        raise InvalidArgumentError(
            f"snapshot {picked.snapshot_id} cannot be cherry-picked to {branch!r}: later snapshots of the branch "
            "have expired, so it is unknown whether one of them published it. Nothing was changed. Check which of "
            "its rows the branch has, and append the others."
        )


def _summary(snapshot: Snapshot) -> dict[str, str]:
    return {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)
