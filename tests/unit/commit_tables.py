"""Small tables and files for the tests of the commit protocol."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tableformat.catalogs.embedded_catalog import EmbeddedCatalog
from tableformat.commit.change import ChangeKind, TableChange
from tableformat.metadata.content_file import RANGE_DELETES_PARQUET, DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_list import read_manifest_list
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.reachable_files import reachable_files

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "region", StringType(), required=False),
    identifier_field_ids=[1],
)
BY_REGION = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "region"), spec_id=0)
FAST_RETRIES = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.status-check.min-wait-ms": "1",
}

_ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"}),
        pa.field("region", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
)
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


class FaultyCatalog(EmbeddedCatalog):
    """A catalog whose commits can be made to fail before or after they are applied."""

    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> Any:
        if self.before is not None:
            self.before()
        response = super().commit_table(table, requirements, updates)
        if self.after is not None:
            self.after()
        return response


def new_table(catalog: Catalog, *, partitioned: bool = False, properties: dict[str, str] | None = None) -> Table:
    catalog.create_namespace("db")
    spec = BY_REGION if partitioned else UNPARTITIONED_PARTITION_SPEC
    return catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties={**FAST_RETRIES, **(properties or {})})


def named(table: Table, name: str) -> str:
    return f"{table.location()}/data/{name}"


def data_file(table: Table, name: str, ids: list[int] | None = None, **fields: Any) -> DataFile:
    """A data file entry; with `ids` also the Parquet file that it names."""
    location, size, rows = named(table, name), 1000, 1
    if ids is not None:
        path = location.removeprefix("file://")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pq.write_table(pa.table({"id": ids, "region": ["x"] * len(ids)}, schema=_ARROW), path)
        size, rows = os.path.getsize(path), len(ids)
    return DataFile(
        **{
            "file_path": location,
            "file_format": "PARQUET",
            "spec_id": 0,
            "record_count": rows,
            "file_size_bytes": size,
            **fields,
        }
    )


def position_delete(table: Table, name: str, target: DataFile | str, positions: list[int], **fields: Any) -> DeleteFile:
    """A position delete file for one data file, with the Parquet file that it names."""
    target_path = target if isinstance(target, str) else target.file_path
    location = named(table, name)
    path = location.removeprefix("file://")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(pa.table({"file_path": [target_path] * len(positions), "pos": positions}, schema=_POSITIONS), path)
    bound = {2147483546: target_path.encode()}
    return DeleteFile(
        **{
            "content": FileContent.POSITION_DELETES,
            "file_path": location,
            "file_format": "PARQUET",
            "spec_id": 0,
            "record_count": len(positions),
            "file_size_bytes": os.path.getsize(path),
            "referenced_data_file": target_path,
            "lower_bounds": bound,
            "upper_bounds": bound,
            **fields,
        }
    )


def equality_delete(table: Table, name: str, **fields: Any) -> DeleteFile:
    return DeleteFile(
        **{
            "content": FileContent.EQUALITY_DELETES,
            "file_path": named(table, name),
            "file_format": "PARQUET",
            "spec_id": 0,
            "record_count": 1,
            "file_size_bytes": 500,
            "equality_ids": (1,),
            **fields,
        }
    )


def range_delete(table: Table, name: str, **fields: Any) -> DeleteFile:
    return equality_delete(table, name, file_format=RANGE_DELETES_PARQUET, **fields)


def vector(table: Table, name: str, target: DataFile, **fields: Any) -> DeleteFile:
    return DeleteFile(
        **{
            "content": FileContent.POSITION_DELETES,
            "file_path": named(table, name),
            "file_format": "PUFFIN",
            "spec_id": 0,
            "record_count": 1,
            "file_size_bytes": 100,
            "referenced_data_file": target.file_path,
            "content_offset": 4,
            "content_size_bytes": 40,
            **fields,
        }
    )


def append(*files: DataFile) -> TableChange:
    return TableChange(operation=Operation.APPEND, added_data_files=files)


def delete_blindly(*files: DeleteFile) -> TableChange:
    return TableChange(operation=Operation.DELETE, added_delete_files=files)


def planned(table: Table, kind: ChangeKind, operation: Operation = Operation.OVERWRITE, **fields: Any) -> TableChange:
    """A change that was planned on the head of `main` as the handle knows it."""
    snapshot = table.metadata.current_snapshot()
    return TableChange(
        operation=operation,
        kind=kind,
        planned_snapshot_id=snapshot.snapshot_id if snapshot else None,
        planned_sequence_number=(snapshot.sequence_number or 0) if snapshot else 0,
        **fields,
    )


def live(table: Table, ref: str = "main") -> dict[str, int | None]:
    """File name -> data sequence number of every live file of the branch."""
    snapshot = table.metadata.snapshot_by_name(ref)
    if snapshot is None:
        return {}
    return {
        entry.file.file_path.rpartition("/")[2]: entry.file.sequence_number
        for manifest in read_manifest_list(table.io, snapshot.manifest_list)
        for entry in live_entries(read_manifest(table.io, manifest, table.metadata))
    }


def committed(table: Table, name: str) -> Any:
    """The live file of that name as the head's manifests state it."""
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    for manifest in read_manifest_list(table.io, snapshot.manifest_list):
        for entry in live_entries(read_manifest(table.io, manifest, table.metadata)):
            if entry.file.file_path == named(table, name):
                return entry.file
    raise KeyError(name)


def metadata_files(table: Table) -> set[str]:
    """Names of the files in the table's metadata directory."""
    return {path.name for path in Path(table.location().removeprefix("file://"), "metadata").iterdir()}


def reachable_metadata_files(table: Table) -> set[str]:
    """Names of the files in the metadata directory that the table's metadata names."""
    names = reachable_files(table.metadata, table.metadata_location, table.io)
    return {name.rpartition("/")[2] for name in names if "/metadata/" in name}
