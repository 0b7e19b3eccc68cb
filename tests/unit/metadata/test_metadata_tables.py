"""Metadata tables as Arrow tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV2
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotLogEntry, Summary
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, TimestampType, UUIDType

from tableformat.errors import SnapshotNotFoundError
from tableformat.metadata import metadata_tables as inspect
from tableformat.metadata.content_file import PARQUET, RANGE_DELETES_PARQUET, DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry
from tableformat.metadata.manifests.manifest_list import write_manifest_list
from tableformat.metadata.manifests.manifest_writer import write_manifest
from tableformat.metadata.snapshot_choice import head_view
from tableformat.metadata.snapshot_view import SnapshotView

LOCAL = PyArrowFileIO()
SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType()), NestedField(3, "uuid", UUIDType())
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "ts_day"), spec_id=0)
BY_UUID = PartitionSpec(PartitionField(3, 1001, IdentityTransform(), "uuid"), spec_id=1)
UNPARTITIONED = PartitionSpec(spec_id=2)
DATA = DataFile(
    file_path="s3://b/t/1.parquet",
    file_format=PARQUET,
    spec_id=0,
    partition=(1,),
    record_count=10,
    file_size_bytes=100,
    lower_bounds={1: b"\x01"},
    split_offsets=(4,),
)
OTHER = replace(DATA, file_path="s3://b/t/2.parquet", spec_id=1, partition=(UUID(int=5),), lower_bounds=None)
RANGE = DeleteFile(
    content=FileContent.EQUALITY_DELETES,
    equality_ids=(1,),
    file_path="s3://b/t/range.parquet",
    file_format=RANGE_DELETES_PARQUET,
    spec_id=2,
    record_count=1,
    file_size_bytes=30,
)


def table_metadata(**changes: Any) -> TableMetadata:
    fields: dict[str, Any] = {
        "location": "s3://b/t",
        "last_column_id": 3,
        "schemas": [SCHEMA],
        "current_schema_id": 0,
        "partition_specs": [BY_DAY, BY_UUID, UNPARTITIONED],
        "default_spec_id": 0,
        "sort_orders": [],
        "default_sort_order_id": 0,
    }
    return TableMetadataV2(**{**fields, **changes})


@pytest.fixture
def view(tmp_path: Path) -> SnapshotView:
    """A snapshot with a data file in each of two specs, a removed one, and a global range delete."""
    gone = replace(DATA, file_path="s3://b/t/gone.parquet", sequence_number=1, file_sequence_number=1)
    parts: list[tuple[PartitionSpec, ManifestContent, list[ManifestEntry]]] = [
        (
            BY_DAY,
            ManifestContent.DATA,
            [ManifestEntry(EntryStatus.ADDED, 7, DATA), ManifestEntry(EntryStatus.DELETED, 7, gone)],
        ),
        (BY_UUID, ManifestContent.DATA, [ManifestEntry(EntryStatus.ADDED, 7, OTHER)]),
        (UNPARTITIONED, ManifestContent.DELETES, [ManifestEntry(EntryStatus.ADDED, 7, RANGE)]),
    ]
    manifests = [
        write_manifest(
            LOCAL,
            f"{tmp_path}/m{spec.spec_id}.avro",
            entries=entries,
            content=content,
            spec=spec,
            schema=SCHEMA,
            format_version=2,
            snapshot_id=7,
        )
        for spec, content, entries in parts
    ]
    location = f"{tmp_path}/list.avro"
    write_manifest_list(
        LOCAL,
        location,
        manifests=manifests,
        snapshot_id=7,
        parent_snapshot_id=None,
        sequence_number=2,
        format_version=2,
    )
    snapshot = Snapshot(
        snapshot_id=7, sequence_number=2, timestamp_ms=5_000, manifest_list=location, summary=Summary(Operation.APPEND)
    )
    metadata = table_metadata(
        snapshots=[snapshot], current_snapshot_id=7, snapshot_log=[SnapshotLogEntry(snapshot_id=7, timestamp_ms=5_000)]
    )
    return head_view(metadata, LOCAL)


def test_files_of_all_specs_are_in_one_table(view: SnapshotView) -> None:
    table = inspect.files_table(view)
    assert table.select(["content", "file_path", "spec_id", "kind", "sequence_number"]).to_pylist() == [
        {"content": 0, "file_path": "s3://b/t/1.parquet", "spec_id": 0, "kind": "data", "sequence_number": 2},
        {"content": 0, "file_path": "s3://b/t/2.parquet", "spec_id": 1, "kind": "data", "sequence_number": 2},
        {"content": 2, "file_path": "s3://b/t/range.parquet", "spec_id": 2, "kind": "range", "sequence_number": 2},
    ]
    partition = table["partition"].combine_chunks()
    assert partition.field("ts_day").cast(pa.int32()).to_pylist() == [1, None, None]
    assert partition.field("uuid").to_pylist() == [None, UUID(int=5), None]
    assert table["lower_bounds"].to_pylist() == [[(1, b"\x01")], None, None]
    assert table["equality_ids"].to_pylist() == [None, None, [1]]
    assert table["split_offsets"].to_pylist() == [[4], [4], None]


def test_entries_table_includes_removed_files(view: SnapshotView) -> None:
    table = inspect.entries_table(view)
    assert table["status"].to_pylist() == [1, 2, 1, 1]
    assert table["sequence_number"].to_pylist() == [2, 1, 2, 2]
    assert table["data_file"].combine_chunks().field("file_path").to_pylist()[1] == "s3://b/t/gone.parquet"


def test_manifests_table_has_counts_and_text_bounds(view: SnapshotView) -> None:
    rows = inspect.manifests_table(view).to_pylist()
    counts = ("added_data_files_count", "deleted_data_files_count", "added_delete_files_count", "partition_spec_id")
    assert [tuple(row[name] for name in counts) for row in rows] == [(1, 1, 0, 0), (1, 0, 0, 1), (0, 0, 1, 2)]
    assert [row["partition_summaries"] for row in rows] == [
        [{"contains_null": False, "contains_nan": False, "lower_bound": "1970-01-02", "upper_bound": "1970-01-02"}],
        [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": str(UUID(int=5)),
                "upper_bound": str(UUID(int=5)),
            }
        ],
        [],
    ]


def test_partitions_table_aggregates_files(view: SnapshotView) -> None:
    """The equality delete applies to all partitions, and belongs to none of them."""
    rows = inspect.partitions_table(view).to_pylist()
    columns = ("spec_id", "record_count", "file_count", "equality_delete_file_count", "last_updated_snapshot_id")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, 10, 1, 0, 7),
        (1, 10, 1, 0, 7),
    ]


def test_partitions_of_several_specs_with_equal_values_are_merged(tmp_path: Path) -> None:
    """The row has the spec of the file that was added last."""
    catalog = new_lake(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", schema, partition_by=["v"])
    one = pa.table({"id": [1, 2], "v": ["a", None]}, schema=schema)
    table.append(one)
    table.update_spec().rename_field("v", "w").commit()
    table.append(one)
    table.update_spec().add_field("id", "bucket[2]", "b").commit()
    table.append(one.slice(0, 1))
    rows = table.inspect.partitions().to_pylist()
    found = [(row["partition"]["w"], row["partition"]["b"] is None, row["file_count"], row["spec_id"]) for row in rows]
    newest = table.metadata.default_spec_id
    renamed = rows[1]["spec_id"]
    assert sorted(found, key=repr) == [("a", False, 1, newest), ("a", True, 2, renamed), (None, True, 2, renamed)]


def snapshot(snapshot_id: int, parent: int | None) -> Snapshot:
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent,
        sequence_number=snapshot_id,
        timestamp_ms=snapshot_id * 1000,
        manifest_list=f"list-{snapshot_id}.avro",
        summary=Summary(Operation.APPEND, **{"added-records": "5"}),
    )


@pytest.fixture
def rolled_back() -> TableMetadata:
    """1 <- 2 on a branch, and 1 <- 3 on main after 2 was rolled back."""
    log = [(1, 1_000), (2, 2_000), (1, 2_500), (3, 3_000)]
    return table_metadata(
        snapshots=[snapshot(1, None), snapshot(2, 1), snapshot(3, 1)],
        current_snapshot_id=3,
        snapshot_log=[SnapshotLogEntry(snapshot_id=one, timestamp_ms=moment) for one, moment in log],
        refs={
            "main": SnapshotRef(snapshot_id=3, snapshot_ref_type="branch"),
            "ingest": SnapshotRef(snapshot_id=2, snapshot_ref_type="branch", max_ref_age_ms=10),
            "v1": SnapshotRef(snapshot_id=1, snapshot_ref_type="tag"),
        },
    )


def test_history_of_main_marks_rolled_back_snapshots(rolled_back: TableMetadata) -> None:
    rows = inspect.history_table(rolled_back).to_pylist()
    assert [(row["snapshot_id"], row["parent_id"], row["is_current_ancestor"]) for row in rows] == [
        (1, None, True),
        (2, 1, False),
        (1, None, True),
        (3, 1, True),
    ]
    assert [row["made_current_at"].timestamp() for row in rows] == [1, 2, 2.5, 3]


def test_history_of_a_branch_is_its_ancestry(rolled_back: TableMetadata) -> None:
    assert inspect.history_table(rolled_back, "ingest")["snapshot_id"].to_pylist() == [1, 2]
    with pytest.raises(SnapshotNotFoundError):
        inspect.history_table(rolled_back, "ingst")


def test_snapshots_and_refs_are_listed(rolled_back: TableMetadata) -> None:
    snapshots = inspect.snapshots_table(rolled_back)
    assert snapshots.column_names == [
        "committed_at",
        "snapshot_id",
        "parent_id",
        "operation",
        "manifest_list",
        "summary",
    ]
    assert snapshots.to_pylist()[1]["parent_id"] == 1
    assert snapshots["operation"].to_pylist() == ["append"] * 3
    assert snapshots["summary"].to_pylist()[0] == [("added-records", "5")]
    refs = inspect.refs_table(rolled_back).to_pylist()
    assert [(row["name"], row["type"], row["snapshot_id"]) for row in refs] == [
        ("ingest", "BRANCH", 2),
        ("main", "BRANCH", 3),
        ("v1", "TAG", 1),
    ]
    assert refs[0]["max_reference_age_in_ms"] == 10
