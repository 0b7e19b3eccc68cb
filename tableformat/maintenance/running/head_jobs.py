"""Jobs that plan from metadata alone on the snapshot on which they are committed, and plan again after each lost
race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import TableChange, file_key, file_keys
from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import PlannedChange, UpdatesAndRequirements
from tableformat.commit.table_diff import live_files
from tableformat.commit.transaction import commit_change
from tableformat.maintenance.publishing.publish_scope import TargetState, asserting_target, target_state
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB
from tableformat.scan.context import merge_context
from tableformat.storage.storage import delete_if_present


@dataclass(frozen=True, slots=True)
class HeadState:
    """The head of a branch with everything that determines which of its deletes are needed."""

    view: SnapshotView
    data_files: tuple[DataFile, ...]
    """Live data files."""
    delete_files: tuple[DeleteFile, ...]
    target: TargetState | None
    """The publish target of the branch."""

    @property
    def files_in_reach(self) -> tuple[DataFile, ...]:
        """MT-31: the live data files, and the files that the branch will get from its target with their sequence
        numbers."""
        return (*self.data_files, *(self.target.appended if self.target is not None else ()))

    @property
    def context(self) -> MergeContext:
        return merge_context(self.view)


PlanChange: TypeAlias = Callable[[HeadState], TableChange]


def head_state(view: SnapshotView, branch: str) -> HeadState:
    """Reads the manifests of the head. Raises PublishRefusedError for a branch that cannot be published."""
    manifests = manifests_of(view)
    data = live_files(view.io, view.metadata, manifests, ManifestContent.DATA)
    deletes = live_files(view.io, view.metadata, manifests, ManifestContent.DELETES)
    return HeadState(
        view,
        tuple(file for file in data if isinstance(file, DataFile)),
        tuple(file for file in deletes if isinstance(file, DeleteFile)),
        target_state(view.metadata, view.io, branch),
    )


class _PlannedOnHead(PlannedChange):
    """A change that is planned again on the head of each attempt, and the requirements about the publish target."""

    def __init__(self, branch: str, plan: PlanChange) -> None:
        self._branch = branch
        self._plan = plan
        self._target: TargetState | None = None

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        state = head_state(head, self._branch)
        self._target = state.target
        return self._plan(state)

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        del head, snapshot
        return asserting_target(self._target)


def commit_on_head(
    iceberg: IcebergTable, branch: str, plan: PlanChange, *, job: str, status: CommitStatus | None = None
) -> CommitOutcome:
    """Commit a change that is planned on the head, and planned again after each lost race. Moves the handle to the
    result.

    A change that is planned on its own head needs no conflict rule. The plan includes the appends to the branch's
    publish target, so the commit also requires that the target is unchanged (MT-31).
    """
    outcome = commit_change(
        iceberg, _PlannedOnHead(branch, plan), ref=branch, snapshot_properties={JOB: job}, status=status
    )
    outcome.move(iceberg)
    return outcome


def commit_deletes_on_head(
    iceberg: IcebergTable, branch: str, plan: PlanChange, written: list[DeleteFile], *, job: str
) -> int | None:
    """Like `commit_on_head`, for a plan that writes delete files and adds each to `written`.

    Afterwards `written` has the committed files. The files of failed attempts are removed. All files stay if the
    outcome is unknown (CP-13).
    """
    status = CommitStatus()
    with removing_on_failure(status, lambda: _remove(iceberg, written)):
        outcome = commit_on_head(iceberg, branch, plan, job=job, status=status)
    if outcome.change is not None:
        used = file_keys(outcome.change.added_delete_files)
        remove_leftovers(iceberg.io, [file.file_path for file in written if file_key(file) not in used])
        written[:] = outcome.change.added_delete_files
    return outcome.snapshot_id


def _remove(iceberg: IcebergTable, files: Sequence[DeleteFile]) -> None:
    for file in files:
        delete_if_present(iceberg.io, file.file_path)
