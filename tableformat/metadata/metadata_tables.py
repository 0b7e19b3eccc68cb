"""Metadata as Arrow tables, with the columns of Iceberg's metadata tables.

Names, order and types of the columns are those in Iceberg's `files`, `delete_files`, `entries`, `manifests`,
`partitions`, `snapshots`, `history`, `metadata_log_entries` and `refs` tables. `kind` and the sequence numbers of files
and manifests are our additions and come last. Times are UTC milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from tableformat.errors import SnapshotNotFoundError, nearest_hint
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.manifests.manifest_schema import partition_types
from tableformat.metadata.partition_column import partition_column, schemas_newest_first
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.partition_text import human_text
from tableformat.metadata.readable_metrics import READABLE_METRICS, readable_metrics
from tableformat.metadata.snapshot_choice import ancestors
from tableformat.metadata.snapshot_index import snapshot_by_id, snapshots_by_id
from tableformat.metadata.snapshot_view import SnapshotView

ContentFiles = Sequence[DataFile | DeleteFile]

_MOMENT: Final = pa.timestamp("ms", tz="UTC")
_COUNTS: Final = pa.map_(pa.int32(), pa.int64())
_BOUNDS: Final = pa.map_(pa.int32(), pa.binary())
_FILE_FIELDS: Final[tuple[tuple[str, str, pa.DataType], ...]] = (
    ("record_count", "record_count", pa.int64()),
    ("file_size_in_bytes", "file_size_bytes", pa.int64()),
    ("column_sizes", "column_sizes", _COUNTS),
    ("value_counts", "value_counts", _COUNTS),
    ("null_value_counts", "null_value_counts", _COUNTS),
    ("nan_value_counts", "nan_value_counts", _COUNTS),
    ("lower_bounds", "lower_bounds", _BOUNDS),
    ("upper_bounds", "upper_bounds", _BOUNDS),
    ("key_metadata", "key_metadata", pa.binary()),
    ("split_offsets", "split_offsets", pa.list_(pa.int64())),
    ("equality_ids", "equality_ids", pa.list_(pa.int32())),
    ("sort_order_id", "sort_order_id", pa.int32()),
    ("first_row_id", "first_row_id", pa.int64()),
    ("referenced_data_file", "referenced_data_file", pa.string()),
    ("content_offset", "content_offset", pa.int64()),
    ("content_size_in_bytes", "content_size_bytes", pa.int64()),
)
"""Column name, attribute of the file, type."""


def _schema(required: dict[str, pa.DataType], optional: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, arrow_type, nullable=False) for name, arrow_type in required.items()]
        + [pa.field(name, arrow_type) for name, arrow_type in optional.items()]
    )


_SUMMARY: Final = pa.struct(
    {"contains_null": pa.bool_(), "contains_nan": pa.bool_(), "lower_bound": pa.string(), "upper_bound": pa.string()}
)
_MANIFESTS: Final = _schema(
    {
        "content": pa.int8(),
        "path": pa.string(),
        "length": pa.int64(),
        "partition_spec_id": pa.int32(),
        "added_snapshot_id": pa.int64(),
        "added_data_files_count": pa.int32(),
        "existing_data_files_count": pa.int32(),
        "deleted_data_files_count": pa.int32(),
        "added_delete_files_count": pa.int32(),
        "existing_delete_files_count": pa.int32(),
        "deleted_delete_files_count": pa.int32(),
        "partition_summaries": pa.list_(_SUMMARY),
        "sequence_number": pa.int64(),
        "min_sequence_number": pa.int64(),
    },
    {},
)
_PARTITIONS: Final = _schema(
    {
        "spec_id": pa.int32(),
        "record_count": pa.int64(),
        "file_count": pa.int32(),
        "total_data_file_size_in_bytes": pa.int64(),
        "position_delete_record_count": pa.int64(),
        "position_delete_file_count": pa.int32(),
        "equality_delete_record_count": pa.int64(),
        "equality_delete_file_count": pa.int32(),
    },
    {"last_updated_at": _MOMENT, "last_updated_snapshot_id": pa.int64()},
)
_SNAPSHOTS: Final = _schema(
    {"committed_at": _MOMENT, "snapshot_id": pa.int64()},
    {
        "parent_id": pa.int64(),
        "operation": pa.string(),
        "manifest_list": pa.string(),
        "summary": pa.map_(pa.string(), pa.string()),
    },
)
_HISTORY: Final = _schema(
    {"made_current_at": _MOMENT, "snapshot_id": pa.int64(), "is_current_ancestor": pa.bool_()},
    {"parent_id": pa.int64()},
)
_METADATA_LOG: Final = _schema(
    {"timestamp": _MOMENT, "file": pa.string()},
    {"latest_snapshot_id": pa.int64(), "latest_schema_id": pa.int32(), "latest_sequence_number": pa.int64()},
)
_REFS: Final = _schema(
    {"name": pa.string(), "type": pa.string(), "snapshot_id": pa.int64()},
    {
        "max_reference_age_in_ms": pa.int64(),
        "min_snapshots_to_keep": pa.int32(),
        "max_snapshot_age_in_ms": pa.int64(),
    },
)


def files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """All live files of the snapshot, data and deletes. `partition` exists if the table has partition fields,
    `readable_metrics` unless they are not wanted."""
    return content_files_table(view.metadata, _live_files(view), readable=readable)


def data_files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """The live data files; columns as `files_table`."""
    return content_files_table(view.metadata, _live_files(view, ManifestContent.DATA), readable=readable)


def delete_files_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """The live delete files; columns as `files_table`."""
    return content_files_table(view.metadata, _live_files(view, ManifestContent.DELETES), readable=readable)


def content_files_table(metadata: TableMetadata, files: ContentFiles, *, readable: bool = True) -> pa.Table:
    """The given files in order, one row each."""
    columns = _file_columns(metadata, files)
    if readable:
        columns[READABLE_METRICS] = readable_metrics(metadata.schema(), files)
    columns["kind"] = kinds_of(files)
    columns["sequence_number"] = pa.array([file.sequence_number for file in files], pa.int64())
    return pa.table(columns)


def kinds_of(files: ContentFiles) -> pa.Array:
    """The kind of each file: "data", "position", "deletion-vector", "equality" or "range"."""
    return pa.array([_kind(file) for file in files], pa.string())


def _file_columns(metadata: TableMetadata, files: ContentFiles) -> dict[str, pa.Array]:
    """The fields of each file that manifests have, without its sequence numbers."""
    columns: dict[str, pa.Array] = {
        "content": pa.array([int(file.content) for file in files], pa.int8()),
        "file_path": pa.array([file.file_path for file in files], pa.string()),
        "file_format": pa.array([file.file_format for file in files], pa.string()),
        "spec_id": pa.array([file.spec_id for file in files], pa.int32()),
    }
    partition = partition_column(metadata, files)
    if partition is not None:
        columns["partition"] = partition
    for name, attribute, arrow_type in _FILE_FIELDS:
        columns[name] = pa.array([_cell(getattr(file, attribute, None)) for file in files], arrow_type)
    return columns


def entries_table(view: SnapshotView, *, readable: bool = True) -> pa.Table:
    """All entries of the snapshot's manifests, including deleted ones. The file's columns are in `data_file`."""
    return entries_in(view, manifests_of(view), readable=readable)


def entries_in(view: SnapshotView, manifests: Iterable[ManifestFile], *, readable: bool = True) -> pa.Table:
    """All entries of the given manifests."""
    entries = [entry for manifest in manifests for entry in read_manifest(view.io, manifest, view.metadata)]
    files = [entry.file for entry in entries]
    data_file = pa.table({**_file_columns(view.metadata, files), "kind": kinds_of(files)})
    columns = {
        "status": pa.array([int(entry.status) for entry in entries], pa.int8()),
        "snapshot_id": pa.array([entry.snapshot_id for entry in entries], pa.int64()),
        "sequence_number": pa.array([entry.file.sequence_number for entry in entries], pa.int64()),
        "file_sequence_number": pa.array([entry.file.file_sequence_number for entry in entries], pa.int64()),
        "data_file": data_file.to_struct_array(),
    }
    if readable:
        columns[READABLE_METRICS] = readable_metrics(view.metadata.schema(), files)
    return pa.table(columns)


def manifests_table(view: SnapshotView) -> pa.Table:
    """The manifests of the snapshot. Bounds in `partition_summaries` are readable text."""
    return manifests_in(view, manifests_of(view))


def manifests_in(view: SnapshotView, manifests: Iterable[ManifestFile]) -> pa.Table:
    """The given manifests, one row each."""
    return pa.Table.from_pylist([_manifest_row(each, view.metadata) for each in manifests], schema=_MANIFESTS)


def partitions_table(view: SnapshotView) -> pa.Table:
    """Rows, files and deletes of each partition; one row for an unpartitioned table. Deleted rows are included.

    Files of several specs belong to one partition if all partition fields of the table's history are equal. A field
    that a spec lacks is null, and the row has the spec of the newest file. Deletes that apply to every partition (FM-5)
    are in no row.
    """
    groups: dict[tuple[int, tuple[Any, ...]], list[ManifestEntry]] = {}
    for entry in _live_entries(view):
        groups.setdefault(partition_of(entry.file), []).append(entry)
    if any(spec.fields for spec in view.metadata.partition_specs):
        groups = {group: entries for group, entries in groups.items() if group[1] or _has_data(entries)}
    merged: dict[tuple[tuple[int, Any], ...], list[ManifestEntry]] = {}
    for (spec_id, values), entries in groups.items():
        merged.setdefault(_by_field(view.metadata.specs()[spec_id], values), []).extend(entries)
    snapshots = snapshots_by_id(view.metadata)
    rows = [_partition_row(entries, snapshots) for entries in merged.values()]
    table = pa.Table.from_pylist(rows, schema=_PARTITIONS)
    partition = partition_column(view.metadata, [entries[0].file for entries in merged.values()])
    if partition is None:
        return table.drop_columns(["spec_id"])
    return table.add_column(0, pa.field("partition", partition.type, nullable=False), partition)


def snapshots_table(metadata: TableMetadata) -> pa.Table:
    """Every retained snapshot, in commit order."""
    return pa.Table.from_pylist(
        [
            {
                "committed_at": snapshot.timestamp_ms,
                "snapshot_id": snapshot.snapshot_id,
                "parent_id": snapshot.parent_snapshot_id,
                "operation": snapshot.summary.operation.value if snapshot.summary else None,
                "manifest_list": snapshot.manifest_list,
                "summary": snapshot.summary.additional_properties if snapshot.summary else None,
            }
            for snapshot in metadata.snapshots
        ],
        schema=_SNAPSHOTS,
    )


def history_table(metadata: TableMetadata, ref: str = MAIN_BRANCH) -> pa.Table:
    """The time at which each snapshot became current.

    `main` has a log that includes rollbacks. The history of another branch or tag is the line of its ancestors. Raises
    SnapshotNotFoundError if the ref does not exist.
    """
    head = metadata.refs.get(ref)
    if head is None and ref != MAIN_BRANCH:
        raise SnapshotNotFoundError(f"no branch or tag {ref!r}.{nearest_hint(ref, metadata.refs)}")
    newest = snapshot_by_id(metadata, head.snapshot_id) if head else None
    line = {snapshot.snapshot_id: snapshot for snapshot in ancestors(metadata, newest)}
    if ref == MAIN_BRANCH:
        log = [(entry.timestamp_ms, entry.snapshot_id) for entry in metadata.snapshot_log]
    else:
        log = [(snapshot.timestamp_ms, snapshot.snapshot_id) for snapshot in reversed(line.values())]
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
    return pa.Table.from_pylist(
        [
            {
                "made_current_at": moment_ms,
                "snapshot_id": snapshot_id,
                "parent_id": parents.get(snapshot_id),
                "is_current_ancestor": snapshot_id in line,
            }
            for moment_ms, snapshot_id in log
        ],
        schema=_HISTORY,
    ).select(["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"])


def metadata_log_table(metadata: TableMetadata, metadata_location: str) -> pa.Table:
    """The metadata files of the table's log and the current one, at `metadata_location`, oldest first, with the
    snapshot that was current on `main` when each was written."""
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    return pa.Table.from_pylist(
        [_log_row(metadata, *each) for each in (*files, (metadata.last_updated_ms, metadata_location))],
        schema=_METADATA_LOG,
    )


def _log_row(metadata: TableMetadata, moment_ms: int, location: str) -> dict[str, Any]:
    current = [entry.snapshot_id for entry in metadata.snapshot_log if entry.timestamp_ms <= moment_ms][-1:]
    snapshot = snapshot_by_id(metadata, current[0]) if current else None
    return {
        "timestamp": moment_ms,
        "file": location,
        "latest_snapshot_id": current[0] if current else None,
        "latest_schema_id": snapshot.schema_id if snapshot else None,
        "latest_sequence_number": snapshot.sequence_number if snapshot else None,
    }


def refs_table(metadata: TableMetadata) -> pa.Table:
    """Branches and tags, by name."""
    return pa.Table.from_pylist(
        [
            {
                "name": name,
                "type": ref.snapshot_ref_type.upper(),
                "snapshot_id": ref.snapshot_id,
                "max_reference_age_in_ms": ref.max_ref_age_ms,
                "min_snapshots_to_keep": ref.min_snapshots_to_keep,
                "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
            }
            for name, ref in sorted(metadata.refs.items())
        ],
        schema=_REFS,
    )


def _live_entries(view: SnapshotView) -> Iterable[ManifestEntry]:
    for manifest in manifests_of(view):
        yield from live_entries(read_manifest(view.io, manifest, view.metadata))


def _live_files(view: SnapshotView, content: ManifestContent | None = None) -> list[DataFile | DeleteFile]:
    return live_files_in(view, manifests_of(view), content)


def live_files_in(
    view: SnapshotView, manifests: Iterable[ManifestFile], content: ManifestContent | None = None
) -> list[DataFile | DeleteFile]:
    """The live files of the given manifests, all or only those with one content."""
    return [
        entry.file
        for manifest in manifests
        if content is None or manifest.content is content
        for entry in live_entries(read_manifest(view.io, manifest, view.metadata))
    ]


def _kind(file: DataFile | DeleteFile) -> str:
    return "data" if isinstance(file, DataFile) else file.kind.value


def _cell(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _by_field(spec: PartitionSpec, values: tuple[Any, ...]) -> tuple[tuple[int, Any], ...]:
    """The values by field id, without nulls."""
    fields = zip(spec.fields, values, strict=True)
    return tuple(sorted(((field.field_id, value) for field, value in fields if value is not None), key=itemgetter(0)))


def _has_data(entries: Iterable[ManifestEntry]) -> bool:
    return any(entry.file.content is FileContent.DATA for entry in entries)


def _partition_row(entries: Sequence[ManifestEntry], snapshots: Mapping[int, Snapshot]) -> dict[str, Any]:
    data = [entry.file for entry in entries if entry.file.content is FileContent.DATA]
    positional = [entry.file for entry in entries if entry.file.content is FileContent.POSITION_DELETES]
    equality = [entry.file for entry in entries if entry.file.content is FileContent.EQUALITY_DELETES]
    dated = [(snapshots[entry.snapshot_id], entry.file) for entry in entries if entry.snapshot_id in snapshots]
    latest, newest = max(dated, key=lambda pair: pair[0].timestamp_ms, default=(None, entries[0].file))
    return {
        "spec_id": newest.spec_id,
        "record_count": sum(file.record_count for file in data),
        "file_count": len(data),
        "total_data_file_size_in_bytes": sum(file.file_size_bytes for file in data),
        "position_delete_record_count": sum(file.record_count for file in positional),
        "position_delete_file_count": len(positional),
        "equality_delete_record_count": sum(file.record_count for file in equality),
        "equality_delete_file_count": len(equality),
        "last_updated_at": latest.timestamp_ms if latest else None,
        "last_updated_snapshot_id": latest.snapshot_id if latest else None,
    }


def _manifest_row(manifest: ManifestFile, metadata: TableMetadata) -> dict[str, Any]:
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    is_data = manifest.content is ManifestContent.DATA
    row: dict[str, Any] = {
        "content": int(manifest.content),
        "path": manifest.manifest_path,
        "length": manifest.manifest_length_bytes,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        "partition_summaries": _summary_rows(manifest, metadata),
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
    }
    for status, count in zip(("added", "existing", "deleted"), counts, strict=True):
        row[f"{status}_data_files_count"] = count if is_data else 0
        row[f"{status}_delete_files_count"] = 0 if is_data else count
    return row


def _summary_rows(manifest: ManifestFile, metadata: TableMetadata) -> list[dict[str, Any]]:
    spec = metadata.specs()[manifest.partition_spec_id]
    types = partition_types(spec, schemas_newest_first(metadata))

    def text(bound: bytes | None, position: int) -> str | None:
        if bound is None:
            return None
        value = from_bound(bound, types[position], location=manifest.manifest_path)
        return human_text(spec.fields[position].transform, types[position], value)

    return [
        {
            "contains_null": summary.contains_null,
            "contains_nan": summary.contains_nan,
            "lower_bound": text(summary.lower_bound, position),
            "upper_bound": text(summary.upper_bound, position),
        }
        for position, summary in enumerate(manifest.partitions or ())
    ]
