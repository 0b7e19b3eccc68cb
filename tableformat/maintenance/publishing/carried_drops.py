"""Ranges that the branch dropped and rows that the target got before (RP-26).

    target   P ---------- m1 (row r, number 3)
    branch     b1 (drop the range of r, number 4)

As if both branches had been one, the drop meets the row: it is carried with a range delete of the drop's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyiceberg.table import Table as IcebergTable

from tableformat.deletes.rules import committed_sequence_number
from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.definition.global_spec import global_spec_id
from tableformat.operations.ranges.drops import drop_of
from tableformat.range_partitions.cuts import spans_of
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.range_deletes import write_range_delete_file
from tableformat.write.staged import StagedFiles


class CarriedDrops:
    """The range deletes that a carry of files needs; each is written once, however often the commit is tried."""

    def __init__(self, iceberg: IcebergTable) -> None:
        self._iceberg = iceberg
        self._written: dict[int, DeleteFile] = {}

    def deletes(self, head: SnapshotView, carried: Sequence[DataFile]) -> tuple[DeleteFile, ...]:
        """RP-26: one for each drop of the branch that is younger than a carried file which it reaches."""
        found = []
        for number, spans in _drops_since(head, carried):
            places = classify_many(sort_and_merge(spans).with_sequence_number(number), carried)
            if any(place is not Coverage.CLEAN for place, _ in places):
                found.append(self._delete(number, spans))
        return tuple(found)

    def discard(self) -> None:
        """Remove what was written, of a commit that certainly did not happen."""
        StagedFiles(delete_files=tuple(self._written.values())).delete_all(self._iceberg.io)

    def _delete(self, number: int, spans: SpanArray) -> DeleteFile:
        if number not in self._written:
            context = WriteContext.of(self._iceberg.metadata, self._iceberg.io)
            written = write_range_delete_file(context, spans, spec_id=global_spec_id(self._iceberg))
            self._written[number] = replace(written, sequence_number=number)
        return self._written[number]


def _drops_since(head: SnapshotView, carried: Sequence[DataFile]) -> Iterator[tuple[int, SpanArray]]:
    """The drops of the branch after the oldest of the files, each with its number."""
    oldest = min(map(committed_sequence_number, carried), default=None)
    for snapshot in ancestors(head.metadata, head.snapshot):
        number = snapshot.sequence_number or 0
        if oldest is None or number <= oldest:
            return
        drop = drop_of(snapshot, head.metadata)
        if drop is not None:
            yield number, spans_of(drop.key, drop.ranges)
