"""Rewrites manifests: entries clustered by partition, then by key, in manifests of the target size (MT-48).

    before    m1: a c | m2: b | m3: a d | m4: c          a scan of partition a reads m1 and m3
    after     m5: a a b | m6: c c d                      a scan of partition a reads m5

Each commit leaves a manifest of its own files. The planner skips manifests by the bounds of their partitions and keys
(FM-26). Filtered scans are therefore cheap to plan if each manifest holds few partitions and a contiguous range of
keys.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation

from tableformat.commit.change import ManifestRewrite, TableChange
from tableformat.commit.planned_change import PlannedChange
from tableformat.commit.transaction import commit_change
from tableformat.deletes.spans.bounds import key_bounds
from tableformat.errors import InvalidArgumentError, nearest_hint
from tableformat.keys.key_columns import KeyColumns
from tableformat.keys.table_key import key_field_ids
from tableformat.maintenance.running.progress import Progress, silent
from tableformat.markup.results import HtmlResult
from tableformat.metadata.content_file import DataFile
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.newest import move_to_newest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.summary_names import JOB
from tableformat.properties import MANIFEST_TARGET_SIZE_BYTES, MANIFEST_TARGET_SIZE_BYTES_DEFAULT, positive_int

ENTRIES_MAX: Final = 10_000
"""A filter that leaves one manifest decodes all of it, which takes a twentieth of a second for this number of entries.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteManifestsResult(HtmlResult):
    """The result of a rewrite of manifests. With `dry_run`: the expected result."""

    snapshot_id: int | None
    """The snapshot of the rewrite. If there was nothing to do, or with `dry_run`: the head of the branch."""
    rewritten_manifests_count: int = 0
    """Manifests that are no longer listed."""
    added_manifests_count: int = 0
    duration_seconds: float = 0.0
    dry_run: bool = False


def rewrite_manifests(
    iceberg: IcebergTable,
    branch: str,
    *,
    spec_id: int | None = None,
    sort_by: Sequence[str] | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RewriteManifestsResult:
    """Rewrite the manifests of the branch's newest snapshot, and move the handle to the result.

    `spec_id` limits the job to manifests of one partition spec; None means all, with separate manifests for each spec.
    `sort_by` names the partition fields that come first in the order. They belong to `spec_id` or the table's current
    spec, and the job is then limited to this spec. No file is added or removed. Manifests that are already in order
    remain unchanged. Safe with concurrent writers: the manifests are made from the head of each commit attempt. Raises
    InvalidArgumentError for an unknown spec or field.
    """
    started = time.perf_counter()
    move_to_newest(iceberg)
    if spec_id is not None and spec_id not in iceberg.metadata.specs():
        known = ", ".join(map(str, sorted(iceberg.metadata.specs())))
        raise InvalidArgumentError(f"the table has no partition spec {spec_id!r}, only {known}.")
    spec = iceberg.metadata.spec() if spec_id is None else iceberg.metadata.specs()[spec_id]
    fields_first = () if sort_by is None else _positions(spec, sort_by)
    only_spec = spec_id if sort_by is None else spec.spec_id
    if dry_run:
        view = head_view(iceberg.metadata, iceberg.io, branch)
        return _result(view, plan_manifests(view, only_spec, fields_first, progress), started, dry_run=True)

    planned = _RewriteOnHead(only_spec, fields_first, progress)
    commit_change(iceberg, planned, ref=branch, snapshot_properties={JOB: "rewrite_manifests"}).move(iceberg)
    return _result(head_view(iceberg.metadata, iceberg.io, branch), planned.rewrite, started, dry_run=False)


def _positions(spec: PartitionSpec, names: Sequence[str]) -> tuple[int, ...]:
    """The positions of partition fields in the spec."""
    known = [field.name for field in spec.fields]
    if not names:
        raise InvalidArgumentError("sort_by must not be empty. Pass partition fields, or omit it.")
    for name in names:
        if name not in known:
            raise InvalidArgumentError(
                f"sort_by: {name!r} is not a field of partition spec {spec.spec_id}, which has "
                f"{', '.join(known) or 'no fields'}.{nearest_hint(name, known)}"
            )
    return tuple(map(known.index, names))


class _RewriteOnHead(PlannedChange):
    """MT-48: planned again on the head of each attempt, so other commits never cause a conflict."""

    def __init__(self, spec_id: int | None, fields_first: tuple[int, ...], progress: Progress | None) -> None:
        self._spec_id = spec_id
        self._fields_first = fields_first
        self._progress = progress
        self.rewrite: ManifestRewrite | None = None
        """The last planned rewrite."""

    def change_on(self, head: SnapshotView, attempt: int) -> TableChange:
        del attempt
        self.rewrite = plan_manifests(head, self._spec_id, self._fields_first, self._progress)
        return TableChange(operation=Operation.REPLACE, manifest_rewrite=self.rewrite)


def plan_manifests(
    view: SnapshotView, spec_id: int | None, fields_first: tuple[int, ...] = (), progress: Progress | None = None
) -> ManifestRewrite | None:
    """MT-48: the manifests to replace, and their entries in new clusters; None if all are in order.

    `fields_first` are the positions of partition fields of the spec that come first in the order.
    """
    properties = view.metadata.properties
    target_bytes = positive_int(properties, MANIFEST_TARGET_SIZE_BYTES, MANIFEST_TARGET_SIZE_BYTES_DEFAULT)
    groups: defaultdict[tuple[ManifestContent, int], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests_of(view):
        is_listed = manifest.has_live_files or _names_removed_files(manifest)
        if is_listed and (spec_id is None or manifest.partition_spec_id == spec_id):
            groups[manifest.content, manifest.partition_spec_id].append(manifest)
    replaced: set[str] = set()
    clusters: list[tuple[ManifestEntry, ...]] = []
    tell = progress or silent
    total, done = sum(map(len, groups.values())), 0
    tell(0, total, "manifests")
    for manifests in groups.values():
        entries = [live_entries(read_manifest(view.io, manifest, view.metadata)) for manifest in manifests]
        size_bytes = sum(manifest.manifest_length_bytes for manifest in manifests)
        order = partial(_order, key=key_columns(view), fields_first=fields_first)
        live = [part for part in entries if part]
        wanted = _clusters(live, size_bytes, target_bytes, order)
        if not _is_in_order(live, wanted):
            clusters += wanted
            replaced.update(manifest.manifest_path for manifest in manifests)
        else:
            purged = [place for place, manifest in enumerate(manifests) if _names_removed_files(manifest)]
            clusters += [tuple(entries[place]) for place in purged if entries[place]]
            replaced.update(manifests[place].manifest_path for place in purged)
        done += len(manifests)
        tell(done, total, "manifests")
    return ManifestRewrite(frozenset(replaced), tuple(clusters)) if replaced else None


def _names_removed_files(manifest: ManifestFile) -> bool:
    """MT-48: whether the manifest has entries of removed files, whose bounds are from rows that may be deleted for
    good."""
    return manifest.deleted_files_count > 0


def key_columns(view: SnapshotView) -> KeyColumns | None:
    """The key of the table; None for a table without one."""
    schema = view.metadata.schema()
    field_ids = key_field_ids(schema, view.metadata.properties)
    return KeyColumns.of(schema, field_ids) if field_ids else None


def _clusters(
    entries: Sequence[Sequence[ManifestEntry]],
    size_bytes: int,
    target_bytes: int,
    order: Callable[[ManifestEntry], tuple[Any, ...]],
) -> list[tuple[ManifestEntry, ...]]:
    """The entries in order, in manifests of about the target size and of equal numbers of entries, at most
    `ENTRIES_MAX`."""
    ordered = sorted((entry for part in entries for entry in part), key=order)
    if not ordered:
        return []
    count = max(min(-(-size_bytes // target_bytes), len(ordered)), -(-len(ordered) // ENTRIES_MAX), 1)
    per_manifest = -(-len(ordered) // count)
    return [tuple(ordered[start : start + per_manifest]) for start in range(0, len(ordered), per_manifest)]


def _is_in_order(before: Sequence[Sequence[ManifestEntry]], after: Sequence[Sequence[ManifestEntry]]) -> bool:
    """Whether the same files are together before and after, so that rewriting them would gain nothing."""

    def together(parts: Sequence[Sequence[ManifestEntry]]) -> set[frozenset[tuple[str, int | None]]]:
        return {
            frozenset((entry.file.file_path, getattr(entry.file, "content_offset", None)) for entry in part)
            for part in parts
        }

    return together(before) == together(after)


def _order(entry: ManifestEntry, key: KeyColumns | None, fields_first: tuple[int, ...]) -> tuple[Any, ...]:
    """The order by partition, nulls first, NaN last, then by smallest key. Equal entries and delete files keep their
    order."""
    file = entry.file
    values = (*(file.partition[place] for place in fields_first), *file.partition)
    smallest = key_bounds(file, key).lower if key is not None and isinstance(file, DataFile) else b""
    return (*(_value_order(value) for value in values), smallest)


def _value_order(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value)  # noqa: PLR0124 - only NaN differs from itself


def _result(
    view: SnapshotView, rewrite: ManifestRewrite | None, started: float, *, dry_run: bool
) -> RewriteManifestsResult:
    return RewriteManifestsResult(
        snapshot_id=view.snapshot.snapshot_id if view.snapshot is not None else None,
        rewritten_manifests_count=len(rewrite.replaced) if rewrite is not None else 0,
        added_manifests_count=len(rewrite.clusters) if rewrite is not None else 0,
        duration_seconds=time.perf_counter() - started,
        dry_run=dry_run,
    )
