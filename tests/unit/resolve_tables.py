"""Small tables built by hand: Parquet files with field ids, manifest entries and metadata, without a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2

from tableformat.keys.sort_marker import SORTED_BY, marker_bytes
from tableformat.merge_on_read.deleted_positions import MergeContext
from tableformat.metadata.content_file import DataFile, DeleteFile, FileContent


def metadata_of(*schemas: Schema, spec: PartitionSpec | None = None, properties: dict[str, str] | None = None):
    """Table metadata with these schemas, the last one current; field ids are kept."""
    spec = spec or PartitionSpec(spec_id=0)
    return TableMetadataV2(
        location="/nowhere",
        last_column_id=max(schema.highest_field_id for schema in schemas),
        schemas=list(schemas),
        current_schema_id=schemas[-1].schema_id,
        partition_specs=[spec],
        default_spec_id=spec.spec_id,
        last_partition_id=1000,
        properties=properties or {},
    )


def context_of(*schemas: Schema, **kwargs) -> MergeContext:
    return MergeContext(metadata_of(*schemas, **kwargs), PyArrowFileIO())


def with_ids(table: pa.Table, field_ids: Sequence[int | None]) -> pa.Table:
    """The table with field ids on its top-level columns; None leaves a column without."""
    fields = [
        field if field_id is None else field.with_metadata({b"PARQUET:field_id": str(field_id).encode()})
        for field, field_id in zip(table.schema, field_ids, strict=True)
    ]
    return table.cast(pa.schema(fields))


def write(
    path: Path, table: pa.Table, *, sorted_by: Sequence[int] | None = None, row_group_size: int | None = None
) -> Path:
    if sorted_by is not None:
        table = table.replace_schema_metadata({SORTED_BY: marker_bytes(sorted_by)})
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def data_file(path: Path, **changes: object) -> DataFile:
    described = {
        "file_path": str(path),
        "file_format": "PARQUET",
        "spec_id": 0,
        "record_count": pq.read_metadata(path).num_rows,
        "file_size_bytes": path.stat().st_size,
        "sequence_number": 1,
    }
    return DataFile(**(described | changes))


def delete_file(path: Path, *, equality_ids: tuple[int, ...] | None = None, **changes: object) -> DeleteFile:
    described = {
        "file_path": str(path),
        "file_format": "PARQUET",
        "spec_id": 0,
        "record_count": 1,
        "file_size_bytes": path.stat().st_size if path.exists() else 100,
        "sequence_number": 2,
        "content": FileContent.POSITION_DELETES if equality_ids is None else FileContent.EQUALITY_DELETES,
        "equality_ids": equality_ids,
    }
    return DeleteFile(**(described | changes))
