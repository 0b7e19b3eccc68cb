"""Checks that the live files of a snapshot are consistent with each other (MT-73)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from pyiceberg.table.snapshots import Snapshot

from tableformat.deletes.rules import position_delete_is_new_enough
from tableformat.maintenance.verification.file_index import (
    SEVERAL,
    TOTALS,
    FileColumns,
    FileIndex,
    Numbers,
    SnapshotContents,
)
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.merge_on_read.delete_index import named_data_file
from tableformat.metadata.content_file import DeleteFile


@dataclass(slots=True)
class SnapshotChecks:
    """Checks each snapshot. A flaw that several snapshots share is reported once."""

    file_index: FileIndex
    columns: FileColumns
    heads: frozenset[int]
    """Heads of branches, or the snapshot that was requested. Dead deletes of other snapshots are removed with them."""
    _told: set[tuple[FindingKind, int]] = field(default_factory=set)

    def flaws(self, contents: SnapshotContents) -> Iterator[Flaw]:
        """MT-73: checks for files that are live twice, row deletes without their data file, row ids and totals."""
        numbers, first_row_ids = self.file_index.live(contents)
        snapshot = contents.snapshot
        yield from self._duplicates(numbers, snapshot)
        if not contents.is_whole:
            return
        yield from self._row_deletes(numbers, snapshot)
        if snapshot.first_row_id is not None:
            yield from self._row_ids(numbers, first_row_ids, snapshot)
        yield from self._totals(contents)

    def _new(self, kind: FindingKind, numbers: Numbers) -> Iterator[int]:
        for number in numbers.tolist():
            if (kind, number) not in self._told:
                self._told.add((kind, number))
                yield number

    def _path(self, number: int) -> str:
        return self.file_index.files[number].file_path

    def _duplicates(self, numbers: Numbers, snapshot: Snapshot) -> Iterator[Flaw]:
        for number in self._new(FindingKind.DUPLICATE_FILE, _twice(numbers)):
            what = f"it is live more than once in snapshot {snapshot.snapshot_id}"
            yield Flaw(FindingKind.DUPLICATE_FILE, self._path(number), what)
        vectors = np.unique(numbers[self.columns.is_vector[numbers]])
        named = self.columns.named[vectors]
        for data in self._new(FindingKind.DUPLICATE_VECTOR, _twice(named[named >= 0])):
            holders = ", ".join(self._path(number) for number in vectors[named == data].tolist())
            what = f"it has more than one deletion vector in snapshot {snapshot.snapshot_id}: in {holders}"
            yield Flaw(FindingKind.DUPLICATE_VECTOR, self._path(data), what)

    def _row_deletes(self, numbers: Numbers, snapshot: Snapshot) -> Iterator[Flaw]:
        """DA-1, DA-7: checks that the data file that a row delete names is live, in the same partition, and not
        newer."""
        columns = self.columns
        live_data = numbers[columns.is_data[numbers]]
        deletes = numbers[columns.is_row_delete[numbers] & (columns.named[numbers] != SEVERAL)]
        named = columns.named[deletes]
        is_live = np.isin(named, live_data)
        is_new_enough = position_delete_is_new_enough(
            columns.sequence_numbers[deletes], columns.sequence_numbers[named]
        )
        dead = deletes[~(is_live & is_new_enough)]
        misplaced = deletes[is_live & (columns.partitions[deletes] != columns.partitions[named])]
        for number in self._new(FindingKind.WRONG_PARTITION, misplaced):
            what = f"it deletes rows of {self._path(int(columns.named[number]))}, which is in another partition"
            yield Flaw(FindingKind.WRONG_PARTITION, self._path(number), what)
        is_head = snapshot.snapshot_id in self.heads
        is_vector = columns.is_vector[dead]
        for number in self._new(FindingKind.DANGLING_VECTOR, dead[is_vector]):
            yield self._dead(FindingKind.DANGLING_VECTOR, number, snapshot)
        for number in self._new(FindingKind.DEAD_DELETE, dead[~is_vector]) if is_head else ():
            yield self._dead(FindingKind.DEAD_DELETE, number, snapshot)

    def _dead(self, kind: FindingKind, number: int, snapshot: Snapshot) -> Flaw:
        delete = self.file_index.files[number]
        path = named_data_file(delete) if isinstance(delete, DeleteFile) else None
        what = f"its data file, {path}, is not live in snapshot {snapshot.snapshot_id}, or is newer than it"
        return Flaw(kind, delete.file_path, what, number)

    def _row_ids(self, numbers: Numbers, first_row_ids: Numbers, snapshot: Snapshot) -> Iterator[Flaw]:
        """Checks that every data file of a v3 snapshot has row ids, that no two are the same, and that all were
        assigned."""
        is_data = self.columns.is_data[numbers] & (self.columns.record_counts[numbers] > 0)
        numbers, starts = numbers[is_data], first_row_ids[is_data]
        for number in self._new(FindingKind.WRONG_ROW_IDS, numbers[starts < 0]):
            what = f"its rows have no ids in snapshot {snapshot.snapshot_id}, which assigns ids to all rows"
            yield Flaw(FindingKind.WRONG_ROW_IDS, self._path(number), what)
        numbers, places = np.unique(numbers[starts >= 0], return_index=True)
        starts = starts[starts >= 0][places]
        order = np.argsort(starts, kind="stable")
        numbers, starts = numbers[order], starts[order]
        ends = starts + self.columns.record_counts[numbers]
        overlaps = np.flatnonzero(np.maximum.accumulate(ends)[:-1] > starts[1:]) + 1
        for number in self._new(FindingKind.WRONG_ROW_IDS, numbers[overlaps]):
            what = f"another data file of snapshot {snapshot.snapshot_id} has some of the same row ids"
            yield Flaw(FindingKind.WRONG_ROW_IDS, self._path(number), what)
        next_row_id = getattr(self.file_index.metadata, "next_row_id", None) or 0
        for number in self._new(FindingKind.WRONG_ROW_IDS, numbers[ends > next_row_id]):
            what = f"it has row ids that are not assigned yet: the next row id of the table is {next_row_id}"
            yield Flaw(FindingKind.WRONG_ROW_IDS, self._path(number), what)

    def _totals(self, contents: SnapshotContents) -> Iterator[Flaw]:
        snapshot = contents.snapshot
        stated = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        found: Counter[str] = Counter()
        for totals in self.file_index.totals(contents):
            found.update(totals)
        wrong = [
            f"{name} {stated[name]}, but its manifests have {found[name]}"
            for name in TOTALS
            if name in stated and stated[name] != str(found[name])
        ]
        if wrong:
            what = f"the summary of snapshot {snapshot.snapshot_id} states {'; '.join(wrong)}"
            yield Flaw(FindingKind.WRONG_TOTAL, snapshot.manifest_list, what)


def _twice(numbers: Numbers) -> Numbers:
    found, counts = np.unique(numbers, return_counts=True)
    return found[counts > 1]
