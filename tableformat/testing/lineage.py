"""Checks row lineage (FM-20) in every head that a test reads.

    book = LineageBook()
    book.read(table)           after each commit; AssertionError if an id was given twice, was lost, or is new for a
                               row that nobody wrote

Rows are distinguished by all of their values: operations of this library give a new id to every row that they write,
and never write a row that exists already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.metadata.row_lineage import ROW_LINEAGE_NAMES
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.table import Table
from tableformat.testing.key_order import fingerprint

_WRITES_STORED_ROWS_ANEW: Final = frozenset({"update", "merge"})
"""Operations that may write an unchanged row again, with a new id."""

Lineage: TypeAlias = dict[int, tuple[Any, int]]
"""By row id: the row, and the sequence number of its last change."""


@dataclass(slots=True)
class LineageBook:
    """Row ids and sequence numbers of each snapshot that was read."""

    columns: tuple[str, ...]
    """The columns of the table."""
    known: dict[int, Lineage] = field(default_factory=dict)
    """Lineage by snapshot."""
    written_anew: set[int] = field(default_factory=set)
    """Snapshots of `update` and `merge`."""

    def note(self, verbs: Sequence[str], snapshot_ids: Sequence[int]) -> None:
        """Record that these operations made these snapshots."""
        if _WRITES_STORED_ROWS_ANEW.intersection(verbs):
            self.written_anew.update(snapshot_ids)

    def read(self, table: Table) -> pa.Table:
        """The rows of the handle's snapshot with their lineage, after comparing it with the known lineage."""
        found = table.scan(columns=[*self.columns, *ROW_LINEAGE_NAMES]).to_arrow()
        if table.view.snapshot is not None:
            self._check(table, table.view.snapshot, _lineage_of(found, self.columns))
        return found

    def _check(self, table: Table, head: Snapshot, lineage: Lineage) -> None:
        next_id = getattr(table.metadata, "next_row_id", None) or 0
        assert max(lineage, default=-1) < next_id, f"row id {max(lineage)} is given although {next_id} is the next"
        before = self.known.setdefault(head.snapshot_id, lineage)
        assert before == lineage, "the lineage of a snapshot is another one than when it was read before"
        since: list[Snapshot] = []
        for snapshot in ancestors(table.metadata, head):
            if snapshot is not head and snapshot.snapshot_id in self.known:
                self._compare(self.known[snapshot.snapshot_id], lineage, since[::-1])
                return
            since.append(snapshot)

    def _compare(self, before: Lineage, after: Lineage, since: Sequence[Snapshot]) -> None:
        """`since`: the snapshots between them, oldest first."""
        first_new = getattr(since[0], "first_row_id", None)
        new = {row_id: entry for row_id, entry in after.items() if row_id not in before}
        kept = {row_id: entry for row_id, entry in after.items() if row_id in before}
        if all(changes_no_row(snapshot) for snapshot in since):
            assert not new, f"rows got new ids where no row was to change: {new}"
            assert kept == before, f"rows were {_of(before, kept)} and are {_of(kept, before)} where none was to change"
        assert kept == {row_id: before[row_id] for row_id in kept}, (
            f"rows with the ids and numbers {_of(before, kept)} are {_of(kept, before)}"
        )
        numbers = {snapshot.sequence_number for snapshot in since}
        for row_id, (row, number) in new.items():
            assert first_new is None or row_id >= first_new, f"{row} got id {row_id}, given before {first_new}"
            assert number in numbers, f"{row} has number {number}, the commits have {numbers}"
        if not self.written_anew.intersection(snapshot.snapshot_id for snapshot in since):
            again = {row for row, _ in before.values()} & {row for row, _ in new.values()}
            assert not again, f"rows that nobody wrote have other ids than before: {again}"


def _lineage_of(found: pa.Table, columns: Sequence[str]) -> Lineage:
    lineage: Lineage = {}
    for row in found.to_pylist():
        row_id, number = (row[name] for name in ROW_LINEAGE_NAMES)
        assert row_id is not None, f"{row} has no id"
        assert row_id not in lineage, f"{row} has the id of {lineage[row_id]}"
        ((identity, _),) = fingerprint([row], columns).items()
        lineage[row_id] = (identity, number)
    return lineage


def _of(some: Mapping[int, Any], others: Mapping[int, Any]) -> dict[int, Any]:
    """The entries that differ."""
    return {row_id: entry for row_id, entry in some.items() if others.get(row_id) != entry}
