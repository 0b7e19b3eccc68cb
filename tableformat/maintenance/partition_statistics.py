"""Partition statistics: a file that describes each partition of a snapshot, for the planners of other engines.

Source: Iceberg table specification, "Partition Statistics File". This library does not read the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetPartitionStatisticsUpdate, TableRequirement, TableUpdate

from tableformat.commit.commit_status import CommitStatus, removing_on_failure
from tableformat.commit.metadata_commit import commit_metadata, refresh
from tableformat.errors import CommitConflictError, InvalidArgumentError
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind, FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestEntry
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.partition_column import partition_column
from tableformat.metadata.partition_identity import partition_of
from tableformat.metadata.snapshot_choice import view_at
from tableformat.metadata.snapshot_index import snapshot_by_id, snapshots_by_id
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.storage.location_provider import location_provider
from tableformat.storage.storage import delete_if_present, size_bytes, write_bytes

_FIELD_ID: Final = "PARQUET:field_id"
_OF_VECTORS: Final = 3
"""The format version from which deletion vectors are counted separately."""
_COLUMNS: Final[tuple[tuple[int, str, pa.DataType, bool], ...]] = (
    (2, "spec_id", pa.int32(), True),
    (3, "data_record_count", pa.int64(), True),
    (4, "data_file_count", pa.int32(), True),
    (5, "total_data_file_size_in_bytes", pa.int64(), True),
    (6, "position_delete_record_count", pa.int64(), False),
    (7, "position_delete_file_count", pa.int32(), False),
    (8, "equality_delete_record_count", pa.int64(), False),
    (9, "equality_delete_file_count", pa.int32(), False),
    (10, "total_record_count", pa.int64(), False),
    (11, "last_updated_at", pa.int64(), False),
    (12, "last_updated_snapshot_id", pa.int64(), False),
    (13, "dv_count", pa.int32(), False),
)
"""Field id, name, type, and whether every version requires it. The columns follow `partition`, whose id is 1."""


def compute_partition_statistics(iceberg: IcebergTable, snapshot_id: int) -> str | None:
    """SP-33: write the statistics of a snapshot's partitions, register the file in the metadata, and return its
    location.

    Returns the registered file if there is one; None for a snapshot without files. Raises InvalidArgumentError for a
    table that was never partitioned, SnapshotNotFoundError for an unknown snapshot.
    """
    refresh(iceberg)
    metadata = iceberg.metadata
    if not any(spec.fields for spec in metadata.partition_specs):
        raise InvalidArgumentError(
            f"{'.'.join(iceberg.name())} has no partition fields, so it has no partition statistics."
        )
    view = view_at(metadata, iceberg.io, snapshot_id)
    named = _named(metadata, snapshot_id)
    if named is not None and size_bytes(iceberg.io, named) is not None:
        return named
    rows = partition_statistics(view)
    if not len(rows):
        return None
    location = location_provider(metadata.location, metadata.properties).new_metadata_location(
        f"partition-stats-{snapshot_id}-{uuid4()}.parquet"
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    size = write_bytes(iceberg.io, location, sink.getvalue().to_pybytes())
    status = CommitStatus()
    with removing_on_failure(status, lambda: delete_if_present(iceberg.io, location)):
        _name(iceberg, snapshot_id, location, size, status)
    return location


def _named(metadata: TableMetadata, snapshot_id: int) -> str | None:
    files = [each for each in metadata.partition_statistics if each.snapshot_id == snapshot_id]
    return files[-1].statistics_path if files else None


def _name(iceberg: IcebergTable, snapshot_id: int, location: str, size: int, status: CommitStatus) -> None:
    named = {"snapshot-id": snapshot_id, "statistics-path": location, "file-size-in-bytes": size}

    def prepare(table: IcebergTable) -> tuple[list[TableUpdate], list[TableRequirement]]:
        if snapshot_by_id(table.metadata, snapshot_id) is None:
            raise CommitConflictError(
                f"snapshot {snapshot_id} of {'.'.join(table.name())} expired while its partition statistics were "
                "computed. Compute the statistics of a newer snapshot."
            )
        return [SetPartitionStatisticsUpdate.model_validate({"partition-statistics": named})], []

    commit_metadata(iceberg, prepare, status=status)


def partition_statistics(view: SnapshotView) -> pa.Table:
    """One row for each partition of each spec, in the order of their values.

    If a partitioned table has delete files of the unpartitioned spec, these reach all partitions and are counted in
    none.
    """
    groups: dict[tuple[int, tuple[Any, ...]], list[ManifestEntry]] = {}
    for manifest in manifests_of(view):
        for entry in read_manifest(view.io, manifest, view.metadata):
            if entry.file.partition:
                groups.setdefault(partition_of(entry.file), []).append(entry)
    by_id = snapshots_by_id(view.metadata)
    columns = [each for each in _COLUMNS if each[1] != "dv_count" or view.metadata.format_version >= _OF_VECTORS]
    schema = pa.schema(
        [
            pa.field(name, kind, nullable=not _is_required(view, name, is_required), metadata=_id(field_id))
            for field_id, name, kind, is_required in columns
        ]
    )
    rows = pa.Table.from_pylist([_row(entries, by_id) for entries in groups.values()], schema=schema)
    partition = partition_column(view.metadata, [entries[0].file for entries in groups.values()])
    assert partition is not None, "the table has partition fields"
    rows = rows.add_column(0, _partition_field(view.metadata, partition.type), partition)
    return rows.take(_order(partition))


def _is_required(view: SnapshotView, name: str, is_required: bool) -> bool:
    if view.metadata.format_version < _OF_VECTORS:
        return is_required
    return name not in ("total_record_count", "last_updated_at", "last_updated_snapshot_id")


def _partition_field(metadata: TableMetadata, struct: pa.StructType) -> pa.Field:
    """The struct with the ids of its fields, which are in ascending order in `partition_column`."""
    ids = sorted({field.field_id for spec in metadata.partition_specs for field in spec.fields})
    fields = [each.with_metadata(_id(field_id)) for each, field_id in zip(struct, ids, strict=True)]
    return pa.field("partition", pa.struct(fields), nullable=False, metadata=_id(1))


def _order(partition: pa.StructArray) -> pa.Array:
    """The ascending order, nulls first."""
    fields = pa.table(partition.flatten(), names=[str(place) for place in range(partition.type.num_fields)])
    keys = [(name, "ascending", "at_start") for name in fields.column_names]
    return pc.sort_indices(fields, sort_keys=keys)


def _id(field_id: int) -> dict[str, str]:
    return {_FIELD_ID: str(field_id)}


def _row(entries: Iterable[ManifestEntry], by_id: Mapping[int, Snapshot]) -> dict[str, Any]:
    """Removed files are not counted, but they count as an update of the partition."""
    entries = list(entries)
    live = [entry.file for entry in entries if entry.status is not EntryStatus.DELETED]
    data = [file for file in live if file.content is FileContent.DATA]
    vectors = [file for file in live if _kind(file) is DeleteKind.DELETION_VECTOR]
    positions = [file for file in live if _kind(file) is DeleteKind.POSITION]
    others = [file for file in live if file.content is FileContent.EQUALITY_DELETES]
    snapshots = [by_id[entry.snapshot_id] for entry in entries if entry.snapshot_id in by_id]
    latest = max(snapshots, key=lambda snapshot: snapshot.timestamp_ms, default=None)
    deleted = sum(file.record_count for file in vectors)
    return {
        "spec_id": entries[0].file.spec_id,
        "data_record_count": sum(file.record_count for file in data),
        "data_file_count": len(data),
        "total_data_file_size_in_bytes": sum(file.file_size_bytes for file in data),
        "position_delete_record_count": deleted + sum(file.record_count for file in positions),
        "position_delete_file_count": len(positions),
        "equality_delete_record_count": sum(file.record_count for file in others),
        "equality_delete_file_count": len(others),
        "total_record_count": None,
        "last_updated_at": latest.timestamp_ms if latest else None,
        "last_updated_snapshot_id": latest.snapshot_id if latest else None,
        "dv_count": len(vectors),
    }


def _kind(file: DataFile | DeleteFile) -> DeleteKind | None:
    return file.kind if isinstance(file, DeleteFile) else None
