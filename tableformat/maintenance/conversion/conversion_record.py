"""Records what interrupted conversions have finished, so that the next one does not repeat it (MT-14).

    summary of a snapshot    tableformat.converted-deletes-until = 7      tableformat.converted-files-until = s3://.../f3

It says: in every data file with a path up to f3 that the table had at number 7, the rows that keyed deletes of that
moment delete are deleted by position too. That stays true in all descendants of the snapshot: row deletes of a data
file leave with the file only, or for others with the same rows.
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
    """What one snapshot of a conversion says."""

    sequence_number: int
    """Of the planned snapshot: files that came to the table later are not spoken of."""
    last_file_path: str
    """Data files up to this path, as text compares, are converted."""

    def to_summary(self) -> dict[str, str]:
        return {CONVERTED_DELETES_UNTIL: str(self.sequence_number), CONVERTED_FILES_UNTIL: self.last_file_path}

    def speaks_of(self, data: DataFile) -> bool:
        """Whether the data file was in the table when the conversion was planned, and was converted."""
        return arrival(data) <= self.sequence_number and data.file_path <= self.last_file_path


def arrival(file: ContentFile) -> int:
    """The number of the snapshot with which a live file came to the table; rewrites and merges carry older data
    numbers, so those do not show it."""
    assert file.file_sequence_number is not None, "files of a snapshot state when they came"
    return file.file_sequence_number


def conversion_records(view: SnapshotView, keyed_deletes: Iterable[DeleteFile]) -> tuple[ConversionRecord, ...]:
    """MT-14: the records in the history of the view that can speak of one of its keyed deletes."""
    oldest = min(map(arrival, keyed_deletes), default=view.sequence_number)
    newer = takewhile(
        lambda snapshot: (snapshot.sequence_number or 0) > oldest, ancestors(view.metadata, view.snapshot)
    )
    return tuple(record for record in map(_record_of, newer) if record is not None)


def converted_until(records: Iterable[ConversionRecord], data: DataFile) -> int:
    """MT-14: keyed deletes that came with this number or a smaller one need not be looked for in the data file."""
    return max((record.sequence_number for record in records if record.speaks_of(data)), default=-1)


def _record_of(snapshot: Snapshot) -> ConversionRecord | None:
    """None where another writer left half of one, or something else."""
    properties = snapshot.summary.additional_properties if snapshot.summary is not None else {}
    number, path = properties.get(CONVERTED_DELETES_UNTIL, ""), properties.get(CONVERTED_FILES_UNTIL)
    return ConversionRecord(int(number), path) if number.isdecimal() and path is not None else None
