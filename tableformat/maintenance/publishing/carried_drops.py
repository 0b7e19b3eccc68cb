"""Range drops on the branch that affect rows which the target got earlier (RP-26).

    target   P ---------- m1 (row r, number 3)
    branch     b1 (drop the range of r, number 4)

The result is the same as if both branches had been one: the drop deletes the row. The row is therefore carried with a
position delete. A range delete with the drop's sequence number would also delete rows of files that were restored
later, because restored files keep their sequence numbers.
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
"""A carried file, and the sequence numbers of the drops that may contain rows of it."""


class CarriedDrops:
    """The row deletes that are needed when files are carried. They are written again if another attempt needs different
    ones."""

    def __init__(self, iceberg: IcebergTable, branch: str) -> None:
        self._iceberg = iceberg
        self._branch = branch
        self._written: tuple[DeleteFile, ...] = ()
        self._written_for: list[_Reached] = []

    def deletes(self, head: SnapshotView, carried: Sequence[DataFile]) -> tuple[DeleteFile, ...]:
        """RP-26: the row deletes for carried files that were added to the target before the branch dropped a range with
        their rows."""
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
        """Remove the written files of a commit that certainly did not happen."""
        StagedFiles(delete_files=self._written).delete_all(self._iceberg.io)
        self._written, self._written_for = (), []


def _came_with(data: DataFile) -> int:
    """The sequence number of the commit that added the file to the target. The data sequence number of a restored file
    is older."""
    assert data.file_sequence_number is not None, f"{data.file_path} was committed to the target"
    return data.file_sequence_number


def _newer_spans(carried: Sequence[DataFile], drops: Mapping[int, SpanArray]) -> dict[DataFile, dict[int, SpanArray]]:
    """For each file that was added before a drop, by the drop's sequence number: the spans with which its rows are
    compared."""
    found: defaultdict[DataFile, dict[int, SpanArray]] = defaultdict(dict)
    for number, spans in drops.items():
        older = [data for data in carried if _came_with(data) < number]
        for data, (coverage, met) in zip(older, classify_many(spans.with_sequence_number(number), older), strict=True):
            if coverage is not Coverage.CLEAN:
                found[data][number] = met
    return found


def _drops_since(head: SnapshotView, branch: str, oldest: int | None) -> Iterator[tuple[int, SpanArray]]:
    """The drops of the branch after a sequence number, each with its own number, without drops that were restored
    (RP-13)."""
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
            f"branch {branch!r} cannot be published: its history before snapshot {last.snapshot_id} has expired, so "
            "it is unknown whether it dropped ranges with rows of the target. Nothing was moved. Start a new branch "
            "at the target. expire_snapshots() of this library retains the history until the next publish."
        )
