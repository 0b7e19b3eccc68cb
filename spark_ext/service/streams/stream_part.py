"""Parts of a stream: what it reads of each snapshot, and the pieces that micro-batches do not split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.table.snapshots import Snapshot

from spark_ext.service.reads.file_list import FileList
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True)
class Part:
    """What a stream reads of one snapshot."""

    snapshot: Snapshot
    is_initial: bool
    """The table as of the snapshot, not what the snapshot did."""
    first: int
    """Pieces of it that were read before."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What micro-batches do not split."""

    file_count: int
    row_count: int
    """Before deletes."""


class Feed(Protocol):
    """A kind of stream."""

    def pieces(self, view: SnapshotView, part: Part) -> Sequence[Piece]:
        """What a part has, in an order that never changes; a TableFormatError where it cannot be read."""

    def add(self, files: FileList, view: SnapshotView, part: Part, index: slice) -> None:
        """Those pieces of a part."""
