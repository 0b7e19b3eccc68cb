"""Manifests of other writers: fields by id, inherited sequence numbers, values in Iceberg's internal representation."""

from __future__ import annotations

import io as stdlib_io
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from foreign_tables import EVERY_TABLE, ForeignTable, each_of
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    NestedField,
    StringType,
    TimestampType,
    UUIDType,
)

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.content_file import DataFile, DeleteFile, DeleteKind
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import manifests_of
from tableformat.metadata.manifests.manifest_reader import live_entries, read_manifest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.table_file import read_table_metadata

LOCAL = PyArrowFileIO()
SCHEMA = Schema(
    NestedField(1, "day", DateType()),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "price", DecimalType(9, 2)),
    NestedField(4, "uuid", UUIDType()),
    NestedField(5, "name", StringType()),
)
SPEC = PartitionSpec(*[PartitionField(i, 999 + i, IdentityTransform(), SCHEMA.find_field(i).name) for i in range(1, 6)])
METADATA: TableMetadata = TableMetadataV2(
    location="s3://b/t",
    last_column_id=5,
    schemas=[SCHEMA],
    current_schema_id=0,
    partition_specs=[SPEC, PartitionSpec(spec_id=1)],
    default_spec_id=0,
    sort_orders=[],
    default_sort_order_id=0,
)
MANIFEST = ManifestFile(
    manifest_path="",
    manifest_length_bytes=0,
    partition_spec_id=1,
    content=ManifestContent.DATA,
    sequence_number=9,
    min_sequence_number=9,
    added_snapshot_id=77,
    added_files_count=1,
    existing_files_count=0,
    deleted_files_count=0,
    added_rows_count=1,
    existing_rows_count=0,
    deleted_rows_count=0,
)


def field(name: str, avro_type: Any, field_id: int | None) -> dict[str, Any]:
    ids = {} if field_id is None else {"field-id": field_id}
    return {"name": name, "type": avro_type, **ids}


def entry_schema(data_file: list[dict[str, Any]], *entry_fields: dict[str, Any]) -> dict[str, Any]:
    """An entry schema as some foreign writer may have it."""
    record = {"type": "record", "name": "df", "fields": data_file}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [field("status", "int", 0), *entry_fields, field("data_file", record, 2)],
    }


REQUIRED = [
    field("path", "string", 100),
    field("format", "string", 101),
    field("n", "long", 103),
    field("bytes", "long", 104),
]
NUMBERS = [
    field("snapshot", ["null", "long"], 1),
    field("data_sequence", ["null", "long"], 3),
    field("file_ordinal", ["null", "long"], 4),
]
FILE = {"path": "s3://b/t/1.parquet", "format": "parquet", "n": 10, "bytes": 100}


def foreign(
    directory: Path, schema: dict[str, Any], *records: dict[str, Any], manifest: ManifestFile = MANIFEST
) -> tuple[ManifestEntry, ...]:
    """The entries that this library reads from a manifest that fastavro wrote."""
    path = directory / "foreign.avro"
    stream = stdlib_io.BytesIO()
    fastavro.writer(stream, schema, records, codec="deflate")
    path.write_bytes(stream.getvalue())
    return read_manifest(
        LOCAL, replace(manifest, manifest_path=str(path), manifest_length_bytes=path.stat().st_size), METADATA
    )


def test_names_and_order_of_fields_do_not_matter(tmp_path: Path) -> None:
    """FM-16."""
    data_file = [
        field("blob_length", ["null", "long"], 145),
        field("where", ["null", "long"], 144),
        field("target", ["null", "string"], 143),
        *reversed(REQUIRED),
        field("kind", "int", 134),
        field("content", "string", 7777),
    ]
    (entry,) = foreign(
        tmp_path,
        entry_schema(data_file, *NUMBERS),
        {
            "status": 0,
            "snapshot": 5,
            "data_sequence": 3,
            "file_ordinal": 4,
            "data_file": {
                **FILE,
                "format": "puffin",
                "kind": 1,
                "content": "no field of ours",
                "target": "s3://b/t/2.parquet",
                "where": 4,
                "blob_length": 40,
            },
        },
        manifest=replace(MANIFEST, content=ManifestContent.DELETES),
    )
    file = entry.file
    assert isinstance(file, DeleteFile)
    assert (entry.status, entry.snapshot_id) == (EntryStatus.EXISTING, 5)
    assert (file.sequence_number, file.file_sequence_number) == (3, 4)
    assert file.kind is DeleteKind.DELETION_VECTOR
    assert (file.referenced_data_file, file.content_offset, file.content_size_bytes) == ("s3://b/t/2.parquet", 4, 40)
    assert (file.file_path, file.record_count, file.file_size_bytes) == ("s3://b/t/1.parquet", 10, 100)


def test_maps_may_be_arrays_of_pairs_or_avro_maps(tmp_path: Path) -> None:
    pair = {"type": "record", "name": "pair", "fields": [field("k", "int", 117), field("v", "long", 118)]}
    data_file = [
        *REQUIRED,
        field("sizes", ["null", {"type": "array", "items": pair, "logicalType": "map"}], 108),
        field("lower", ["null", {"type": "map", "values": "bytes"}], 125),
    ]
    (entry,) = foreign(
        tmp_path,
        entry_schema(data_file),
        {
            "status": 1,
            "data_file": {**FILE, "sizes": [{"k": 1, "v": 10}, {"k": 12, "v": 20}], "lower": {"1": b"a", "12": b""}},
        },
    )
    assert entry.file.column_sizes == {1: 10, 12: 20}
    assert entry.file.lower_bounds == {1: b"a", 12: b""}
    assert entry.file.upper_bounds is None


def test_partition_values_are_exact_and_in_the_order_of_the_spec(tmp_path: Path) -> None:
    uuid = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    decimal = {"type": "fixed", "size": 4, "name": "d", "logicalType": "decimal", "precision": 9, "scale": 2}
    partition = {
        "type": "record",
        "name": "r102",
        "fields": [
            field("renamed", ["null", "string"], 1004),
            field("u", ["null", {"type": "string", "logicalType": "uuid"}], 1003),
            field("p", ["null", decimal], 1002),
            field("t", ["null", {"type": "long", "logicalType": "timestamp-micros"}], 1001),
            field("day", ["null", {"type": "int", "logicalType": "date"}], None),
        ],
    }
    stored = {
        "renamed": "x",
        "u": uuid,
        "p": Decimal("-1.20"),
        "t": datetime(1969, 12, 31, 23, 59, 59, 999_999),
        "day": date(2020, 1, 1),
    }
    (entry,) = foreign(
        tmp_path,
        entry_schema([*REQUIRED, field("partition", partition, 102)]),
        {"status": 1, "data_file": {**FILE, "partition": stored}},
        manifest=replace(MANIFEST, partition_spec_id=0),
    )
    day, ts, *rest = entry.file.partition
    assert day == 18_262
    assert isinstance(ts, int)
    assert rest == [Decimal("-1.20"), uuid, "x"]


def test_missing_partition_field_is_corrupt_not_null(tmp_path: Path) -> None:
    partition = {"type": "record", "name": "r102", "fields": []}
    with pytest.raises(CorruptFileError, match=r"foreign\.avro.*'day' \(1000\)"):
        foreign(
            tmp_path,
            entry_schema([*REQUIRED, field("partition", partition, 102)]),
            {"status": 1, "data_file": {**FILE, "partition": {}}},
            manifest=replace(MANIFEST, partition_spec_id=0),
        )


def test_added_entry_inherits_missing_numbers(tmp_path: Path) -> None:
    """DA-9: also one of the two numbers alone."""
    inherit, explicit = foreign(
        tmp_path,
        entry_schema(REQUIRED, *NUMBERS),
        {"status": 1, "data_file": FILE},
        {"status": 1, "snapshot": 76, "data_sequence": 2, "data_file": FILE},
    )
    assert (inherit.snapshot_id, inherit.file.sequence_number, inherit.file.file_sequence_number) == (77, 9, 9)
    assert (explicit.snapshot_id, explicit.file.sequence_number, explicit.file.file_sequence_number) == (76, 2, 9)


def test_entries_of_a_v1_manifest_have_sequence_number_zero(tmp_path: Path) -> None:
    """DA-9: in v1 entries have no sequence numbers, and no field states the content."""
    v1 = replace(MANIFEST, sequence_number=0, min_sequence_number=0)
    entries = foreign(
        tmp_path,
        entry_schema([*REQUIRED, field("block_size_in_bytes", "long", 105)], field("snapshot_id", "long", 1)),
        *[
            {"status": status, "snapshot_id": 5, "data_file": {**FILE, "block_size_in_bytes": 7}}
            for status in (0, 1, 2)
        ],
        manifest=v1,
    )
    assert [entry.file.sequence_number for entry in entries] == [0, 0, 0]
    assert all(isinstance(entry.file, DataFile) for entry in entries)
    assert [entry.status for entry in live_entries(entries)] == [EntryStatus.EXISTING, EntryStatus.ADDED]


def test_existing_entry_without_sequence_number_is_corrupt(tmp_path: Path) -> None:
    """DA-9: as new it would survive deletes that are younger than it."""
    with pytest.raises(CorruptFileError, match="EXISTING has no sequence number"):
        foreign(tmp_path, entry_schema(REQUIRED, *NUMBERS), {"status": 0, "data_file": FILE})


def test_row_ids_continue_across_files_without_row_ids(tmp_path: Path) -> None:
    schema = entry_schema([*REQUIRED, field("row_id", ["null", "long"], 142)], *NUMBERS)
    numbers = {"data_sequence": 1, "file_ordinal": 1}
    entries = foreign(
        tmp_path,
        schema,
        {"status": 1, "data_file": FILE},
        {"status": 2, **numbers, "data_file": FILE},
        {"status": 0, **numbers, "data_file": {**FILE, "row_id": 5}},
        {"status": 0, **numbers, "data_file": FILE},
        manifest=replace(MANIFEST, first_row_id=1000),
    )
    assert [entry.file.first_row_id for entry in entries if isinstance(entry.file, DataFile)] == [1000, None, 5, 1010]


def test_unknown_content_is_rejected_and_misplaced_content_is_corrupt(tmp_path: Path) -> None:
    """FM-17."""
    schema = entry_schema([*REQUIRED, field("content", "int", 134)])
    with pytest.raises(UnsupportedFeatureError, match=r"1\.parquet has content 3"):
        foreign(tmp_path, schema, {"status": 1, "data_file": {**FILE, "content": 3}})
    with pytest.raises(CorruptFileError, match="POSITION_DELETES file in a manifest of DATA"):
        foreign(tmp_path, schema, {"status": 1, "data_file": {**FILE, "content": 1}})


def test_unknown_delete_file_format_is_rejected_unless_deleted(tmp_path: Path) -> None:
    """FM-17: its bounds would also be read by rules that may not apply to the file."""
    ids = field("equality_ids", {"type": "array", "items": "int"}, 135)
    schema = entry_schema([*REQUIRED, field("content", "int", 134), ids], *NUMBERS)
    deletes = replace(MANIFEST, content=ManifestContent.DELETES)
    unknown = {**FILE, "content": 2, "equality_ids": [1], "format": "CUBES_PARQUET"}
    with pytest.raises(UnsupportedFeatureError, match=r"1\.parquet is a delete file of format CUBES_PARQUET"):
        foreign(tmp_path, schema, {"status": 1, "data_file": unknown}, manifest=deletes)
    for content, file_format in ((1, "RANGE_DELETES_PARQUET"), (2, "PUFFIN")):
        misplaced = {**unknown, "content": content, "format": file_format}
        with pytest.raises(UnsupportedFeatureError, match=f"is a delete file of format {file_format}"):
            foreign(tmp_path, schema, {"status": 1, "data_file": misplaced}, manifest=deletes)
    numbers = {"data_sequence": 1, "file_ordinal": 1}
    [entry] = foreign(tmp_path, schema, {"status": 2, **numbers, "data_file": unknown}, manifest=deletes)
    assert entry.status is EntryStatus.DELETED


def test_an_equality_delete_without_ids_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="no equality ids"):
        foreign(
            tmp_path,
            entry_schema([*REQUIRED, field("content", "int", 134)]),
            {"status": 1, "data_file": {**FILE, "content": 2}},
            manifest=replace(MANIFEST, content=ManifestContent.DELETES),
        )


def test_manifest_with_unknown_spec_or_missing_fields_is_corrupt(tmp_path: Path) -> None:
    record = {"status": 1, "data_file": FILE}
    with pytest.raises(CorruptFileError, match="no partition spec 5"):
        foreign(tmp_path, entry_schema(REQUIRED), record, manifest=replace(MANIFEST, partition_spec_id=5))
    with pytest.raises(CorruptFileError, match=r"foreign\.avro.*no field 'file_path'"):
        foreign(tmp_path, entry_schema(REQUIRED[1:]), {"status": 1, "data_file": FILE})


@each_of(EVERY_TABLE, "delete_files")
def test_delete_files_agree_with_the_foreign_writer(foreign: ForeignTable) -> None:
    metadata, io, _ = read_table_metadata(str(foreign.directory), {})
    view = head_view(metadata, io)
    files = [
        entry.file for manifest in manifests_of(view) for entry in live_entries(read_manifest(io, manifest, metadata))
    ]
    deletes = [file for file in files if isinstance(file, DeleteFile)]
    found = [
        {
            "content": int(file.content),
            "file_format": file.file_format,
            "record_count": file.record_count,
            "spec_id": file.spec_id,
            "equality_ids": list(file.equality_ids) if file.equality_ids else None,
        }
        for file in deletes
    ]
    assert sorted(found, key=str) == sorted(foreign.expected["delete_files"], key=str)
    assert len(files) - len(deletes) == foreign.expected["data_files"]
    has_numbers = metadata.format_version > 1
    assert all(bool(file.sequence_number and file.file_sequence_number) is has_numbers for file in files)
