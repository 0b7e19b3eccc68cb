"""The manifests, manifest lists and snapshots of a table without the erased rows (MT-116)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot, Summary

from tableformat.commit.change import file_key
from tableformat.commit.snapshot_producer import key_summaries
from tableformat.commit.snapshot_summary import count_totals, recounted
from tableformat.maintenance.erasure.contents import ManifestKey, TableContents, manifest_key
from tableformat.maintenance.erasure.data_files import ErasureContext
from tableformat.maintenance.erasure.outcome import Outcomes
from tableformat.maintenance.erasure.summaries import erased_summary
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import write_changed_list
from tableformat.metadata.manifests.manifest_writer import write_manifest
from tableformat.metadata.partition_column import schemas_newest_first
from tableformat.storage.location_provider import location_provider


@dataclass(slots=True)
class RewrittenHistory:
    """The metadata files that were written for an erasure; used again by its next attempt."""

    manifests: dict[tuple[ManifestKey, tuple[ManifestEntry, ...]], ManifestFile] = field(default_factory=dict)
    """By the manifest before and its new entries."""
    lists: dict[tuple[str, tuple[ManifestFile, ...]], str] = field(default_factory=dict)
    locations: list[str] = field(default_factory=list)
    """All files, in the order of their creation."""

    def new_location(self, metadata: TableMetadata, name: str) -> str:
        location = location_provider(metadata.location, metadata.properties).new_metadata_location(name)
        self.locations.append(location)
        return location


def new_entries(
    entries: Sequence[ManifestEntry], contents: TableContents, outcomes: Outcomes, context: ErasureContext
) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest without the erased rows; the same entries if none changes."""
    found = [(entry, _new_entry(entry, contents, outcomes, context)) for entry in entries]
    if all(new is entry for entry, new in found):
        return tuple(entries)
    return tuple(new for _, new in found if new is not None)


def _new_entry(
    entry: ManifestEntry, contents: TableContents, outcomes: Outcomes, context: ErasureContext
) -> ManifestEntry | None:
    """None if the file has no rows or deletes left. A file that has left all retained snapshots keeps its entry, which
    may state that it was removed, without bounds that may be of erased rows."""
    file = entry.file
    if isinstance(file, DataFile):
        outcome = outcomes.data.get(file.file_path)
        if outcome is not None:
            if outcome.after is None:
                return None
            return replace(entry, file=_with_numbers(outcome.after, file))
        if file.file_path in contents.data_files:
            return entry
    else:
        key = file_key(file)
        if key in outcomes.deletes_before:
            after = outcomes.deletes[key]
            return None if after is None else replace(entry, file=_with_numbers(after, file))
        if key in contents.delete_files:
            return entry
    return _of_gone_file(entry, context)


def _with_numbers(after: DataFile | DeleteFile, stated: DataFile | DeleteFile) -> DataFile | DeleteFile:
    """The new file with the numbers of this entry."""
    numbered = replace(
        after,
        sequence_number=stated.sequence_number,
        file_sequence_number=stated.file_sequence_number,
        sort_order_id=stated.sort_order_id,
    )
    if isinstance(numbered, DataFile) and isinstance(stated, DataFile):
        return replace(numbered, first_row_id=stated.first_row_id)
    return numbered


def _of_gone_file(entry: ManifestEntry, context: ErasureContext) -> ManifestEntry | None:
    file = entry.file
    paths = (file.file_path, file.referenced_data_file) if isinstance(file, DeleteFile) else (file.file_path,)
    if context.in_partition(file) or any(map(context.names_path, paths)):
        return None
    if not (file.lower_bounds or file.upper_bounds) or not context.scope.may_hold(file):
        return entry
    bare = replace(file, lower_bounds=None, upper_bounds=None)
    if isinstance(bare, DeleteFile):
        bare = replace(bare, range_spans=None)
    return replace(entry, file=bare)


def rewrite_snapshots(
    contents: TableContents, outcomes: Outcomes, context: ErasureContext, written: RewrittenHistory
) -> tuple[list[Snapshot], set[str]]:
    """MT-116: all snapshots, in their order, with the same ids, numbers and times. Also the names of summary entries
    that were left out or changed. A snapshot without a change is the same object."""
    renewed: dict[ManifestKey, tuple[ManifestFile, tuple[ManifestEntry, ...]] | None] = {}
    for key, (manifest, entries) in contents.manifests.items():
        kept = new_entries(entries, contents, outcomes, context)
        if kept == tuple(entries):
            renewed[key] = manifest, tuple(entries)
        else:
            renewed[key] = (_written_manifest(manifest, kept, context, written), kept) if kept else None
    totals = {key: _totals(each[1]) for key, each in renewed.items() if each is not None}
    left_out: set[str] = set()
    snapshots = []
    for snapshot in context.metadata.snapshots:
        listed = contents.lists[snapshot.manifest_list]
        kept_manifests = [each for each in (renewed[manifest_key(manifest)] for manifest in listed) if each is not None]
        has_changed = [manifest for manifest, _ in kept_manifests] != list(listed)
        summary = snapshot.summary
        if summary is not None:
            texts, gone = erased_summary(summary, context, forgets_paths=bool(outcomes.data))
            left_out |= gone
            if has_changed:
                counted: Counter[str] = Counter()
                for manifest in listed:
                    counted.update(totals.get(manifest_key(manifest), {}))
                own = [entry for _, entries in kept_manifests for entry in entries if _is_of(entry, snapshot)]
                added = [entry.file for entry in own if entry.status is EntryStatus.ADDED]
                removed = [entry.file for entry in own if entry.status is EntryStatus.DELETED]
                texts = recounted(Summary(summary.operation, **texts), added, removed, counted)
            if texts != summary.additional_properties:
                summary = Summary(summary.operation, **texts)
        if not has_changed and summary is snapshot.summary:
            snapshots.append(snapshot)
            continue
        location = snapshot.manifest_list
        if has_changed:
            location = _written_list(snapshot, [manifest for manifest, _ in kept_manifests], context, written)
        snapshots.append(snapshot.model_copy(update={"manifest_list": location, "summary": summary}))
    return snapshots, left_out


def _is_of(entry: ManifestEntry, snapshot: Snapshot) -> bool:
    return entry.snapshot_id == snapshot.snapshot_id


def _totals(entries: Sequence[ManifestEntry]) -> dict[str, int]:
    return count_totals(entry.file for entry in entries if entry.status is not EntryStatus.DELETED)


def _written_manifest(
    manifest: ManifestFile, entries: tuple[ManifestEntry, ...], context: ErasureContext, written: RewrittenHistory
) -> ManifestFile:
    """The manifest with other entries, added by the same snapshot."""
    known = (manifest_key(manifest), entries)
    if known not in written.manifests:
        metadata = context.metadata
        location = written.new_location(metadata, f"{uuid.uuid4()}-m0.avro")
        new = write_manifest(
            context.io,
            location,
            entries=entries,
            content=manifest.content,
            spec=metadata.specs()[manifest.partition_spec_id],
            schema=metadata.schema(),
            older_schemas=schemas_newest_first(metadata)[1:],
            format_version=metadata.format_version,
            snapshot_id=manifest.added_snapshot_id,
        )
        written.manifests[known] = replace(
            new,
            sequence_number=manifest.sequence_number,
            min_sequence_number=manifest.min_sequence_number,
            first_row_id=manifest.first_row_id,
            columns=key_summaries(metadata, entries) if manifest.columns else None,
        )
    return written.manifests[known]


def _written_list(
    snapshot: Snapshot, manifests: Sequence[ManifestFile], context: ErasureContext, written: RewrittenHistory
) -> str:
    known = (snapshot.manifest_list, tuple(manifests))
    if known not in written.lists:
        name = f"snap-{snapshot.snapshot_id}-0-{uuid.uuid4()}.avro"
        location = written.new_location(context.metadata, name)
        write_changed_list(context.io, location, source=snapshot.manifest_list, manifests=manifests)
        written.lists[known] = location
    return written.lists[known]
