"""Tables that are built commit by commit with this library's writers and without a catalog; the scan tests use them.

`tableformat.testing.table_builder` builds whole tables; here the test controls every file.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import span_of_bounds, spans_of_prefixes
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import DataFile, DeleteFile
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import write_manifest_list
from tableformat.metadata.manifests.manifest_reader import read_manifest
from tableformat.metadata.manifests.manifest_writer import write_manifest
from tableformat.metadata.snapshot_view import SnapshotView
from tableformat.properties import KEY_FIELD_IDS
from tableformat.scan.scan import Scan
from tableformat.write.context import WriteContext
from tableformat.write.data_files.data_files import write_data_files
from tableformat.write.delete_files.equality_deletes import write_equality_delete_file
from tableformat.write.delete_files.position_deletes import write_position_deletes
from tableformat.write.delete_files.range_deletes import write_range_delete_file


@dataclass
class TableBuilder:
    """Every method that adds files is one commit with one sequence number."""

    directory: Path
    schema: Schema
    spec: PartitionSpec = field(default_factory=lambda: PartitionSpec(spec_id=0))
    key: Sequence[str] = ()
    properties: dict[str, str] = field(default_factory=dict)
    older_schemas: list[Schema] = field(default_factory=list)
    manifests: list[ManifestFile] = field(default_factory=list)
    sequence_number: int = 0

    def __post_init__(self) -> None:
        self.io = PyArrowFileIO()
        if self.key:
            key_ids = [self.schema.find_field(name).field_id for name in self.key]
            self.schema = self.schema.model_copy(update={"identifier_field_ids": key_ids})
        self.specs = [self.spec] if not self.spec.fields else [self.spec, PartitionSpec(spec_id=self.spec.spec_id + 1)]
        (self.directory / "metadata").mkdir(parents=True, exist_ok=True)

    @property
    def metadata(self) -> TableMetadata:
        key = ",".join(str(self.schema.find_field(name).field_id) for name in self.key)
        return TableMetadataV2(
            location=str(self.directory),
            last_column_id=self.schema.highest_field_id,
            schemas=[*self.older_schemas, self.schema],
            current_schema_id=self.schema.schema_id,
            partition_specs=self.specs,
            default_spec_id=self.spec.spec_id,
            last_partition_id=1000 + len(self.spec.fields),
            last_sequence_number=self.sequence_number,
            properties=self.properties | ({KEY_FIELD_IDS: key} if key else {}),
        )

    @property
    def context(self) -> WriteContext:
        return WriteContext.of(self.metadata, self.io)

    @property
    def everywhere(self) -> int:
        """Id of the unpartitioned spec."""
        return self.specs[-1].spec_id

    def append(self, rows: pa.Table | list[dict[str, Any]]) -> tuple[DataFile, ...]:
        return self.add(self.data_files(rows))

    def data_files(self, rows: pa.Table | list[dict[str, Any]]) -> Sequence[DataFile]:
        return write_data_files(self.context, rows).data_files

    def delete_prefixes(self, on: Sequence[str], prefixes: list[dict[str, Any]]) -> tuple[DeleteFile, ...]:
        return self.add([self.prefix_delete(on, prefixes)])

    def prefix_delete(self, on: Sequence[str], prefixes: list[dict[str, Any]]) -> DeleteFile:
        key = KeyColumns.of(self.schema, [self.schema.find_field(name).field_id for name in on])
        table = pa.Table.from_pylist(prefixes)
        return write_range_delete_file(self.context, spans_of_prefixes(key, table), spec_id=self.everywhere)

    def delete_range(self, on: Sequence[str], lower: tuple | None, upper: tuple | None) -> tuple[DeleteFile, ...]:
        key = KeyColumns.of(self.schema, [self.schema.find_field(name).field_id for name in on])
        spans = span_of_bounds(key, lower, upper)
        return self.add([write_range_delete_file(self.context, spans, spec_id=self.everywhere)])

    def delete_rows(self, rows: pa.Table, partition: tuple[Any, ...] | None = None) -> tuple[DeleteFile, ...]:
        spec_id = self.everywhere if partition is None else self.spec.spec_id
        return self.add([write_equality_delete_file(self.context, rows, spec_id=spec_id, partition=partition or ())])

    def delete_positions(self, data: DataFile, positions: list[int]) -> tuple[DeleteFile, ...]:
        deleted = {data: PositionSet.from_array(pa.array(positions, pa.int64()).to_numpy())}
        return self.add(write_position_deletes(self.context, deleted))

    def add(self, files: Sequence[DataFile | DeleteFile]) -> tuple[Any, ...]:
        """Commit data and delete files; returns them with their sequence numbers."""
        self.sequence_number += 1
        added: list[DataFile | DeleteFile] = []
        for content, kind in ((ManifestContent.DATA, DataFile), (ManifestContent.DELETES, DeleteFile)):
            for spec in self.specs:
                members = [file for file in files if isinstance(file, kind) and file.spec_id == spec.spec_id]
                if members:
                    entries = [ManifestEntry(EntryStatus.ADDED, self.sequence_number, file) for file in members]
                    self.manifests.append(self._manifest(entries, content, spec))
                    added += [
                        replace(file, sequence_number=file.sequence_number or self.sequence_number) for file in members
                    ]
        return tuple(added)

    def view(self) -> SnapshotView:
        location = self._location("snap", "avro")
        written = write_manifest_list(
            self.io,
            location,
            manifests=self.manifests,
            snapshot_id=self.sequence_number,
            parent_snapshot_id=None,
            sequence_number=self.sequence_number,
            format_version=2,
        )
        assert len(written) == len(self.manifests)
        snapshot = Snapshot(
            snapshot_id=self.sequence_number,
            sequence_number=self.sequence_number,
            timestamp_ms=1,
            manifest_list=location,
            summary=Summary(Operation.APPEND),
        )
        return SnapshotView(self.metadata, self.io, snapshot, self.schema)

    def scan(self, *args: Any, **kwargs: Any) -> Scan:
        return Scan(self.view(), *args, **kwargs)

    def rewrite(self, data: DataFile, change: Callable[[DataFile], DataFile]) -> None:
        """Replace the entry of a data file by a changed one, as other writers would have written it."""
        for place, manifest in enumerate(self.manifests):
            if manifest.content is ManifestContent.DATA:
                entries = read_manifest(self.io, manifest, self.metadata)
                if any(entry.file.file_path == data.file_path for entry in entries):
                    changed = [
                        replace(entry, file=change(entry.file)) if entry.file.file_path == data.file_path else entry
                        for entry in entries
                    ]
                    spec = next(spec for spec in self.specs if spec.spec_id == manifest.partition_spec_id)
                    written = self._manifest(changed, manifest.content, spec)
                    self.manifests[place] = replace(written, sequence_number=manifest.sequence_number)

    def _manifest(
        self, entries: Sequence[ManifestEntry], content: ManifestContent, spec: PartitionSpec
    ) -> ManifestFile:
        written = write_manifest(
            self.io,
            self._location("manifest", "avro"),
            entries=entries,
            content=content,
            spec=spec,
            schema=self.schema,
            format_version=2,
            snapshot_id=self.sequence_number,
            older_schemas=self.older_schemas,
        )
        return replace(written, sequence_number=self.sequence_number, min_sequence_number=self.sequence_number)

    def _location(self, kind: str, suffix: str) -> str:
        return str(self.directory / "metadata" / f"{kind}-{uuid.uuid4()}.{suffix}")


def partitioned(schema: Schema, *fields: tuple[str, Any]) -> PartitionSpec:
    """A spec of (source column, transform) pairs."""
    return PartitionSpec(
        *(
            PartitionField(schema.find_field(name).field_id, 1000 + place, transform, f"{name}_{transform}")
            for place, (name, transform) in enumerate(fields)
        ),
        spec_id=0,
    )
