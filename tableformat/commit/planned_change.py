"""The change that a commit requests at each attempt, for the current head, with its extra updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate

from tableformat.commit.change import TableChange
from tableformat.metadata.snapshot_view import SnapshotView

UpdatesAndRequirements: TypeAlias = tuple[Sequence[TableUpdate], Sequence[TableRequirement]]


class PlannedChange(ABC):
    """One change, made for the head of each attempt. The plan made before the commit stays in the object."""

    @abstractmethod
    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        """The change to commit on this head of the branch, or on the snapshot from `base_on`; `attempt` counts from
        1."""

    def base_on(self, head: SnapshotView) -> SnapshotView:
        """The snapshot that the new one is based on, with the metadata of `head`. By default it is the head of the
        branch.

        A snapshot of another branch replaces the content of this branch (LK-16).
        """
        return head

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """Further updates and requirements of the commit of that snapshot, such as moving a second ref. Empty by
        default."""
        del head, snapshot
        return (), ()


@dataclass(frozen=True, slots=True)
class FixedChange(PlannedChange):
    """The same change on every head. The conflict rules decide whether it is still valid."""

    change: TableChange

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del head, attempt
        return self.change
