"""Ranges that the branch dropped and rows that the target got before (RP-26).

    target   P ---------- m1 (row r, number 3)
    branch     b1 (drop the range of r, number 4)

As if both branches had been one, the drop meets the row: it is carried with a delete of its position. A range delete
with the drop's number would also meet the files that were restored since, with the numbers that they had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Snapshot

from tableformat.deletes.spans.coverage import Coverage, classify_many
from tableformat.deletes.spans.spans import SpanArray, sort_and_merge
from tableformat.errors import PublishRefusedError
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.ranges.drops import drop_of, restored_tag
from tableformat.properties import RANGE_PARTITIONS
from tableformat.range_partitions.cuts import spans_of
from tableformat.write.context import WriteContext
from tableformat.write.delete_files.row_deletes import RowsToDelete, write_row_deletes
from tableformat.write.staged import StagedFiles

_Reached: TypeAlias = tuple[DataFile, tuple[int, ...]]
"""A carried file, and the numbers of the drops that may have rows of it."""


class CarriedDrops:
    """The row deletes that a carry of files needs; written anew where another attempt needs others."""

    def __init__(self, iceberg: IcebergTable, branch: str) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._written: tuple[DeleteFile, ...] = ()
        self._written_for: list[_Reached] = []

    def deletes(self, head: SnapshotView, carried: Sequence[DataFile]) -> tuple[DeleteFile, ...]:
        """RP-26: of the rows of carried files that came to the target before a drop of the branch which has them."""
        drops = dict(_drops_since(head, self._branch, min(map(_came_with, carried), default=None)))
        spans = _newer_spans(carried, drops)
        reached = [(data, tuple(found)) for data, found in spans.items()]
        if reached != self._written_for:
            self.discard()
            merge = MergeContext(head.metadata, head.io)
            rows = [
                RowsToDelete(
                    FileScanTask(data_file=data),
                    deleted_positions(FileScanTask(data_file=data, range_deletes=tuple(found.values())), merge),
                )
                for data, found in spans.items()
            ]
            self._written = write_row_deletes(WriteContext.of(head.metadata, head.io), rows, merge).added
            self._written_for = reached
        return self._written

    def discard(self) -> None:
        """Remove what was written, of a commit that certainly did not happen."""
        StagedFiles(delete_files=self._written).delete_all(self._iceberg.io)
        self._written, self._written_for = (), []


def _came_with(data: DataFile) -> int:
    """When the file came to the target: one that was restored there has an older data sequence number."""
    assert data.file_sequence_number is not None, f"{data.file_path} was committed to the target"
    return data.file_sequence_number


def _newer_spans(carried: Sequence[DataFile], drops: Mapping[int, SpanArray]) -> dict[DataFile, dict[int, SpanArray]]:
    """For the files that came before a drop, by its number: the spans that their rows are held against."""
    found: defaultdict[DataFile, dict[int, SpanArray]] = defaultdict(dict)
    for number, spans in drops.items():
        older = [data for data in carried if _came_with(data) < number]
        for data, (coverage, met) in zip(older, classify_many(spans.with_sequence_number(number), older), strict=True):
            if coverage is not Coverage.CLEAN:
                found[data][number] = met
    return found


def _drops_since(head: SnapshotView, branch: str, oldest: int | None) -> Iterator[tuple[int, SpanArray]]:
    """The drops of the branch after a number, each with its own, but for what was restored since (RP-13)."""
    restored: set[str] = set()
    last: Snapshot | None = None
    for snapshot in ancestors(head.metadata, head.snapshot):
        last, number = snapshot, snapshot.sequence_number or 0
        if oldest is None or number <= oldest:
            return
        tag = restored_tag(snapshot)
        if tag is not None:
            restored.add(tag)
        drop = drop_of(snapshot, head.metadata)
        if drop is None:
            continue
        if drop.tag in restored:
            restored.discard(drop.tag)
            continue
        yield number, sort_and_merge(spans_of(drop.key, drop.ranges))
    if last is not None and last.parent_snapshot_id is not None and RANGE_PARTITIONS in head.metadata.properties:
        raise PublishRefusedError(
            f"branch {branch!r} cannot be published: its history before snapshot {last.snapshot_id} has expired, so it "
            "is not known whether it dropped ranges whose rows the target has. Nothing was moved. Start a new branch "
            "at the target. expire_snapshots() of this library keeps that history until the next publish."
        )
