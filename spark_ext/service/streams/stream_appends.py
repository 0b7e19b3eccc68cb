"""Streams of appends: the rows of the table when a stream begins, and rows that are appended later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table.snapshots import Operation, Snapshot

from spark_ext.service.reads.file_list import FileList
from spark_ext.service.reads.scans import DELETED, positions_of_tasks
from spark_ext.service.session import Session
from spark_ext.service.streams.stream_options import SKIP_OPTIONS, StreamOptions
from spark_ext.service.streams.stream_part import Part, Piece
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.rules import committed_sequence_number
from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.snapshot_view import SnapshotView

_VERBS: Final = {Operation.DELETE: "deletes", Operation.OVERWRITE: "replaces"}
_ALIVE: Final = {DELETED: pa.scalar(False)}


@dataclass(frozen=True, slots=True)
class Appends:
    """The appends of one table."""

    session: Session
    table: str
    options: StreamOptions

    def pieces(self, view: SnapshotView, part: Part) -> Sequence[Piece]:
        """The files of a part. Raises UnsupportedFeatureError for a snapshot with changes other than appends."""
        if not part.is_initial and not self._appends(part.snapshot):
            return ()
        return [Piece(1, file.record_count) for file in _files(view, part)]

    def add(self, files: FileList, view: SnapshotView, part: Part, index: slice) -> None:
        """Add these files of a part.

        Deletes are applied if they may affect the rows. This is the case for the rows with which the stream begins, and
        for files that were carried from another branch, which are older than the snapshot that adds them. If a query
        requests one metadata column, Spark reads all of them, so `_deleted` does not return deleted rows here.
        """
        if not part.is_initial and not self._appends(part.snapshot):
            return
        chosen = _files(view, part)[index]
        if not part.is_initial and all(file.sequence_number == view.sequence_number for file in chosen):
            for file in chosen:
                files.add(file, PositionSet.empty(), constants=_ALIVE)
            return
        paths = {file.file_path for file in chosen}
        plan = self.session.plan_view(view, AlwaysTrue())
        context = self.session.merge_context(view)
        tasks = [task for task in plan.tasks if task.data_file.file_path in paths]
        for task, deleted in zip(tasks, positions_of_tasks(tasks, context), strict=True):
            if len(deleted) < task.data_file.record_count:
                files.add(task.data_file, deleted, constants=_ALIVE)

    def _appends(self, snapshot: Snapshot) -> bool:
        """SS-3: whether the snapshot's files are read; False if the snapshot is skipped."""
        operation = Operation.OVERWRITE if snapshot.summary is None else snapshot.summary.operation
        if operation is Operation.APPEND:
            return True
        if changes_no_row(snapshot) or operation in self.options.skipped:
            return False
        raise UnsupportedFeatureError(
            f"a stream from {self.table}: snapshot {snapshot.snapshot_id} {_VERBS[operation]} rows, which a stream "
            "of appended rows cannot show. Read the changes with spark.readStream.changes(...), or skip such "
            f"snapshots with the option {SKIP_OPTIONS[operation]}=true."
        )


def _files(view: SnapshotView, part: Part) -> list[DataFile]:
    """SS-4: data files of the part, in a stable order: by commit, then by the snapshot's manifests. Otherwise a sink
    that replaces rows could overwrite newer rows with older ones."""
    found = []
    for manifest in manifests_of(view):
        is_older = manifest.added_snapshot_id != part.snapshot.snapshot_id
        if manifest.content is not ManifestContent.DATA or (is_older and not part.is_initial):
            continue
        for entry in read_manifest(view.io, manifest, view.metadata):
            is_added = entry.status is EntryStatus.ADDED and entry.snapshot_id == part.snapshot.snapshot_id
            is_wanted = entry.status is not EntryStatus.DELETED if part.is_initial else is_added
            if is_wanted and isinstance(entry.file, DataFile):
                found.append(entry.file)
    return sorted(found, key=committed_sequence_number) if part.is_initial else found
