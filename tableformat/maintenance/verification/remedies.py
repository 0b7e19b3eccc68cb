"""Gives advice for a finding, and the snapshots that it affects (MT-76)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType

from tableformat.maintenance.verification.file_index import FileIndex
from tableformat.maintenance.verification.findings import FindingKind, Flaw, Severity, VerificationFinding
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id

Place: TypeAlias = tuple[str, int | None]
"""A location, and the number of the file if several files are there."""

_NEXT_STEPS: Final = {
    FindingKind.WRONG_TOTAL: "Do not use counts from summaries; rows are read correctly.",
    FindingKind.MISSING_STATISTICS: "No action: readers do not need it.",
    FindingKind.MISSING_LOG: "No action: readers do not need it.",
    FindingKind.ERASED_ROWS: "Erase the rows again; the certificate lists what cannot be reached, and why.",
    FindingKind.NOT_CHECKED: "Check it with the engine that wrote it, or rewrite it as Parquet.",
    FindingKind.REPEATED_KEY: (
        "Write the right row of each key with upsert, or with replace for a whole prefix: both replace all rows of a "
        "key. merge chooses by a condition. append(on_duplicate='error') refuses such rows."
    ),
    FindingKind.BROKEN_REFERENCE: "Drop the branch or tag, or recreate it at a retained snapshot.",
}
"""Advice that does not depend on which snapshots need the file."""
_DAMAGED: Final = frozenset(
    {FindingKind.MISSING_FILE, FindingKind.WRONG_SIZE, FindingKind.UNREADABLE_FILE, FindingKind.WRONG_CHECKSUM}
)
_RESTORE: Final = "Restore the file from a copy or from an older version of the object"
_COMPARE: Final = "Compare it with a copy: either it was changed afterwards, or its writer recorded a wrong value"


@dataclass(frozen=True, slots=True)
class Remedies:
    """Turns flaws into findings with advice."""

    metadata: TableMetadata
    branch: str
    needs: Mapping[Place, frozenset[int]]
    """For the location of each flaw, the verified snapshots that have it."""
    broken: frozenset[int]
    """Snapshots with an error."""

    @staticmethod
    def of(file_index: FileIndex, branch: str, flaws: Sequence[Flaw]) -> Remedies:
        needs = snapshots_that_have(file_index, {place_of(flaw) for flaw in flaws})
        errors = (needs[place_of(flaw)] for flaw in flaws if flaw.severity is Severity.ERROR)
        return Remedies(file_index.metadata, branch, needs, frozenset().union(*errors))

    def finding(self, flaw: Flaw) -> VerificationFinding:
        """MT-76: the finding with the next step and, if it is a call, the call."""
        needed_by = self.needs[place_of(flaw)]
        next_step, command = self._next_step(flaw.kind, needed_by)
        return VerificationFinding(
            kind=flaw.kind,
            severity=flaw.severity,
            file=flaw.location,
            what=flaw.what[0].upper() + flaw.what[1:] + ".",
            next_step=next_step,
            command=command,
            snapshot_ids=tuple(each.snapshot_id for each in self.metadata.snapshots if each.snapshot_id in needed_by),
        )

    def _next_step(self, kind: FindingKind, needed_by: frozenset[int]) -> tuple[str, str | None]:
        if kind in (FindingKind.DANGLING_VECTOR, FindingKind.DEAD_DELETE):
            if self._head() in needed_by:
                return "Drop it. This changes no rows.", "table.maintenance.repair()"
            return f"No action: it is not in the head of {self.branch}, and expires with its snapshots.", None
        return (_NEXT_STEPS[kind], None) if kind in _NEXT_STEPS else self._way_back(kind, needed_by)

    def _way_back(self, kind: FindingKind, needed_by: frozenset[int]) -> tuple[str, str | None]:
        """Advice for a flaw of all snapshots that have the file: restore the file, or return to the newest snapshot of
        the branch without an error."""
        if not needed_by:
            return "Restore the metadata file from a copy, or register an older one of the metadata log.", None
        head = self._head()
        restore = _RESTORE if kind in _DAMAGED else _COMPARE
        if head not in needed_by:
            ids = sorted(needed_by)
            step = f"{restore}, or expire the snapshots that need it; the head of {self.branch} does not need it."
            return step, f"table.maintenance.expire_snapshots(snapshot_ids={ids})"
        line = ancestors(self.metadata, None if head is None else snapshot_by_id(self.metadata, head))
        for count, snapshot in enumerate(line):
            if snapshot.snapshot_id not in self.broken:
                lost = "the last snapshot" if count == 1 else f"the last {count} snapshots"
                step = (
                    f"{restore}; or roll back {lost}: the previous one is the newest of {self.branch} without an error."
                )
                return step, f"table.rollback(snapshot_id={snapshot.snapshot_id})"
        return f"{restore}; all retained snapshots of {self.branch} need it or another damaged file.", None

    def _head(self) -> int | None:
        ref = self.metadata.refs.get(self.branch)
        return None if ref is None else ref.snapshot_id


def heads_of(metadata: TableMetadata) -> frozenset[int]:
    """The head snapshots of all branches."""
    return frozenset(
        ref.snapshot_id for ref in metadata.refs.values() if ref.snapshot_ref_type is SnapshotRefType.BRANCH
    )


def place_of(flaw: Flaw) -> Place:
    return flaw.location, flaw.number


def snapshots_that_have(file_index: FileIndex, places: Iterable[Place]) -> dict[Place, frozenset[int]]:
    """For each location, the snapshots that have it as manifest list, manifest or live file."""
    found: dict[Place, set[int]] = {place: set() for place in places}
    numbers_at = file_index.numbers_at({location for location, number in found if number is None})
    pairs: list[tuple[int, Place]] = [
        (number, (location, None)) for location, numbers in numbers_at.items() for number in numbers
    ]
    pairs += [(number, (location, number)) for location, number in found if number is not None]
    wanted = np.array([number for number, _ in pairs], np.int64)
    for contents in file_index.snapshots:
        snapshot_id = contents.snapshot.snapshot_id
        for location in (contents.snapshot.manifest_list, *(each.manifest_path for each in contents.manifests)):
            if (location, None) in found:
                found[location, None].add(snapshot_id)
        live, _ = file_index.live(contents)
        for index in np.flatnonzero(np.isin(wanted, live)).tolist():
            found[pairs[index][1]].add(snapshot_id)
    return {place: frozenset(ids) for place, ids in found.items()}
