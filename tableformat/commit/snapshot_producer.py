"""Writes the files of one snapshot: manifests of added and removed files, and the manifest list.

One producer serves all attempts of one commit and keeps its snapshot id, so that an attempt that was applied after all
is recognised. Manifests that are still valid on the next head are used again.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyiceberg.table.metadata import TableMetadata, TableMetadataV1, TableMetadataV3
from pyiceberg.table.snapshots import Snapshot

from tableformat.commit.change import FileKey, ManifestRewrite, TableChange, file_key, file_keys
from tableformat.commit.manifest_merge import bins_of, merge_small_manifests
from tableformat.commit.ordered_deletes import with_ordered_deletes
from tableformat.commit.snapshot_summary import build_summary, count_totals, totals_of_parent
from tableformat.commit.table_diff import live_files
from tableformat.commit.vectors_of_removed_data import with_vectors_of_removed_data
from tableformat.commit.writer_progress import with_writer_progress
from tableformat.errors import CommitConflictError
from tableformat.filters.key_summaries import column_summaries
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import (
    ColumnSummary,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from tableformat.metadata.manifests.manifest_list import manifests_of, next_row_id, write_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.manifests.manifest_writer import write_manifest
from tableformat.metadata.partition_column import schemas_newest_first
from tableformat.metadata.snapshot_index import snapshots_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import MANIFEST_TARGET_SIZE_BYTES, MANIFEST_TARGET_SIZE_BYTES_DEFAULT, positive_int
from tableformat.storage.location_provider import location_provider
from tableformat.storage.side_by_side import WriteBytes, writes_side_by_side


@dataclass(frozen=True, slots=True)
class _WrittenList:
    """A manifest list and, from v3 on, the row ids that it assigned."""

    location: str
    first_row_id: int | None = None
    added_row_count: int | None = None


@dataclass(frozen=True, slots=True)
class _Emptied:
    """A manifest without remaining live files."""

    manifest: ManifestFile
    entries: tuple[ManifestEntry, ...]
    """DELETED entries of the files that leave a trace."""


class SnapshotProducer:
    """Writes the metadata files of a snapshot, once for every attempt to commit it."""

    def __init__(self, metadata: TableMetadata, snapshot_properties: Mapping[str, str]) -> None:
        self.snapshot_id = _unused_snapshot_id(metadata)
        self._snapshot_properties = snapshot_properties
        self._commit_uuid = uuid.uuid4()
        self._file_count = 0
        self._reusable: dict[object, ManifestFile] = {}
        self._written: list[str] = []
        self._manifests_of_list: dict[str, tuple[ManifestFile, ...]] = {}
        self._write: WriteBytes | None = None
        """The writer of the current attempt."""

    @property
    def written_locations(self) -> tuple[str, ...]:
        """Every file that any attempt wrote."""
        return tuple(self._written)

    def locations_not_of(self, manifest_list: str) -> tuple[str, ...]:
        """The files that the attempts wrote and that the snapshot with this manifest list does not use."""
        used = {manifest_list, *(manifest.manifest_path for manifest in self._manifests_of_list.get(manifest_list, ()))}
        return tuple(location for location in self._written if location not in used)

    def manifest_bytes_of(self, manifest_list: str) -> int:
        """Size in bytes of the manifests that were written for the snapshot with this manifest list."""
        manifests = self._manifests_of_list.get(manifest_list, ())
        return sum(manifest.manifest_length_bytes for manifest in manifests if self._is_own(manifest))

    def produce(self, base: SnapshotView, change: TableChange, *, timestamp_ms: int | None = None) -> Snapshot:
        """CP-2: the change as a snapshot on the head of a branch, one sequence number above the last of the table.
        `timestamp_ms` is its time, by default `next_timestamp_ms`.

        The files refer to each other by locations and sizes that are known before they are written, so they are
        uploaded to an object store concurrently.
        """
        try:
            with writes_side_by_side(base.io, base.metadata.location) as self._write:
                return self._produced(base, change, timestamp_ms)
        except BaseException:
            # It is not known which manifests exist, so the next attempt writes its own.
            self._reusable.clear()
            raise

    def _produced(self, base: SnapshotView, change: TableChange, timestamp_ms: int | None) -> Snapshot:
        change = with_vectors_of_removed_data(change, base)
        metadata = base.metadata
        assert not isinstance(metadata, TableMetadataV1), "v1 tables are rejected earlier (`check_writable`)"
        sequence_number = metadata.last_sequence_number + 1
        removed = self._without(base, change)
        carried = [manifest for manifest in removed if _live_count(manifest) > 0 or self._is_own(manifest)]
        if change.manifest_rewrite is not None:
            carried = self._clustered(base, carried, change.manifest_rewrite)
        merged = merge_small_manifests(
            [manifest for manifest in carried if not self._is_own(manifest)],
            metadata.properties,
            lambda manifests: self._merge(base, manifests),
        )
        manifests = (
            *self._added_data(base, change.added_data_files),
            *(self._added_manifest(base, files, ManifestContent.DELETES) for files in change.new_delete_manifests),
            *(manifest for manifest in carried if self._is_own(manifest)),
            *merged,
            *change.carried.manifests,
        )
        written = self._write_list(base, manifests, sequence_number)
        parent = base.snapshot
        totals = totals_of_parent(parent)
        properties = with_ordered_deletes(with_writer_progress(self._snapshot_properties, parent), metadata, parent)
        summary = build_summary(change, totals if totals is not None else _recount(base), properties)
        return Snapshot.model_validate(
            {
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": parent.snapshot_id if parent is not None else None,
                "sequence-number": sequence_number,
                "timestamp-ms": next_timestamp_ms(base) if timestamp_ms is None else timestamp_ms,
                "manifest-list": written.location,
                "summary": summary,
                "schema-id": metadata.current_schema_id,
                "first-row-id": written.first_row_id,
                "added-rows": written.added_row_count,
            }
        )

    def _is_own(self, manifest: ManifestFile) -> bool:
        return manifest.added_snapshot_id == self.snapshot_id

    def _added_data(self, base: SnapshotView, files: Sequence[DataFile]) -> Iterable[ManifestFile]:
        by_spec: defaultdict[int, list[DataFile]] = defaultdict(list)
        for file in files:
            by_spec[file.spec_id].append(file)
        for of_spec in by_spec.values():
            yield self._added_manifest(base, tuple(of_spec), ManifestContent.DATA)

    def _added_manifest(
        self, base: SnapshotView, files: tuple[DataFile, ...] | tuple[DeleteFile, ...], content: ManifestContent
    ) -> ManifestFile:
        """A manifest of new files, which have one spec."""
        entries = tuple(ManifestEntry(EntryStatus.ADDED, self.snapshot_id, file) for file in files)
        return self._write_manifest(base, ("added", files), entries, content, files[0].spec_id)

    def _without(self, base: SnapshotView, change: TableChange) -> list[ManifestFile]:
        """The manifests of the parent; manifests that contain removed files are rewritten."""
        manifests = manifests_of(base)
        data = self._rewrite_holders(base, manifests, change.removed_data_files, ManifestContent.DATA)
        deletes = self._rewrite_holders(base, manifests, change.removed_delete_files, ManifestContent.DELETES)
        rewritten = data | deletes
        carried = (rewritten.get(manifest.manifest_path, manifest) for manifest in manifests)
        return [manifest for manifest in carried if manifest is not None]

    def _rewrite_holders(
        self,
        base: SnapshotView,
        manifests: Sequence[ManifestFile],
        removed: Sequence[DataFile | DeleteFile],
        content: ManifestContent,
    ) -> dict[str, ManifestFile | None]:
        """CP-16: a removed file leaves a DELETED entry in this snapshot; earlier DELETED entries are dropped."""
        missing = set(file_keys(removed))
        spec_ids = {file.spec_id for file in removed}
        rewritten: dict[str, ManifestFile | None] = {}
        emptied: defaultdict[int, list[_Emptied]] = defaultdict(list)
        for manifest in manifests:
            if not missing:
                break
            if manifest.content is not content or manifest.partition_spec_id not in spec_ids:
                continue
            live = live_entries(read_manifest(base.io, manifest, base.metadata))
            here = frozenset(key for key in map(_entry_key, live) if key in missing)
            if here:
                entries = tuple(
                    self._kept_or_deleted(entry, here) for entry in live if not _leaves_no_trace(entry, here)
                )
                missing -= here
                rewritten[manifest.manifest_path] = None
                if len(here) == len(live):
                    emptied[manifest.partition_spec_id].append(_Emptied(manifest, entries))
                    continue
                # Another commit may have assigned row ids to the manifest since the last attempt (v3).
                key = ("without", manifest.manifest_path, manifest.first_row_id, here)
                rewritten[manifest.manifest_path] = self._write_manifest(
                    base, key, entries, content, manifest.partition_spec_id
                )
        if missing:
            path = min(path for path, _ in missing)
            raise CommitConflictError(
                f"{len(missing)} files that the change removes are not in the table, including {path}. Nothing was "
                "changed. Run the operation again."
            )
        for spec_id, of_spec in emptied.items():
            rewritten.update(self._emptied(base, of_spec, content, spec_id))
        return rewritten

    def _emptied(
        self, base: SnapshotView, emptied: Sequence[_Emptied], content: ManifestContent, spec_id: int
    ) -> Iterator[tuple[str, ManifestFile]]:
        """CP-16: the entries of manifests without remaining files are written together, each group in the position of
        its first manifest."""
        target_bytes = positive_int(
            base.metadata.properties, MANIFEST_TARGET_SIZE_BYTES, MANIFEST_TARGET_SIZE_BYTES_DEFAULT
        )
        with_traces = [each for each in emptied if each.entries]
        for together in bins_of(with_traces, lambda each: each.manifest.manifest_length_bytes, target_bytes):
            key = ("emptied", tuple((each.manifest.manifest_path, each.manifest.first_row_id) for each in together))
            entries = tuple(entry for each in together for entry in each.entries)
            yield together[0].manifest.manifest_path, self._write_manifest(base, key, entries, content, spec_id)

    def _kept_or_deleted(self, entry: ManifestEntry, removed: frozenset[FileKey]) -> ManifestEntry:
        if _entry_key(entry) in removed:
            return replace(entry, status=EntryStatus.DELETED, snapshot_id=self.snapshot_id)
        return replace(entry, status=EntryStatus.EXISTING)

    def _clustered(
        self, base: SnapshotView, carried: Sequence[ManifestFile], rewrite: ManifestRewrite
    ) -> list[ManifestFile]:
        """MT-48: entries keep their snapshot id, both sequence numbers and their row ids."""
        assert rewrite.replaced <= {manifest.manifest_path for manifest in manifests_of(base)}, "made from another head"
        clustered = []
        for cluster in rewrite.clusters:
            entries = tuple(replace(entry, status=EntryStatus.EXISTING) for entry in cluster)
            file = entries[0].file
            content = ManifestContent.DATA if isinstance(file, DataFile) else ManifestContent.DELETES
            clustered.append(self._write_manifest(base, ("clustered", cluster), entries, content, file.spec_id))
        return [*clustered, *(manifest for manifest in carried if manifest.manifest_path not in rewrite.replaced)]

    def _merge(self, base: SnapshotView, manifests: Sequence[ManifestFile]) -> ManifestFile:
        """CP-15: entries keep their snapshot id and both sequence numbers."""
        entries = tuple(
            replace(entry, status=EntryStatus.EXISTING)
            for manifest in manifests
            for entry in live_entries(read_manifest(base.io, manifest, base.metadata))
        )
        key = ("merged", tuple((manifest.manifest_path, manifest.first_row_id) for manifest in manifests))
        return self._write_manifest(base, key, entries, manifests[0].content, manifests[0].partition_spec_id)

    def _write_manifest(
        self,
        base: SnapshotView,
        reuse_key: tuple[object, ...],
        entries: Sequence[ManifestEntry],
        content: ManifestContent,
        spec_id: int,
    ) -> ManifestFile:
        metadata = base.metadata
        if spec_id not in metadata.specs():
            raise CommitConflictError(
                f"the files were written for partition spec {spec_id}, which an expiry with clean_expired_metadata "
                "has removed. Nothing was changed. Reload the table and write the files again."
            )
        key = (*reuse_key, content, spec_id, metadata.format_version)
        if key not in self._reusable:
            location = self._new_location(metadata, f"{self._commit_uuid}-m{self._file_count}.avro")
            written = write_manifest(
                base.io,
                location,
                entries=entries,
                content=content,
                spec=base.spec(spec_id),
                schema=metadata.schema(),
                older_schemas=schemas_newest_first(metadata)[1:],
                format_version=metadata.format_version,
                snapshot_id=self.snapshot_id,
                write=self._write,
            )
            self._reusable[key] = replace(written, columns=key_summaries(metadata, entries))
        return self._reusable[key]

    def _write_list(self, base: SnapshotView, manifests: Sequence[ManifestFile], sequence_number: int) -> _WrittenList:
        metadata = base.metadata
        first_row_id = (metadata.next_row_id or 0) if isinstance(metadata, TableMetadataV3) else None
        location = self._new_location(metadata, f"snap-{self.snapshot_id}-{self._file_count}-{self._commit_uuid}.avro")
        self._manifests_of_list[location] = tuple(manifests)
        assigned = write_manifest_list(
            base.io,
            location,
            manifests=manifests,
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=base.snapshot.snapshot_id if base.snapshot is not None else None,
            sequence_number=sequence_number,
            format_version=metadata.format_version,
            first_row_id=first_row_id,
            write=self._write,
        )
        if first_row_id is None:
            return _WrittenList(location)
        return _WrittenList(location, first_row_id, next_row_id(manifests, assigned, first_row_id) - first_row_id)

    def _new_location(self, metadata: TableMetadata, file_name: str) -> str:
        self._file_count += 1
        location = location_provider(metadata.location, metadata.properties).new_metadata_location(file_name)
        # Recorded before the file is written, so that a partial write is cleaned up, too.
        self._written.append(location)
        return location


def key_summaries(metadata: TableMetadata, entries: Sequence[ManifestEntry]) -> tuple[ColumnSummary, ...] | None:
    """FM-26: column summaries of the live data files; None for delete manifests and for a table without a key."""
    schema = metadata.schema()
    columns = [schema.find_field(field_id) for field_id in sorted(schema.identifier_field_ids)]
    live = [entry.file for entry in entries if entry.status is not EntryStatus.DELETED]
    files = [file for file in live if isinstance(file, DataFile)]
    return column_summaries(files, columns) or None


def _entry_key(entry: ManifestEntry) -> FileKey:
    return file_key(entry.file)


def _leaves_no_trace(entry: ManifestEntry, removed: frozenset[FileKey]) -> bool:
    """RD-6, CP-16: other readers refuse a manifest with the format name of a range delete, even in a DELETED entry."""
    file = entry.file
    return isinstance(file, DeleteFile) and file.kind is DeleteKind.RANGE and _entry_key(entry) in removed


def _live_count(manifest: ManifestFile) -> int:
    return manifest.added_files_count + manifest.existing_files_count


def _recount(base: SnapshotView) -> dict[str, int]:
    manifests = manifests_of(base)
    return count_totals(
        file for content in ManifestContent for file in live_files(base.io, base.metadata, manifests, content)
    )


def _unused_snapshot_id(metadata: TableMetadata) -> int:
    """A random positive id of 63 bits: readers keep it in a signed long."""
    taken = snapshots_by_id(metadata)
    while True:
        snapshot_id = secrets.randbits(63)
        if snapshot_id > 0 and snapshot_id not in taken:
            return snapshot_id


def next_timestamp_ms(base: SnapshotView) -> int:
    """The current time, but after the parent: a clock that was set back must not break reads at a point in time."""
    earliest = base.snapshot.timestamp_ms + 1 if base.snapshot is not None else 0
    return max(time.time_ns() // 1_000_000, base.metadata.last_updated_ms, earliest)
