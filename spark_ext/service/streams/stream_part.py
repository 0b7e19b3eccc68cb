"""Parts of a stream: the data to read of each snapshot, and pieces that micro-batches do not split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyiceberg.table.snapshots import Snapshot

from spark_ext.service.reads.file_list import FileList
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True)
class Part:
    """The data of one snapshot that a stream reads."""

    snapshot: Snapshot
    is_initial: bool
    """Whether the part is the whole table as of the snapshot, not only its changes."""
    first: int
    """The number of its pieces that were already read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The smallest unit of a micro-batch."""

    file_count: int
    row_count: int
    """The number of rows before deletes."""


class Feed(Protocol):
    """The interface of the two kinds of streams: appends and changes."""

    def pieces(self, view: SnapshotView, part: Part) -> Sequence[Piece]:
        """The pieces of a part, in a stable order. Raises TableFormatError if it cannot be read."""

    def add(self, files: FileList, view: SnapshotView, part: Part, index: slice) -> None:
        """Add these pieces of a part."""
