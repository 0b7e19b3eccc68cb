"""Repairs findings that can be fixed without loss (MT-77)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from pyiceberg.table import Table as IcebergTable

from tableformat.commit.metadata_commit import refresh
from tableformat.maintenance.delete_files.drop_dead_deletes import DropDeadDeletesResult, drop_dead_deletes
from tableformat.maintenance.running.progress import Progress
from tableformat.maintenance.verification.findings import FindingKind, VerificationFinding, VerifyResult
from tableformat.maintenance.verification.verify import verify
from tableformat.markup.results import HtmlResult

_MENDED: Final = frozenset({FindingKind.DANGLING_VECTOR, FindingKind.DEAD_DELETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairResult(HtmlResult):
    """The repaired and the remaining findings. With `dry_run`: the expected ones."""

    dropped_deletes: DropDeadDeletesResult
    """Each with the proof that it matches no row."""
    found: VerifyResult
    """Findings before the repair."""
    left: tuple[VerificationFinding, ...]
    """Findings after the repair, each with advice. With `dry_run`: the expected ones."""
    duration_seconds: float = 0.0
    dry_run: bool = False

    def __str__(self) -> str:
        verb = "would drop" if self.dry_run else "dropped"
        number = len(self.dropped_deletes.proofs)
        lines = [f"{verb} {number:,} delete {'file that matches' if number == 1 else 'files that match'} no rows"]
        lines += [f"  {location}: {proof}" for location, proof in self.dropped_deletes.proofs]
        lines += [f"left: {each.kind}: {each.file}: {each.what} {each.next_step}" for each in self.left]
        return "\n".join(lines)


def repair(
    iceberg: IcebergTable, branch: str, *, dry_run: bool = False, progress: Progress | None = None
) -> RepairResult:
    """MT-77: drop the delete files of the branch's head that are proved to match no row (MT-10), including missing or
    damaged files, and verify the rest. No row of any snapshot changes, and no file is removed.

    Raises CorruptFileError for an unreadable delete file that a proof needs.
    """
    started = time.perf_counter()
    refresh(iceberg)
    found = verify(iceberg, branch, progress=progress)
    dropped = drop_dead_deletes(iceberg, branch, dry_run=dry_run, progress=progress)
    after = found if dry_run else verify(iceberg, branch, progress=progress)
    gone = {location for location, _ in dropped.proofs} if dry_run else set()
    left = tuple(each for each in after.findings if not (each.file in gone and each.kind in _MENDED))
    return RepairResult(
        dropped_deletes=dropped,
        found=found,
        left=left,
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )
