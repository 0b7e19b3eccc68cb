"""What the commit asks at each attempt: the change for the head that it meets, and what goes with it."""

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
    """One change, made for the head of each attempt. What was planned before the commit stays in the object."""

    @abstractmethod
    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        """The change to commit on this head of the branch, or on what `base_on` says; `attempt` is counted from 1."""

    def base_on(self, head: SnapshotView) -> SnapshotView:
        """The snapshot that ours is made from, with the metadata of `head`: by default the head of the branch itself.

        A snapshot from another one replaces what the branch shows (LK-16).
        """
        return head

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        """What else the commit of that snapshot does and demands, such as moving a second ref; by default nothing."""
        del head, snapshot
        return (), ()


@dataclass(frozen=True, slots=True)
class FixedChange(PlannedChange):
    """The same change on every head: the conflict rules decide whether it still holds."""

    change: TableChange

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del head, attempt
        return self.change
