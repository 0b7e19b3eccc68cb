"""Records the completed part of interrupted conversions, so that the next run does not repeat it (MT-14).

    summary of a snapshot    tableformat.converted-deletes-until = 7      tableformat.converted-files-until = s3://.../f3

The record above covers every data file with a path up to f3 that was in the table at sequence number 7. In these files,
every row that a keyed delete of that time deletes is also deleted by position. This remains true in all descendants of
the snapshot: the row deletes of a data file are removed only with the file, or replaced by others with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from pyiceberg.table.snapshots import Snapshot

from tableformat.metadata.content_file import ContentFile, DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView

CONVERTED_DELETES_UNTIL: Final = "tableformat.converted-deletes-until"
CONVERTED_FILES_UNTIL: Final = "tableformat.converted-files-until"


@dataclass(frozen=True, slots=True)
class ConversionRecord:
    """The progress that one snapshot of a conversion records."""

    sequence_number: int
    """The sequence number of the planned snapshot. Files that were added later are not covered."""
    last_file_path: str
    """Data files up to this path, in text order, are converted."""

    def to_summary(self) -> dict[str, str]:
        return {CONVERTED_DELETES_UNTIL: str(self.sequence_number), CONVERTED_FILES_UNTIL: self.last_file_path}

    def speaks_of(self, data: DataFile) -> bool:
        """Whether the data file was in the table when the conversion was planned, and was converted."""
        return arrival(data) <= self.sequence_number and data.file_path <= self.last_file_path


def arrival(file: ContentFile) -> int:
    """The sequence number of the snapshot that added a live file. Rewrites and merges carry older data sequence
    numbers, so those do not show it."""
    assert file.file_sequence_number is not None, "files of a snapshot have sequence numbers"
    return file.file_sequence_number


def conversion_records(view: SnapshotView, keyed_deletes: Iterable[DeleteFile]) -> tuple[ConversionRecord, ...]:
    """MT-14: the records in the history of the view that may cover one of its keyed deletes."""
    oldest = min(map(arrival, keyed_deletes), default=view.sequence_number)
    newer = takewhile(
        lambda snapshot: (snapshot.sequence_number or 0) > oldest, ancestors(view.metadata, view.snapshot)
    )
    return tuple(record for record in map(_record_of, newer) if record is not None)


def converted_until(records: Iterable[ConversionRecord], data: DataFile) -> int:
    """MT-14: the data file need not be searched for keyed deletes that were added with this sequence number or a
    smaller one."""
    return max((record.sequence_number for record in records if record.speaks_of(data)), default=-1)


def _record_of(snapshot: Snapshot) -> ConversionRecord | None:
    """None if another writer left an incomplete record, or a value of another form."""
    properties = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    number, path = properties.get(CONVERTED_DELETES_UNTIL, ""), properties.get(CONVERTED_FILES_UNTIL)
    return ConversionRecord(int(number), path) if number.isdecimal() and path is not None else None
