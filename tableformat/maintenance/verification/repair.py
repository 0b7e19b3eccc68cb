"""Mending what loses nothing (MT-77)."""

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
    """What was mended, or with `dry_run` would be, and what is left."""

    dropped_deletes: DropDeadDeletesResult
    """Each with the proof that it matches nothing."""
    found: VerifyResult
    """Before."""
    left: tuple[VerificationFinding, ...]
    """What is wrong afterwards, or with `dry_run` would be; each says what to do."""
    duration_seconds: float = 0.0
    dry_run: bool = False

    def __str__(self) -> str:
        verb = "would drop" if self.dry_run else "dropped"
        number = len(self.dropped_deletes.proofs)
        lines = [f"{verb} {number:,} delete {'file that matches' if number == 1 else 'files that match'} nothing"]
        lines += [f"  {location}: {proof}" for location, proof in self.dropped_deletes.proofs]
        lines += [f"left: {each.kind}: {each.file}: {each.what} {each.next_step}" for each in self.left]
        return "\n".join(lines)


def repair(
    iceberg: IcebergTable, branch: str, *, dry_run: bool = False, progress: Progress | None = None
) -> RepairResult:
    """MT-77: drop the delete files of the branch's head that are proved to match nothing (MT-10), also those that are
    missing or damaged, and verify what is left. No row of any snapshot changes, and no file is removed.

    CorruptFileError for a delete file that cannot be read and that a proof needs.
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
