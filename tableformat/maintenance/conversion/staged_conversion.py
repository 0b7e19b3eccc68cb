"""Stages the conversion of one snapshot: a snapshot with the same rows and only row deletes, to which no ref points.

    source    s7    2 data files, 1 range delete        main
    staged    s8    2 data files, 1 position delete     parent s7, summary tableformat.converted-from = 7

Other engines read the staged snapshot in place of its source (specs/serve.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, ValidatableTableRequirement

from tableformat.commit.by_format_version import OnlyInVersion
from tableformat.commit.change import CarriedManifests, FileKey, TableChange, file_keys
from tableformat.commit.commit_status import CommitStatus
from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.commit.rest_catalog import is_rest
from tableformat.commit.snapshot_summary import ROWS_UNCHANGED
from tableformat.commit.table_diff import live_files
from tableformat.commit.transaction import commit_change
from tableformat.maintenance.conversion.conversion_plan import plan_conversion
from tableformat.maintenance.conversion.conversion_steps import (
    ConversionKey,
    ConversionProgress,
    change_of_slice,
    convert_slice,
    dead_after,
)
from tableformat.maintenance.conversion.convert_files import ConversionContext, ConvertedFile, discard
from tableformat.maintenance.running.executors import LOCAL, task_runner
from tableformat.metadata.content_file import DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of, read_manifest_list
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.snapshot_index import snapshot_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.metadata.staged_conversions import CONVERTED_FROM, STAGED_AT_MS
from tableformat.scan.context import merge_context

_MANIFEST_ENTRIES: Final = 250
"""Entries of a new delete manifest. A change of one entry writes the others of its manifest again."""
_MANIFESTS: Final = 64
"""About the most delete manifests of a conversion; larger ones have more entries."""


@dataclass(frozen=True, slots=True)
class NamedDeletes:
    """A delete manifest of a staged conversion, and its entries."""

    manifest: ManifestFile
    files: frozenset[FileKey]


@dataclass(frozen=True, slots=True)
class StagedConversion:
    """A staged snapshot, and what the next conversion of the table can use again."""

    snapshot: Snapshot
    files: Mapping[ConversionKey, ConvertedFile] = field(default_factory=dict)
    """SV-4: the converted data files, by everything that determines their deleted rows."""
    manifests: tuple[NamedDeletes, ...] = ()
    """The delete manifests that name their row deletes."""


def delete_kinds(view: SnapshotView) -> frozenset[DeleteKind]:
    """The kinds of the live deletes of the snapshot. Other engines cannot read a snapshot with keyed kinds."""
    if view.snapshot is None:
        return frozenset()
    files = live_files(view.io, view.metadata, manifests_of(view), ManifestContent.DELETES)
    return frozenset(file.kind for file in files if isinstance(file, DeleteFile))


def stage_conversion(
    iceberg: IcebergTable, source: Snapshot, earlier: StagedConversion | None = None
) -> StagedConversion:
    """Convert the equality and range deletes of a snapshot, and add the result to the table as a snapshot without a
    ref. Data files whose deletes did not change since the `earlier` conversion are not searched again.

    Raises SnapshotNotFoundError if the source has expired, and the errors of a commit.
    """
    view = view_at(iceberg.metadata, iceberg.io, source.snapshot_id)
    plan = plan_conversion(view, merge_context(view), None, max_slices=1)
    (part,) = plan.slices
    so_far = ConversionProgress(plan, ConversionContext.of(view))
    reused = _reusable(iceberg, earlier)
    waiting = dict(reused)
    status = CommitStatus()
    files: dict[ConversionKey, ConvertedFile] = {}
    try:
        files = convert_slice(
            task_runner(LOCAL), iceberg.io, part, so_far.context, waiting, is_dry_run=False, tell=_count_nothing
        )
        change = change_of_slice(files.values(), part, dead_after(files.values(), part, so_far), so_far)
        known = earlier.manifests if earlier is not None and reused else ()
        change = replace(change, carried=_carried(change, known))
        named_by = earlier.snapshot if earlier is not None and not reused.keys().isdisjoint(files) else None
        outcome = commit_change(
            iceberg,
            _StagedChange(change, view, source.snapshot_id, named_by),
            snapshot_properties={
                ROWS_UNCHANGED: "true",
                CONVERTED_FROM: str(source.snapshot_id),
                STAGED_AT_MS: str(time.time_ns() // 1_000_000),
            },
            is_staged=True,
            timestamp_ms=source.timestamp_ms,
            status=status,
        )
    except BaseException:
        if not status.may_be_named:
            # Files of the earlier conversion are named by its snapshot.
            discard(iceberg.io, [file for key, file in waiting.items() if key not in reused])
        raise
    outcome.move(iceberg)
    staged = snapshot_by_id(outcome.metadata, outcome.snapshot_id or 0)
    assert staged is not None, "the commit added the snapshot"
    return StagedConversion(staged, files, tuple(_named_by(iceberg.io, staged, change, known)))


def _count_nothing(file_count: int) -> None:
    """The progress of a conversion that nobody watches."""
    del file_count


def _reusable(iceberg: IcebergTable, earlier: StagedConversion | None) -> Mapping[ConversionKey, ConvertedFile]:
    """SV-4: the files of the earlier conversion, as long as its snapshot protects them. A catalog service cannot check
    that it still does when the commit is applied."""
    if earlier is None or is_rest(iceberg.catalog):
        return {}
    return earlier.files if _is_unchanged(earlier.snapshot, iceberg.metadata) else {}


def _carried(change: TableChange, manifests: Sequence[NamedDeletes]) -> CarriedManifests:
    """SV-4: the manifests whose entries are all named again. Small ones are written again, together with the new
    entries, so that their number does not grow."""
    added = file_keys(change.added_delete_files)
    entries_max = max(_MANIFEST_ENTRIES, -(-len(added) // _MANIFESTS))
    carried = [each for each in manifests if len(each.files) >= entries_max // 2 and each.files <= added]
    named = frozenset(key for each in carried for key in each.files)
    return CarriedManifests(tuple(each.manifest for each in carried), named, entries_max)


def _named_by(
    io: FileIO, snapshot: Snapshot, change: TableChange, carried: Sequence[NamedDeletes]
) -> Iterator[NamedDeletes]:
    """The delete manifests of the conversion, without those of its source."""
    listed = read_manifest_list(io, snapshot.manifest_list)
    paths = {manifest.manifest_path for manifest in change.carried.manifests}
    yield from (each for each in carried if each.manifest.manifest_path in paths)
    own = [
        manifest
        for manifest in listed
        if manifest.content is ManifestContent.DELETES and manifest.added_snapshot_id == snapshot.snapshot_id
    ]
    # New entries come first in a manifest list; manifests of the source without its keyed deletes follow.
    for manifest, files in zip(own, change.new_delete_manifests, strict=False):
        assert manifest.added_files_count == len(files), "the manifests are in the order of the change"
        yield NamedDeletes(manifest, file_keys(files))


def _is_unchanged(snapshot: Snapshot, metadata: TableMetadata) -> bool:
    """Whether the table still has the snapshot with the same files. An erasure replaces its files (MT-111)."""
    found = snapshot_by_id(metadata, snapshot.snapshot_id)
    return found is not None and found.manifest_list == snapshot.manifest_list


class _StagedChange(OnlyInVersion):
    """SV-2: the conversion of one snapshot, which stays the parent if the head of the branch moves."""

    def __init__(self, change: TableChange, planned: SnapshotView, source_id: int, named_by: Snapshot | None) -> None:
        """`named_by` is the staged snapshot whose delete files the change adds again."""
        super().__init__(change, planned, "conversion")
        self._source_id = source_id
        self._named_by = named_by

    def base_on(self, head: SnapshotView) -> SnapshotView:
        return view_at(head.metadata, head.io, self._source_id)

    def beside(self, head: SnapshotView, snapshot: Snapshot) -> UpdatesAndRequirements:
        del head, snapshot
        if self._named_by is None:
            return (), ()
        # PyIceberg's union of requirements lists only requirements that a catalog service knows.
        return (), (cast(TableRequirement, _HasSnapshot(snapshot=self._named_by)),)


class _HasSnapshot(ValidatableTableRequirement):
    """Checked by catalogs that check requirements in this process."""

    type: str = "assert-has-snapshot"
    snapshot: Snapshot

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override] # as PyIceberg's own
        """Raises CommitFailedException if the snapshot expired or was rewritten: its files may have been removed."""
        if base_metadata is not None and not _is_unchanged(self.snapshot, base_metadata):
            raise CommitFailedException(f"Requirement failed: snapshot {self.snapshot.snapshot_id} expired or changed")
