"""Puts a planned change into the form of the table's format version at the time of the commit."""

from __future__ import annotations

from abc import abstractmethod

from pyiceberg.io import FileIO

from tableformat.commit.change import TableChange
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.outcome import CommitOutcome
from tableformat.commit.planned_change import PlannedChange
from tableformat.errors import CommitConflictError
from tableformat.metadata.snapshot_view import SnapshotView


class OnlyInVersion(PlannedChange):
    """CP-19 for a job that plans again: CommitConflictError when the table was upgraded since."""

    def __init__(self, change: TableChange, planned: SnapshotView, job: str) -> None:
        """`job` names it in the message."""
        self.change = change
        self.planned = planned
        self.job = job

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        if head.metadata.format_version != self.planned.metadata.format_version:
            raise CommitConflictError(
                f"{self.job} planned for format version {self.planned.metadata.format_version} cannot commit: the "
                f"table has version {head.metadata.format_version} now. Nothing was changed. Run the {self.job} again."
            )
        return self.change


class ChangeByFormatVersion(PlannedChange):
    """CP-19: a change that is made for the format version of the head.

    A table may be upgraded between planning and commit: then position deletes that were prepared for version 2 are made
    anew as deletion vectors.
    """

    def __init__(self) -> None:
        self._made: dict[int, TableChange] = {}

    @abstractmethod
    def make(self, format_version: int) -> TableChange:
        """Write the files of the change for a format version; asked once for each version that is met."""

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        version = head.metadata.format_version
        if version not in self._made:
            self._made[version] = self.make(version)
        return self._made[version]

    def committed(self, outcome: CommitOutcome, io: FileIO) -> TableChange | None:
        """The change that was committed, after removing the delete files that were made for another version; None when
        nothing was committed."""
        if not outcome.committed:
            return None
        if outcome.change is None:
            # An attempt without an answer was applied. A table is never downgraded, so the newest form fits it best;
            # files of the other one are left to the removal of orphans.
            return self._made[max(self._made)]
        used = {delete.file_path for delete in outcome.change.added_delete_files}
        remove_leftovers(io, self._made_but(used))
        return outcome.change

    def _made_but(self, used: set[str]) -> list[str]:
        made = {delete.file_path for change in self._made.values() for delete in change.added_delete_files}
        return sorted(made - used)
