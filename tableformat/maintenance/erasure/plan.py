"""The plan of an erasure in one state of a table: the files that are written again, and the new metadata."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import AddSnapshotUpdate

from tableformat.commit.change import TableChange
from tableformat.commit.history_change import ERASED, ERASURE_PENDING
from tableformat.commit.leftovers import remove_leftovers
from tableformat.commit.metadata_commit import branch_at
from tableformat.commit.metadata_update import apply_updates
from tableformat.commit.snapshot_producer import SnapshotProducer
from tableformat.deletes.positions import PositionSet
from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.maintenance.erasure.contents import TableContents, read_contents
from tableformat.maintenance.erasure.data_files import ErasureContext, find_rows, rewrite_data_file
from tableformat.maintenance.erasure.delete_files import rewrite_deletes
from tableformat.maintenance.erasure.history import RewrittenHistory, rewrite_snapshots
from tableformat.maintenance.erasure.outcome import ErasedRows, Outcomes
from tableformat.maintenance.erasure.proof import in_document
from tableformat.maintenance.erasure.scope import ErasureScope
from tableformat.maintenance.erasure.summaries import erased_properties
from tableformat.maintenance.running.progress import Progress
from tableformat.maintenance.running.tasks import in_threads
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.metadata_log import logged_documents
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.storage.location import local_path
from tableformat.write.created_files import CreatedFiles

_REMOTE_THREADS: Final = 8


@dataclass(slots=True)
class Planned:
    """The plan for one state of the table."""

    table: IcebergTable
    """As loaded for the attempt."""
    contents: TableContents
    metadata: TableMetadata | None
    """The metadata without the erased rows; None if nothing changes."""
    rewritten_snapshots_count: int = 0
    changed_entries: tuple[str, ...] = ()
    statistics_count: int = 0


@dataclass(slots=True)
class TablePlanner:
    """The erasure in one table over all its attempts. Each file is written again once (MT-113)."""

    scope: ErasureScope
    created: CreatedFiles
    tell: Progress
    outcomes: Outcomes = field(default_factory=Outcomes)
    history: RewrittenHistory = field(default_factory=RewrittenHistory)
    searched: set[str] = field(default_factory=set)
    """The data files that were searched."""

    def plan(self, table: IcebergTable, *, dry_run: bool) -> Planned:
        """Search files that are new since the last attempt, and write what changes. With `dry_run` nothing is
        written."""
        metadata = table.metadata
        context = ErasureContext(metadata, table.io, self.scope, self.created)
        contents = read_contents(metadata, table.io)
        properties, changed = erased_properties(metadata.properties, context)
        self._search(contents, context, dry_run=dry_run)
        if dry_run:
            return Planned(table, contents, None, changed_entries=tuple(sorted(changed)))
        rewrite_deletes(contents.delete_files, contents.data_files, self.outcomes, context)
        snapshots, left_out = rewrite_snapshots(contents, self.outcomes, context, self.history)
        pairs = zip(snapshots, metadata.snapshots, strict=True)
        rewritten = sum(new is not old for new, old in pairs)
        planned = Planned(table, contents, None, rewritten, tuple(sorted({*changed, *left_out})))
        if rewritten or changed or _log_names(table, self.scope):
            planned.statistics_count = len(metadata.statistics) + len(metadata.partition_statistics)
            planned.metadata = self._metadata(table, snapshots, properties)
        return planned

    def _search(self, contents: TableContents, context: ErasureContext, *, dry_run: bool) -> None:
        new = [data for path, data in contents.data_files.items() if path not in self.searched]
        threads = os.cpu_count() or 1 if local_path(context.metadata.location) is not None else _REMOTE_THREADS
        call = partial(_searched, context=context, ambiguous=contents.ambiguous_row_ids, dry_run=dry_run)
        self.tell(0, len(new), "data files searched")
        with closing(in_threads(call, new, threads, discard=lambda _: None)) as running:
            for done, (index, outcome) in enumerate(running, 1):
                self.searched.add(new[index].file_path)
                if outcome is not None:
                    self.outcomes.data[new[index].file_path] = outcome
                self.tell(done, len(new), "data files searched")

    def _metadata(self, table: IcebergTable, snapshots: list[Snapshot], properties: dict[str, str]) -> TableMetadata:
        """MT-116: statistics leave the table, and so does the log of earlier metadata files. The head of each branch
        whose files changed gets a new snapshot, so that commits in progress are made again (CP-91)."""
        base = table.metadata
        before = {each.snapshot_id: each.manifest_list for each in base.snapshots}
        metadata = base.model_copy(
            update={
                "snapshots": snapshots,
                "statistics": [],
                "partition_statistics": [],
                "properties": {**properties, ERASURE_PENDING: table.metadata_location},
            }
        )
        for name, ref in base.refs.items():
            head = snapshot_by_id(metadata, ref.snapshot_id)
            is_branch = ref.snapshot_ref_type is SnapshotRefType.BRANCH
            if is_branch and head is not None and head.manifest_list != before[head.snapshot_id]:
                metadata = self._with_new_head(metadata, table, name, head)
        now_ms = time.time_ns() // 1_000_000
        return metadata.model_copy(
            update={"metadata_log": [], "last_updated_ms": max(now_ms, base.last_updated_ms, metadata.last_updated_ms)}
        )

    def _with_new_head(
        self, metadata: TableMetadata, table: IcebergTable, branch: str, head: Snapshot
    ) -> TableMetadata:
        view = SnapshotView(metadata, table.io, head, metadata.schema())
        producer = SnapshotProducer(metadata, {ERASED: "true"})
        snapshot = producer.produce(view, TableChange(operation=Operation.REPLACE))
        self.history.locations += producer.written_locations
        moved = branch_at(metadata, branch, snapshot.snapshot_id)
        return apply_updates(metadata, table.metadata_location, [AddSnapshotUpdate(snapshot=snapshot), moved])

    @property
    def written_locations(self) -> list[str]:
        """All files that were written, of any attempt."""
        deletes = [each.file_path for each in self.outcomes.deletes.values() if each is not None]
        data = [each.after.file_path for each in self.outcomes.data.values() if each.after is not None]
        return list(dict.fromkeys([*data, *deletes, *self.history.locations]))

    def remove_written(self, table: IcebergTable) -> None:
        """Remove everything that was written, after a failure."""
        self.created.remove(table.io)
        remove_leftovers(table.io, self.written_locations)


def _searched(
    data: DataFile, context: ErasureContext, *, ambiguous: frozenset[str], dry_run: bool
) -> ErasedRows | None:
    found: PositionSet | None = find_rows(data, context)
    if found is None:
        return None
    if data.file_path in ambiguous and len(found) < data.record_count:
        raise UnsupportedFeatureError(
            f"{data.file_path} has different row ids on two branches, because the table was upgraded to version 3 "
            "after they parted, so no file without the erased rows can have both. Nothing was changed. Drop one of the "
            "branches, expire its snapshots, and erase again."
        )
    return ErasedRows(data, found) if dry_run else rewrite_data_file(data, found, context)


def _log_names(table: IcebergTable, scope: ErasureScope) -> bool:
    """Whether an earlier metadata file has the scope, for example in the summary of an expired snapshot."""
    try:
        return any(in_document(document, scope) for document in logged_documents(table.metadata, table.io))
    except CorruptFileError:
        return True
