"""Measures a snapshot from metadata, and from range delete files in the same way as scan planning."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import TypeAlias

from pyiceberg.table.metadata import TableMetadata

from tableformat.deletes.spans.bounds import KeyBounds, key_bounds
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.table_key import key_field_ids
from tableformat.maintenance.compaction.compaction_plan import CompactionOptions
from tableformat.maintenance.compaction.key_widths import KeySpace
from tableformat.maintenance.delete_files.dead_deletes import dead_deletes
from tableformat.maintenance.health.health import DeleteFileCounts, LookupDepth, TableHealth
from tableformat.merge_on_read.task import FileScanTask
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestEntry
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import OPEN_FILE_COST, OPEN_FILE_COST_DEFAULT, positive_int
from tableformat.scan.context import merge_context
from tableformat.scan.plan import ScanPlan
from tableformat.scan.planner import plan_scan
from tableformat.storage.storage import size_bytes

_BY_POSITION = (DeleteKind.POSITION, DeleteKind.DELETION_VECTOR)

DeleteEntry: TypeAlias = tuple[ManifestEntry, DeleteFile]


def measure(
    view: SnapshotView, metadata_location: str, *, table: str, branch: str
) -> tuple[TableHealth, Sequence[DataFile]]:
    """MT-20: the numbers, without findings, and the live data files. Opens no data file."""
    manifests = [manifest for manifest in manifests_of(view) if manifest.has_live_files]
    context = merge_context(view)
    plan = plan_scan(view, context=context)
    data_files = [*(task.data_file for task in plan.tasks), *plan.covered]
    deletes = _delete_entries(view)
    delete_files = [delete for _, delete in deletes]
    records = sum(file.record_count for file in data_files)
    deleted = _rows_deleted_by_position(delete_files, data_files, plan.covered)
    deleted_ratio = min(deleted / records, 1.0) if records else 0.0
    health = TableHealth(
        table=table,
        branch=branch,
        snapshot_id=view.snapshot.snapshot_id if view.snapshot else None,
        data_file_count=len(data_files),
        data_bytes=sum(file.file_size_bytes for file in data_files),
        record_count=records,
        small_file_count=sum(map(len, small_files_by_partition(view, data_files))),
        deleted_row_ratio=deleted_ratio,
        clean_file_count=sum(not task.has_deletes for task in plan.tasks),
        position_deleted_file_count=sum(task.has_deletes and not is_partial(task) for task in plan.tasks),
        partial_file_count=sum(is_partial(task) for task in plan.tasks),
        covered_file_count=len(plan.covered),
        lookup_depth=_lookup_depth(view, data_files),
        delete_files=_counts_by_kind(deletes, view.metadata),
        dead_delete_file_count=len(dead_deletes(view, data_files, delete_files, context)),
        read_amplification=_read_amplification(view, plan, delete_files, deleted_ratio),
        manifest_count=len(manifests),
        manifest_bytes=sum(manifest.manifest_length_bytes for manifest in manifests),
        snapshot_count=len(view.metadata.snapshots),
        metadata_bytes=size_bytes(view.io, metadata_location) or 0,
    )
    return health, data_files


def is_partial(task: FileScanTask) -> bool:
    """Whether readers compare keys of the file with deletes."""
    return bool(task.equality_deletes or task.range_deletes or task.range_delete_files)


def small_files_by_partition(view: SnapshotView, files: Iterable[DataFile]) -> list[list[DataFile]]:
    """Files below the size that compaction considers small, in partitions that have several."""
    limit = CompactionOptions.of(view).small_below_bytes
    by_partition: defaultdict[object, list[DataFile]] = defaultdict(list)
    for file in files:
        if file.file_size_bytes < limit:
            by_partition[partition_of(file)].append(file)
    return [members for members in by_partition.values() if len(members) > 1]


def _delete_entries(view: SnapshotView) -> list[DeleteEntry]:
    entries = (
        entry
        for manifest in manifests_of(view)
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    )
    return [(entry, entry.file) for entry in entries if isinstance(entry.file, DeleteFile)]


def _rows_deleted_by_position(
    deletes: Collection[DeleteFile], files: Collection[DataFile], covered: Iterable[DataFile]
) -> int:
    """An upper bound: rows of the covered files, and all positions that deletes name. A row may be named twice."""
    whole = {file.file_path: file.record_count for file in covered}
    live = {file.file_path for file in files}
    named = sum(
        delete.record_count
        for delete in deletes
        if delete.kind in _BY_POSITION
        and (delete.referenced_data_file is None or delete.referenced_data_file in live - whole.keys())
    )
    return sum(whole.values()) + named


def _counts_by_kind(deletes: Sequence[DeleteEntry], metadata: TableMetadata) -> tuple[DeleteFileCounts, ...]:
    committed = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
    oldest_known = min(committed.values(), default=None)
    now_ms = time.time_ns() // 1_000_000

    def age(entries: Sequence[DeleteEntry]) -> float | None:
        moments = [committed.get(entry.snapshot_id, oldest_known) for entry, _ in entries]
        known = [moment for moment in moments if moment is not None]
        return max(now_ms - min(known), 0) / 1000 if known else None

    by_kind = {kind: [each for each in deletes if each[1].kind is kind] for kind in DeleteKind}
    return tuple(
        DeleteFileCounts(
            kind=kind.value,
            file_count=len(members),
            total_bytes=sum({delete.file_path: delete.file_size_bytes for _, delete in members}.values()),
            deleted_count=sum(delete.record_count for _, delete in members),
            oldest_age_seconds=age(members),
        )
        for kind, members in by_kind.items()
        if members
    )


def _lookup_depth(view: SnapshotView, files: Sequence[DataFile]) -> LookupDepth | None:
    """MT-41: computed as in compaction. A lookup reads a single partition if the key alone determines the partition."""
    schema = view.metadata.schema()
    key_ids = key_field_ids(schema, view.metadata.properties)
    if not key_ids or not files:
        return None
    key = KeyColumns.of(schema, key_ids)
    widths = unions = 0.0
    largest = 1
    for members in _lookup_groups(view, files, set(key_ids)):
        bounds = [key_bounds(file, key) for file in members]
        space = KeySpace.of(bounds, [file.record_count for file in members])
        widths += float(space.widths().sum())
        unions += space.union_width(range(len(members)))
        largest = max(largest, _largest_depth(bounds))
    return LookupDepth(average=widths / unions if unions > 0 else 1.0, largest=largest)


def _lookup_groups(view: SnapshotView, files: Sequence[DataFile], key_ids: set[int]) -> list[list[DataFile]]:
    specs = view.metadata.specs()

    def decides(file: DataFile) -> bool:
        return {field.source_id for field in specs[file.spec_id].fields} <= key_ids

    groups: defaultdict[object, list[DataFile]] = defaultdict(list)
    for file in files:
        groups[partition_of(file) if decides(file) else None].append(file)
    return list(groups.values())


def _largest_depth(bounds: Sequence[KeyBounds]) -> int:
    """The largest number of files over one key: each lower cut adds a file, each upper cut removes one."""
    steps = sorted([(each.lower, 1) for each in bounds] + [(each.upper, -1) for each in bounds])
    return max(accumulate(step for _, step in steps), default=0)


def _read_amplification(
    view: SnapshotView, plan: ScanPlan, deletes: Sequence[DeleteFile], deleted_ratio: float
) -> float:
    properties = view.metadata.properties
    open_cost = positive_int(properties, OPEN_FILE_COST, OPEN_FILE_COST_DEFAULT)
    target_bytes = CompactionOptions.of(view).target_file_size_bytes
    all_bytes = plan.data_bytes + sum(file.file_size_bytes for file in plan.covered)
    alive_bytes = round(all_bytes * (1 - deleted_ratio))
    if not plan.tasks:
        return 1.0
    # RD-13: spans in entries are read with the manifests.
    opened = {delete.file_path: delete.file_size_bytes for delete in deletes if delete.range_spans is None}
    now = plan.data_bytes + sum(opened.values()) + open_cost * (len(plan.tasks) + len(opened))
    least = alive_bytes + open_cost * max(1, -(-alive_bytes // target_bytes))
    return max(now / least, 1.0)
