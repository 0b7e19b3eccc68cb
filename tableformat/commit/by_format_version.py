"""Converts a planned change to the format version that the table has at the time of the commit."""

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
    """CP-19 for a job that plans again: raises CommitConflictError if the table was upgraded after planning."""

    def __init__(self, change: TableChange, planned: SnapshotView, job: str) -> None:
        """`job` is the name of the job in the message."""
        self.change = change
        self.planned = planned
        self.job = job

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        if head.metadata.format_version != self.planned.metadata.format_version:
            raise CommitConflictError(
                f"{self.job} cannot commit: it was planned for format version "
                f"{self.planned.metadata.format_version}, but the table now has version "
                f"{head.metadata.format_version}. Nothing was changed. Run the {self.job} again."
            )
        return self.change


class ChangeByFormatVersion(PlannedChange):
    """CP-19: a change that is made for the format version of the head.

    A table may be upgraded between planning and commit. Position deletes that were prepared for version 2 are then
    written again as deletion vectors.
    """

    def __init__(self) -> None:
        self._made: dict[int, TableChange] = {}

    @abstractmethod
    def make(self, format_version: int) -> TableChange:
        """Write the files of the change for a format version. Called once for each version that occurs."""

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        version = head.metadata.format_version
        if version not in self._made:
            self._made[version] = self.make(version)
        return self._made[version]

    def committed(self, outcome: CommitOutcome, io: FileIO) -> TableChange | None:
        """The change that was committed, or None if nothing was committed. Removes the delete files that were made for
        another version."""
        if not outcome.committed:
            return None
        if outcome.change is None:
            # An attempt without an answer was applied. A table is never downgraded, so the newest form is the most
            # likely one. The files of the other form are left to the removal of orphan files.
            return self._made[max(self._made)]
        used = {delete.file_path for delete in outcome.change.added_delete_files}
        remove_leftovers(io, self._made_but(used))
        return outcome.change

    def _made_but(self, used: set[str]) -> list[str]:
        made = {delete.file_path for change in self._made.values() for delete in change.added_delete_files}
        return sorted(made - used)
