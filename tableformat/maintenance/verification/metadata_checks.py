"""Checks that manifest lists, manifests and their entries agree with each other (MT-72)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.filters.bound_filter import is_nan_value
from tableformat.maintenance.verification.file_index import SnapshotContents
from tableformat.maintenance.verification.findings import FindingKind, Flaw
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import ContentFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import (
    EntryStatus,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
)
from tableformat.metadata.manifests.manifest_reader import live_entries
from tableformat.metadata.manifests.manifest_schema import partition_types
from tableformat.metadata.partition_column import schemas_newest_first


def reference_flaws(metadata: TableMetadata, location: str) -> Iterator[Flaw]:
    """MT-72: checks that every branch and tag refers to a retained snapshot, and every snapshot is younger than its
    parent."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in by_id:
            what = f"{ref.snapshot_ref_type.value} {name!r} is at snapshot {ref.snapshot_id}, which is not retained"
            yield Flaw(FindingKind.BROKEN_REFERENCE, location, what)
    if metadata.format_version == 1:
        return
    for snapshot in metadata.snapshots:
        number = snapshot.sequence_number or 0
        if number > metadata.last_sequence_number:
            yield Flaw(
                FindingKind.WRONG_SEQUENCE_NUMBER,
                location,
                f"snapshot {snapshot.snapshot_id} has number {number}, but the table's last is "
                f"{metadata.last_sequence_number}",
            )
        parent = by_id.get(snapshot.parent_snapshot_id or -1)
        if parent is not None and number and (parent.sequence_number or 0) >= number:
            yield Flaw(
                FindingKind.WRONG_SEQUENCE_NUMBER,
                location,
                f"snapshot {snapshot.snapshot_id} has number {number}, but its parent {parent.snapshot_id} has "
                f"{parent.sequence_number}",
            )


def list_flaws(contents: SnapshotContents) -> Iterator[Flaw]:
    """DA-9, MT-72: checks that a snapshot lists no manifest that is younger than the snapshot, and no manifest
    twice."""
    snapshot = contents.snapshot
    for manifest in contents.manifests:
        if (manifest.sequence_number or 0) > (snapshot.sequence_number or 0):
            yield Flaw(
                FindingKind.WRONG_SEQUENCE_NUMBER,
                snapshot.manifest_list,
                f"snapshot {snapshot.snapshot_id} has number {snapshot.sequence_number or 0}, but lists "
                f"{manifest.manifest_path} with number {manifest.sequence_number}",
            )


def manifest_flaws(
    manifest: ManifestFile,
    entries: Sequence[ManifestEntry],
    metadata: TableMetadata,
    fields: Mapping[int, NestedField],
) -> Iterator[Flaw]:
    """MT-72: checks that the list's statements about a manifest are true for its entries, and that the entries are
    valid."""
    yield from _count_flaws(manifest, entries)
    yield from _number_flaws(manifest, entries)
    yield from _summary_flaws(manifest, entries, metadata)
    for entry in live_entries(entries):
        if isinstance(entry.file, DeleteFile) and entry.file.equality_ids:
            yield from _column_flaws(entry.file, fields)


def _count_flaws(manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Flaw]:
    files = Counter(entry.status for entry in entries)
    rows: Counter[EntryStatus] = Counter()
    for entry in entries:
        rows[entry.status] += entry.file.record_count
    for status in EntryStatus:
        name = status.name.lower()
        for unit, found in (("files", files[status]), ("rows", rows[status])):
            stated = getattr(manifest, f"{name}_{unit}_count")
            if stated != found:
                yield Flaw(
                    FindingKind.WRONG_COUNT,
                    manifest.manifest_path,
                    f"its list states {stated:,} {name} {unit}, but its entries have {found:,}",
                )
    for entry in entries:
        if entry.file.record_count < 0 or entry.file.file_size_bytes < 0:
            what = f"it states {entry.file.record_count} rows in {entry.file.file_size_bytes} bytes"
            yield Flaw(FindingKind.WRONG_COUNT, entry.file.file_path, what)


def _number_flaws(manifest: ManifestFile, entries: Sequence[ManifestEntry]) -> Iterator[Flaw]:
    """DA-9: checks that, for live files, data sequence number <= sequence number of the commit that added the file <=
    sequence number of the manifest. No file may have a smaller data sequence number than the minimum in the list."""
    own = manifest.sequence_number or 0
    smallest = manifest.min_sequence_number or 0
    for entry in live_entries(entries):
        number, added = entry.file.sequence_number or 0, entry.file.file_sequence_number
        if not smallest <= number <= (number if added is None else added) <= own:
            yield Flaw(
                FindingKind.WRONG_SEQUENCE_NUMBER,
                manifest.manifest_path,
                f"{entry.file.file_path} has data sequence number {number} and file sequence number {added}, in a "
                f"manifest with numbers from {smallest} to {own}",
            )


def _summary_flaws(manifest: ManifestFile, entries: Sequence[ManifestEntry], metadata: TableMetadata) -> Iterator[Flaw]:
    """Planning skips a manifest if its partition summaries exclude a partition, so they must cover all partitions in
    it."""
    if manifest.partitions is None:
        return
    spec = metadata.specs()[manifest.partition_spec_id]
    try:
        types = partition_types(spec, schemas_newest_first(metadata))
    except UnsupportedFeatureError as error:
        yield Flaw(FindingKind.NOT_CHECKED, manifest.manifest_path, f"its partition bounds: {error}".rstrip("."))
        return
    if len(manifest.partitions) != len(types):
        what = f"its list has {len(manifest.partitions)} partition summaries, but its spec {len(types)} fields"
        yield Flaw(FindingKind.WRONG_BOUNDS, manifest.manifest_path, what)
        return
    live = [entry.file for entry in live_entries(entries)]
    for position, (summary, field_type, field) in enumerate(zip(manifest.partitions, types, spec.fields, strict=True)):
        try:
            outside = _outside_summary(summary, field_type, live, position, manifest.manifest_path)
        except CorruptFileError as error:
            outside = f"no bounds: {error}"
        if outside is not None:
            yield Flaw(
                FindingKind.WRONG_BOUNDS,
                manifest.manifest_path,
                f"its list states bounds of partition field {field.name!r} that exclude {outside}",
            )


def _outside_summary(
    summary: PartitionFieldSummary, field_type: PrimitiveType, live: Sequence[ContentFile], position: int, location: str
) -> str | None:
    """A partition of a live file that the summary excludes."""
    lower, upper = (
        None if bound is None else from_bound(bound, field_type, location=location)
        for bound in (summary.lower_bound, summary.upper_bound)
    )
    for file in live:
        value: Any = file.partition[position]
        if value is None:
            is_outside = not summary.contains_null
        elif is_nan_value(value):
            is_outside = summary.contains_nan is False
        else:
            is_outside = (lower is None and upper is None) or not (
                (lower is None or lower <= value) and (upper is None or value <= upper)
            )
        if is_outside:
            return f"{value!r} of {file.file_path}"
    return None


def _column_flaws(delete: DeleteFile, fields: Mapping[int, NestedField]) -> Iterator[Flaw]:
    """DA-6: checks that every delete column was in a schema of the table, and is primitive."""
    for field_id in delete.equality_ids or ():
        field = fields.get(field_id)
        if field is None:
            what = f"it deletes by field id {field_id}, which is not a column of any schema of the table"
            yield Flaw(FindingKind.UNKNOWN_COLUMN, delete.file_path, what)
        elif not isinstance(field.field_type, PrimitiveType):
            what = f"it deletes by column {field.name!r} of type {field.field_type}, which is not primitive"
            yield Flaw(FindingKind.UNKNOWN_COLUMN, delete.file_path, what)
