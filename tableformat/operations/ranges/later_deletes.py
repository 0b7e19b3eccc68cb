"""Deletes that were committed after a range was retired, and the rows that they would have deleted in it (RP-13).

    retire [0, 10)      delete id 7      convert      restore [0, 10)
                        ^ later: by key, so it can be applied to the restored files

A delete by values is in the history as a delete file. A delete that scanned for its rows records its filter in the
summary while any range is retired. If the range may contain a matching row, the snapshot is made even without files.
An UPDATE or MERGE records that it has no filter, because it changed no retired row. A delete that searched for rows by
keys or ranges records that its condition is not known. Other deletes, such as those by other engines, record nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import is_keyed
from tableformat.commit.snapshot_summary import changes_no_row
from tableformat.commit.table_diff import diff_snapshots, lineage
from tableformat.deletes.positions import PositionSet
from tableformat.merge_on_read.applicable_deletes import reached_data_files
from tableformat.merge_on_read.deleted_positions import MergeContext, deleted_positions
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.snapshot_choice import schema_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.operations.ranges.drops import drop_of, restored_tag
from tableformat.properties import RETIRED_PREFIX
from tableformat.scan.context import ReadContext
from tableformat.scan.matching_positions import matching_positions
from tableformat.scan.planner import match_deletes, plan_scan

DELETE_FILTERS: Final = "tableformat.delete-filters"
"""RP-13: summary key of a snapshot that scanned for rows while a range is retired: a JSON list of the filters of its
deletes, or null if the condition of one of them is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterDeletes:
    """The deletes on one branch after a retirement that may affect the retired data files."""

    by_key: tuple[DeleteFile, ...] = ()
    """Equality and range delete files that reach one of the data files, whether live or not."""
    by_filter: tuple[tuple[Snapshot, BooleanExpression], ...] = ()
    """Filters of deletes that scanned, with the snapshots that they made."""
    unknown: tuple[Snapshot, ...] = ()
    """Snapshots that deleted rows by a condition that is not recorded."""
    is_complete: bool = True
    """Whether every snapshot since the retirement is retained."""
    snapshots_count: int = 0
    """Number of commits that made these deletes."""

    @property
    def identity(self) -> tuple[str | int, ...]:
        """Equal for the same deletes: files never change, and the filters of a snapshot never change."""
        return (
            *(delete.file_path for delete in self.by_key),
            *(snapshot.snapshot_id for snapshot, _ in self.by_filter),
        )


def has_retired_ranges(view: SnapshotView) -> bool:
    """Whether a delete that scans must record its filter."""
    return any(name.startswith(RETIRED_PREFIX) for name in view.metadata.properties)


def later_deletes(head: SnapshotView, retirement: Snapshot, data_files: Sequence[DataFile]) -> LaterDeletes:
    """The deletes in the history of the head since the retirement. Reads only manifests."""
    path = lineage(head.metadata, head.snapshot, retirement.snapshot_id)
    if path is None:
        return LaterDeletes(is_complete=False)
    by_key: list[DeleteFile] = []
    by_filter: list[tuple[Snapshot, BooleanExpression]] = []
    unknown: list[Snapshot] = []
    concerned: set[int] = set()
    for before, snapshot in zip((retirement, *path), path, strict=False):
        if changes_no_row(snapshot) or drop_of(snapshot, head.metadata) or restored_tag(snapshot):
            continue
        diff = diff_snapshots(head.io, head.metadata, before, snapshot)
        keyed = [delete for delete in diff.added_delete_files if is_keyed(delete)]
        reaching = [delete for delete in keyed if reached_data_files(head.metadata, data_files, [delete])]
        filters = _filters_of(snapshot)
        scanned = len(diff.added_delete_files) > len(keyed) or bool(diff.removed_data_files)
        is_unknown = filters is None and (scanned or _records_deletes(snapshot))
        by_key += reaching
        by_filter += [(snapshot, each) for each in filters or ()]
        unknown += [snapshot] if is_unknown else []
        if reaching or filters or is_unknown:
            concerned.add(snapshot.snapshot_id)
    return LaterDeletes(
        by_key=tuple(by_key),
        by_filter=tuple(by_filter),
        unknown=tuple(unknown),
        snapshots_count=len(concerned),
    )


def positions_of(
    later: LaterDeletes, kept: SnapshotView, data_files: Sequence[DataFile], merge: MergeContext
) -> dict[DataFile, PositionSet]:
    """The rows of the retired data files that the later deletes delete; files without such rows are left out."""
    found: dict[DataFile, PositionSet] = {}

    def add(data: DataFile, positions: PositionSet) -> None:
        if positions:
            found[data] = positions.union(found[data]) if data in found else positions

    if later.by_key:
        tasks, covered = match_deletes(kept, data_files, later.by_key, merge)
        for task in tasks:
            add(task.data_file, deleted_positions(task, merge))
        for data in covered:
            add(data, PositionSet.every(data.record_count))
    for snapshot, expression in later.by_filter:
        view = replace(kept, schema=schema_of(kept.metadata, snapshot))
        context = replace(ReadContext.of(view), merge=merge)
        for task in plan_scan(view, expression, context=merge, data_files=data_files).tasks:
            add(task.data_file, matching_positions(task, context))
    return found


def _filters_of(snapshot: Snapshot) -> list[BooleanExpression] | None:
    """The recorded filters; None if the snapshot recorded none."""
    if not _records_deletes(snapshot):
        return None
    assert snapshot.summary is not None, "the record exists"
    found = json.loads(snapshot.summary.additional_properties[DELETE_FILTERS])
    return None if found is None else [BooleanExpression.model_validate(each) for each in found]


def _records_deletes(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and DELETE_FILTERS in snapshot.summary.additional_properties
