"""Finds the rows and files that a replacement deletes, on the head of each attempt (RP-19).

replaced         [================)
head        [--]  [--]  [----]  [----]     in the middle: removed; on the right: one range delete of the interval
next head   [--]  [--]  [----]  [----] []  another commit appended: checked again
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pyiceberg.io import FileIO

from tableformat.commit.change import ChangeKind, TableChange, operation_of
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.publish_target import publish_target_of
from tableformat.deletes.spans.spans import SpanArray
from tableformat.metadata.content_file import DeleteFile
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.ranges.dropped import DroppedFiles, files_in_spans, live_delete_files

_PLANNED_ATTEMPTS: Final = 2
"""After this many lost races, a replacement is written blind, so that it succeeds despite continuous concurrent
writers."""


class ReplacedSpans:
    """Adds the removal of all rows in some spans to a change. The commit asserts the head that it was made for, so no
    other commit can come in between."""

    def __init__(self, branch: str, spans: SpanArray, write: Callable[[], DeleteFile]) -> None:
        """Remove rows of `branch`. `write` writes the range delete of the spans."""
        self._branch = branch
        self.spans = spans
        self._write = write
        self._delete: DeleteFile | None = None
        self.change: TableChange | None = None
        """The change of the last attempt."""
        self.deleted_row_count: int | None = None
        """Number of deleted rows, if whole files were removed and no delete had reached them; None if they were not
        counted."""

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The field ids of the columns of the spans."""
        return self.spans.key.field_ids

    def added_to(self, change: TableChange, head: SnapshotView, attempt: int) -> TableChange:
        """RP-19: the change for this head.

        It has its range delete even without a file to remove and without new rows. So a batch that finds nothing is
        committed, and is recognised when it is repeated (CP-14). A published branch also gets the range delete, because
        its target may have rows there that the branch lacks (MT-31).
        """
        is_planned = attempt <= _PLANNED_ATTEMPTS
        is_published = publish_target_of(head.metadata, self._branch) is not None
        found = files_in_spans(head, self.spans) if is_planned else DroppedFiles()
        changes_files = bool(found.inside or change.added_data_files)
        reaches_others = bool(found.straddling) or is_published or not is_planned
        deletes = (self._range_delete(),) if reaches_others or not changes_files else ()
        is_counted = not deletes and not (found.inside and live_delete_files(head))
        self.deleted_row_count = sum(data.record_count for data in found.inside) if is_counted else None
        self.change = replace(
            change,
            operation=operation_of(change.added_data_files, (*deletes, *found.inside)),
            kind=ChangeKind.SCAN_BASED if is_planned else ChangeKind.BLIND,
            added_delete_files=(*change.added_delete_files, *deletes),
            removed_data_files=found.inside,
            deleted_row_count=self.deleted_row_count,
            removed_delete_files=found.row_deletes,
            planned_snapshot_id=head.snapshot.snapshot_id if head.snapshot else None,
            planned_sequence_number=head.sequence_number,
        )
        return self.change

    def remove_unused(self, committed: TableChange, io: FileIO) -> None:
        """Remove the range delete if an earlier attempt needed it and the committed one did not."""
        if self._delete is not None and self._delete not in committed.added_delete_files:
            remove_leftovers(io, (self._delete.file_path,))

    def _range_delete(self) -> DeleteFile:
        if self._delete is None:
            self._delete = self._write()
        return self._delete
