"""What to do about a finding, and which snapshots it concerns (MT-76)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType

from tableformat.maintenance.verification.census import Census
from tableformat.maintenance.verification.findings import FindingKind, Flaw, Severity, VerificationFinding
from tableformat.metadata.snapshot_choice import ancestors

_NEXT_STEPS: Final = {
    FindingKind.WRONG_TOTAL: "Take no counts from summaries; rows are read right.",
    FindingKind.MISSING_STATISTICS: "Nothing: no reader of rows needs it.",
    FindingKind.MISSING_LOG: "Nothing: no reader of rows needs it.",
    FindingKind.NOT_CHECKED: "Check it with the engine that wrote it, or rewrite it as Parquet.",
    FindingKind.BROKEN_REFERENCE: "Drop the branch or tag, or create it again at a retained snapshot.",
}
"""Where it does not depend on which snapshots need the file."""


@dataclass(frozen=True, slots=True)
class Remedies:
    """Turns what checks found into findings that say what to do."""

    metadata: TableMetadata
    branch: str
    needs: Mapping[str, frozenset[int]]
    """For each location the verified snapshots that need it."""
    broken: frozenset[int]
    """Snapshots that an error concerns."""

    @staticmethod
    def of(census: Census, branch: str, flaws: Sequence[Flaw]) -> Remedies:
        needs = snapshots_that_need(census, {flaw.location for flaw in flaws})
        errors = (needs[flaw.location] for flaw in flaws if flaw.severity is Severity.ERROR)
        return Remedies(census.metadata, branch, needs, frozenset().union(*errors))

    def finding(self, flaw: Flaw) -> VerificationFinding:
        """MT-76: every finding says what to do next, and where that is a call, which."""
        needed_by = self.needs[flaw.location]
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
                return "Drop it; no row changes.", "table.maintenance.repair()"
            return f"Nothing: it is not in the head of {self.branch}, and goes with its snapshots.", None
        return (_NEXT_STEPS[kind], None) if kind in _NEXT_STEPS else self._way_back(needed_by)

    def _way_back(self, needed_by: frozenset[int]) -> tuple[str, str | None]:
        """The newest snapshot of the branch that does without the file."""
        if not needed_by:
            return "Restore the metadata file from a copy, or register an older one of the metadata log.", None
        head = self._head()
        restore = "Restore the file from a copy or from an older version of the object"
        if head not in needed_by:
            ids = sorted(needed_by)
            step = f"{restore}, or give up the snapshots that need it; the head of {self.branch} does not."
            return step, f"table.maintenance.expire_snapshots(snapshot_ids={ids})"
        line = ancestors(self.metadata, None if head is None else self.metadata.snapshot_by_id(head))
        for count, snapshot in enumerate(line):
            if snapshot.snapshot_id not in needed_by and snapshot.snapshot_id not in self.broken:
                lost = "what the last snapshot did" if count == 1 else f"what the last {count} snapshots did"
                step = f"{restore}; or give up {lost}: the one before is the newest of {self.branch} without an error."
                return step, f"table.rollback(snapshot_id={snapshot.snapshot_id})"
        return f"{restore}; no retained snapshot of {self.branch} does without it or another file that is wrong.", None

    def _head(self) -> int | None:
        ref = self.metadata.refs.get(self.branch)
        return None if ref is None else ref.snapshot_id


def heads_of(metadata: TableMetadata) -> frozenset[int]:
    """The snapshots that branches are at."""
    return frozenset(
        ref.snapshot_id for ref in metadata.refs.values() if ref.snapshot_ref_type is SnapshotRefType.BRANCH
    )


def snapshots_that_need(census: Census, locations: Iterable[str]) -> dict[str, frozenset[int]]:
    """For each location the snapshots whose list, manifest or live file it is."""
    found: dict[str, set[int]] = {location: set() for location in locations}
    numbers_at = census.numbers_at(found)
    places = {location: numbers for location, numbers in numbers_at.items() if len(numbers)}
    wanted = np.concatenate(list(places.values())) if places else np.empty(0, np.int64)
    owners = [location for location, numbers in places.items() for _ in numbers]
    for contents in census.snapshots:
        snapshot_id = contents.snapshot.snapshot_id
        for location in (contents.snapshot.manifest_list, *(each.manifest_path for each in contents.manifests)):
            if location in found:
                found[location].add(snapshot_id)
        live, _ = census.live(contents)
        for index in np.flatnonzero(np.isin(wanted, live)).tolist():
            found[owners[index]].add(snapshot_id)
    return {location: frozenset(ids) for location, ids in found.items()}
