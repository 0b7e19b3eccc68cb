"""`Ledger`: the bytes that writers wrote and upkeep rewrote, from the summaries of the retained snapshots (MT-84)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.metadata.snapshot_choice import ancestors

PLANNED_UNTIL: Final = "tableformat.upkeep.planned-until"
"""Name in the summary of an upkeep snapshot: the sequence number of the snapshot on which it was planned."""
WRITTEN_BYTES: Final = "tableformat.upkeep.written-bytes"
"""The bytes that writers had written up to that snapshot."""
REWRITTEN_BYTES: Final = "tableformat.upkeep.rewritten-bytes"
"""The bytes that upkeep and other jobs had written up to that snapshot."""
_ADDED_BYTES: Final = "added-files-size"
_ADDED_DATA_FILES: Final = "added-data-files"
_ADDED_DELETE_FILES: Final = "added-delete-files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The history of a branch since its oldest retained snapshot, or since an entry that upkeep left.

    number  1 .. 16     writers
            17          merge of 1 .. 16, planned on 16, entry: written through 16
            18 .. 20    writers
            21          merge, planned on 17; its entry has the bytes of 1 .. 17, so 18 .. 20 are counted separately
    """

    written_bytes: int = 0
    rewritten_bytes: int = 0
    new_data_file_count: int = 0
    """Data files that writers added since the last upkeep was planned."""
    new_delete_file_count: int = 0
    new_bytes: int = 0
    """Bytes of these files."""

    @staticmethod
    def of(metadata: TableMetadata, head: Snapshot | None) -> Ledger:
        """Reads only the snapshots since the last upkeep was planned."""
        written = rewritten = data_files = delete_files = new_bytes = 0
        counted_until: int | None = None
        for snapshot in ancestors(metadata, head):
            if counted_until is not None and (snapshot.sequence_number or 0) <= counted_until:
                break
            summary = _summary(snapshot)
            if counted_until is None and PLANNED_UNTIL in summary:
                counted_until = _number(summary, PLANNED_UNTIL)
                written += _number(summary, WRITTEN_BYTES)
                rewritten += _number(summary, REWRITTEN_BYTES)
            added = _number(summary, _ADDED_BYTES)
            if changes_no_row(snapshot):
                rewritten += added
            else:
                new_bytes += added
                data_files += _number(summary, _ADDED_DATA_FILES)
                delete_files += _number(summary, _ADDED_DELETE_FILES)
        return Ledger(
            written_bytes=written + new_bytes,
            rewritten_bytes=rewritten,
            new_data_file_count=data_files,
            new_delete_file_count=delete_files,
            new_bytes=new_bytes,
        )

    def bytes_left(self, write_amplification: float) -> int:
        """Bytes that may be rewritten until all written bytes are `write_amplification` times the bytes of the
        writers."""
        return max(int((write_amplification - 1) * self.written_bytes) - self.rewritten_bytes, 0)

    def entry(self, planned_until: int) -> dict[str, str]:
        """The summary entry of a snapshot that is planned now. `planned_until` is the head's sequence number."""
        return {
            PLANNED_UNTIL: str(planned_until),
            WRITTEN_BYTES: str(self.written_bytes),
            REWRITTEN_BYTES: str(self.rewritten_bytes),
        }


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary is not None else {}


def _number(summary: Mapping[str, str], name: str) -> int:
    """The number; zero if another writer omitted it or wrote something else."""
    text = summary.get(name, "")
    return int(text) if text.isdecimal() else 0
