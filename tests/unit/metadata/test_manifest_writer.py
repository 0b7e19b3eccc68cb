"""Manifests that this library writes: their content, and the content that PyIceberg reads from them."""

from __future__ import annotations

import io as stdlib_io
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestampType

from tableformat.errors import InvalidArgumentError, UnsupportedFeatureError
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import PARQUET, PUFFIN, RANGE_DELETES_PARQUET, DataFile, DeleteFile, FileContent
from tableformat.metadata.manifests.manifest_entry import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from tableformat.metadata.manifests.manifest_list import write_manifest_list
from tableformat.metadata.manifests.manifest_writer import partition_summaries, write_manifest

LOCAL = PyArrowFileIO()
SCHEMA = Schema(
    NestedField(1, "id1", StringType(), required=True),
    NestedField(2, "id2", LongType(), required=True),
    NestedField(3, "num_cal", LongType(), required=True),
    NestedField(4, "ts", TimestampType()),
    NestedField(5, "weight", DoubleType()),
    identifier_field_ids=[1, 2, 3],
)
BY_DAY = PartitionSpec(
    PartitionField(4, 1000, DayTransform(), "ts_day"),
    PartitionField(1, 1001, IdentityTransform(), "id1"),
    spec_id=1,
)
UNPARTITIONED = PartitionSpec(spec_id=0)
DATA = DataFile(
    file_path="s3://b/t/data/1.parquet",
    file_format=PARQUET,
    spec_id=1,
    partition=(19_000, "é"),
    record_count=3,
    file_size_bytes=1_000,
    column_sizes={1: 50},
    value_counts={1: 3, 2: 3},
    null_value_counts={1: 0},
    nan_value_counts={},
    lower_bounds={1: b"a"},
    upper_bounds={1: b"c"},
    split_offsets=(4,),
    sort_order_id=1,
)
RANGE = DeleteFile(
    content=FileContent.EQUALITY_DELETES,
    equality_ids=(1, 2, 3),
    file_path="s3://b/t/data/range.parquet",
    file_format=RANGE_DELETES_PARQUET,
    spec_id=0,
    record_count=1,
    file_size_bytes=3_000,
    lower_bounds={1: b"A"},
    upper_bounds={1: b"A"},
)


def write(
    directory: Path,
    *entries: ManifestEntry,
    content: ManifestContent = ManifestContent.DATA,
    spec: PartitionSpec = BY_DAY,
    format_version: int = 2,
) -> ManifestFile:
    return write_manifest(
        LOCAL,
        f"{directory}/m.avro",
        entries=entries,
        content=content,
        spec=spec,
        schema=SCHEMA,
        format_version=format_version,
        snapshot_id=77,
    )


def added(file: DataFile | DeleteFile) -> ManifestEntry:
    return ManifestEntry(EntryStatus.ADDED, 77, file)


def avro_file(manifest: ManifestFile) -> Any:
    return fastavro.reader(stdlib_io.BytesIO(Path(manifest.manifest_path).read_bytes()))


def as_pyiceberg(manifest: ManifestFile, directory: Path) -> pyiceberg_manifest.ManifestFile:
    """The manifest as PyIceberg finds it through the list of a snapshot with sequence number 5."""
    location = f"{directory}/list.avro"
    write_manifest_list(
        LOCAL,
        location,
        manifests=[manifest],
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=5,
        format_version=2,
    )
    (found,) = pyiceberg_manifest.read_manifest_list(LOCAL.new_input(location))
    return found


def test_the_header_has_every_key_of_the_specification(tmp_path: Path) -> None:
    metadata = avro_file(write(tmp_path, added(DATA))).metadata
    assert metadata["format-version"] == "2"
    assert metadata["content"] == "data"
    assert metadata["schema-id"] == "0"
    assert Schema.model_validate_json(metadata["schema"]) == SCHEMA
    assert metadata["partition-spec-id"] == "1"
    assert metadata["partition-spec"] == (
        '[{"source-id":4,"field-id":1000,"transform":"day","name":"ts_day"},'
        '{"source-id":1,"field-id":1001,"transform":"identity","name":"id1"}]'
    )
    assert metadata["avro.codec"] == "deflate"
    deletes = write(
        tmp_path / "deletes", added(RANGE), content=ManifestContent.DELETES, spec=UNPARTITIONED, format_version=2
    )
    assert avro_file(deletes).metadata["content"] == "deletes"


def test_pyiceberg_reads_a_data_manifest(tmp_path: Path) -> None:
    """DA-9: the null sequence numbers of an ADDED entry are the snapshot's to a foreign reader too."""
    manifest = as_pyiceberg(write(tmp_path, added(DATA)), tmp_path)
    (entry,) = manifest.fetch_manifest_entry(LOCAL)
    assert entry.status is pyiceberg_manifest.ManifestEntryStatus.ADDED
    assert (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) == (77, 5, 5)
    file = entry.data_file
    assert file.content is pyiceberg_manifest.DataFileContent.DATA
    assert (file.file_path, file.file_format, file.record_count) == (DATA.file_path, "PARQUET", 3)
    assert [file.partition[0], file.partition[1]] == [19_000, "é"]
    assert (file.value_counts, file.lower_bounds, file.split_offsets) == ({1: 3, 2: 3}, {1: b"a"}, [4])
    assert manifest.partitions is not None
    assert [summary.lower_bound for summary in manifest.partitions] == [b"8J\x00\x00", "é".encode()]


def test_pyiceberg_reads_position_and_equality_deletes(tmp_path: Path) -> None:
    equality = replace(RANGE, file_format=PARQUET)
    position = replace(RANGE, file_format=PARQUET, content=FileContent.POSITION_DELETES, equality_ids=None)
    manifest = write(tmp_path, added(equality), added(position), content=ManifestContent.DELETES, spec=UNPARTITIONED)
    entries = as_pyiceberg(manifest, tmp_path).fetch_manifest_entry(LOCAL)
    assert [(int(entry.data_file.content), entry.data_file.equality_ids) for entry in entries] == [
        (2, [1, 2, 3]),
        (1, None),
    ]


def test_pyiceberg_refuses_a_range_delete(tmp_path: Path) -> None:
    """RD-6: the unknown file format keeps other readers from bringing deleted rows back."""
    manifest = write(tmp_path, added(RANGE), content=ManifestContent.DELETES, spec=UNPARTITIONED)
    with pytest.raises(ValueError, match=RANGE_DELETES_PARQUET):
        as_pyiceberg(manifest, tmp_path).fetch_manifest_entry(LOCAL)


def test_a_range_delete_is_stored_as_an_equality_delete_with_an_unknown_format(tmp_path: Path) -> None:
    """RD-6."""
    manifest = write(tmp_path, added(RANGE), content=ManifestContent.DELETES, spec=UNPARTITIONED)
    (record,) = avro_file(manifest)
    file = record["data_file"]
    assert (file["content"], file["equality_ids"], file["file_format"]) == (2, [1, 2, 3], "RANGE_DELETES_PARQUET")


def test_manifest_file_summarizes_its_entries(tmp_path: Path) -> None:
    old = replace(DATA, sequence_number=3, file_sequence_number=4, record_count=10)
    gone = replace(DATA, sequence_number=1, file_sequence_number=1, record_count=100, partition=(None, "z"))
    manifest = write(
        tmp_path,
        added(DATA),
        ManifestEntry(EntryStatus.EXISTING, 70, old),
        ManifestEntry(EntryStatus.DELETED, 77, gone),
    )
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (1, 1, 1)
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (3, 10, 100)
    assert manifest.manifest_length_bytes == Path(manifest.manifest_path).stat().st_size
    assert (manifest.sequence_number, manifest.added_snapshot_id) == (None, 77)
    assert manifest.min_sequence_number == 3, "a deleted file is not live"
    assert manifest.partitions is not None
    assert [summary.contains_null for summary in manifest.partitions] == [True, False]


def test_rewritten_entry_keeps_its_data_sequence_number(tmp_path: Path) -> None:
    """DA-9: an ADDED entry may carry an explicit older number; the file's own number is still inherited."""
    manifest = write(tmp_path, added(replace(DATA, sequence_number=2)))
    (entry,) = as_pyiceberg(manifest, tmp_path).fetch_manifest_entry(LOCAL)
    assert (entry.sequence_number, entry.file_sequence_number) == (2, 5)
    assert manifest.min_sequence_number == 2


@pytest.mark.parametrize("status", [EntryStatus.EXISTING, EntryStatus.DELETED])
def test_only_added_entries_may_omit_sequence_numbers(tmp_path: Path, status: EntryStatus) -> None:
    """DA-9."""
    with pytest.raises(InvalidArgumentError, match=f"{status.name} must state its sequence numbers"):
        write(tmp_path, ManifestEntry(status, 70, replace(DATA, sequence_number=3)))
    assert not (tmp_path / "m.avro").exists()


def test_a_file_in_the_wrong_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be in a manifest of DATA"):
        write(tmp_path, added(replace(RANGE, spec_id=1, partition=(1, "a"))))
    with pytest.raises(InvalidArgumentError, match="partition spec 1, not 0"):
        write(tmp_path, added(DATA), spec=UNPARTITIONED)
    no_ids = replace(RANGE, equality_ids=None)
    with pytest.raises(InvalidArgumentError, match="equality ids"):
        write(tmp_path, added(no_ids), content=ManifestContent.DELETES, spec=UNPARTITIONED)
    vector = replace(RANGE, content=FileContent.POSITION_DELETES, equality_ids=None, file_format=PUFFIN)
    with pytest.raises(InvalidArgumentError, match="format version 3"):
        write(tmp_path, added(vector), content=ManifestContent.DELETES, spec=UNPARTITIONED)
    with pytest.raises(UnsupportedFeatureError, match="not 4"):
        write(tmp_path, added(DATA), format_version=4)


def test_float_summaries_cover_both_zeros_and_exclude_nan() -> None:
    nan = float("nan")
    (summary,) = partition_summaries([(0.0,), (nan,), (None,)], (DoubleType(),))
    assert (summary.contains_null, summary.contains_nan) == (True, True)
    assert summary.lower_bound == to_bound(-0.0, DoubleType())
    assert summary.upper_bound == to_bound(0.0, DoubleType())
    (empty,) = partition_summaries([(nan,)], (DoubleType(),))
    assert (empty.lower_bound, empty.upper_bound) == (None, None)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_manifest_with_range_deletes_has_no_spec_in_its_header(tmp_path: Path, format_version: int) -> None:
    """RD-6: readers that attach deletes by partition alone need it and fail. Other deletes in the manifest do not
    matter."""

    def header(*deletes: DeleteFile) -> dict[str, str]:
        directory = tmp_path / "-".join(delete.file_format for delete in deletes)
        manifest = write(
            directory,
            *map(added, deletes),
            content=ManifestContent.DELETES,
            spec=UNPARTITIONED,
            format_version=format_version,
        )
        metadata: dict[str, str] = avro_file(manifest).metadata
        return metadata

    equality = replace(RANGE, file_format=PARQUET)
    assert "partition-spec" in header(equality)
    for deletes in ((RANGE,), (equality, RANGE)):
        metadata = header(*deletes)
        assert "partition-spec" not in metadata
        assert metadata["partition-spec-id"] == "0"
