"""Streams of changes: the events of each snapshot of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table.snapshots import Snapshot

from spark_ext.service.changes.change_rows import add_changes
from spark_ext.service.reads.file_list import FileList
from spark_ext.service.session import Session
from spark_ext.service.streams.stream_part import Part, Piece
from tableformat.changes.changed_rows import changed_rows
from tableformat.changes.plan import ChangeTask, ChangeType, plan_snapshot
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.errors import SnapshotNotFoundError, UnsupportedFeatureError
from tableformat.merge_on_read.task import NarrowedTask
from tableformat.metadata.manifests.manifest_list import had_parent
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_view import SnapshotView


@dataclass(frozen=True, slots=True)
class ChangesOf:
    """SS-9: the changes of one table. A snapshot is never split, because consumers apply whole commits."""

    session: Session
    table: str
    derives: bool
    """Whether Spark derives updates or net changes from the rows."""

    def pieces(self, view: SnapshotView, part: Part) -> Sequence[Piece]:
        tasks = self._tasks(view, part)
        if tasks and not part.is_initial and self.derives:
            self._check_time(view, part.snapshot)
        return [Piece(len(tasks), sum(task.scan.data_file.record_count for task in tasks))] if tasks else ()

    def add(self, files: FileList, view: SnapshotView, part: Part, index: slice) -> None:
        del index  # A part has one piece.
        context = self.session.merge_context(view)
        if part.is_initial:
            tasks = self._tasks(view, part)
        else:
            tasks = list(changed_rows(view, [part.snapshot], None, context=context))
        add_changes(files, tasks, context)

    def _tasks(self, view: SnapshotView, part: Part) -> Sequence[ChangeTask]:
        """CF-3: the tasks of a part. The initial state of the table is returned as inserts."""
        snapshot, context = part.snapshot, self.session.merge_context(view)
        if part.is_initial:
            return [
                ChangeTask(
                    ordinal=0,
                    snapshot_id=snapshot.snapshot_id,
                    commit_version=snapshot.sequence_number or 0,
                    timestamp_ms=snapshot.timestamp_ms,
                    change_type=ChangeType.INSERT,
                    scan=NarrowedTask(scan=task),
                )
                for task in self.session.plan_view(view, AlwaysTrue()).tasks
            ]
        parent_id = snapshot.parent_snapshot_id
        is_known = parent_id is not None and view.metadata.snapshot_by_id(parent_id) is not None
        if not is_known and had_parent(view.io, snapshot) and not changes_no_row(snapshot):
            raise SnapshotNotFoundError(
                f"a stream from the changes of {self.table}: the snapshot before {snapshot.snapshot_id} has expired, "
                f"so the changes of {snapshot.snapshot_id} are unknown. Start the query with a new checkpoint: "
                "without a starting version it begins with the current table. To keep the snapshot that a stream has "
                "reached, tag it, or set history.expire.max-snapshot-age-ms."
            )
        return plan_snapshot(view, snapshot, context=context)

    def _check_time(self, view: SnapshotView, snapshot: Snapshot) -> None:
        """SS-10: raise UnsupportedFeatureError if the snapshot is not younger than all earlier ones. Spark derives by
        event time and silently drops rows that are not younger than those it has seen."""
        older = (each for each in ancestors(view.metadata, snapshot) if each.snapshot_id != snapshot.snapshot_id)
        if snapshot.timestamp_ms <= max((each.timestamp_ms for each in older), default=-1):
            raise UnsupportedFeatureError(
                f"a stream from the changes of {self.table}: snapshot {snapshot.snapshot_id} has an earlier time "
                "than its predecessor, because the clocks of the writers differ, but Spark derives updates and net "
                "changes by time. Read the stream without computeUpdates and netChanges, or read the range with "
                "spark.read.changes."
            )
