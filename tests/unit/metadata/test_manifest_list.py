"""Manifest lists: sequence numbers that the commit assigns, and reading lists of every format version."""

from __future__ import annotations

import io as stdlib_io
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.io.pyarrow import PyArrowFileIO

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.metadata.manifests.manifest_entry import ManifestContent, ManifestFile, PartitionFieldSummary
from tableformat.metadata.manifests.manifest_list import next_row_id, read_manifest_list, write_manifest_list

LOCAL = PyArrowFileIO()
OLD = ManifestFile(
    manifest_path="s3://b/t/metadata/old.avro",
    manifest_length_bytes=100,
    partition_spec_id=1,
    content=ManifestContent.DATA,
    sequence_number=3,
    min_sequence_number=2,
    added_snapshot_id=50,
    added_files_count=1,
    existing_files_count=2,
    deleted_files_count=3,
    added_rows_count=10,
    existing_rows_count=20,
    deleted_rows_count=30,
    partitions=(PartitionFieldSummary(True, False, b"a", b"z"), PartitionFieldSummary(False, None, None, None)),
    key_metadata=b"key",
)
NEW = replace(
    OLD,
    manifest_path="s3://b/t/metadata/new.avro",
    sequence_number=None,
    min_sequence_number=None,
    added_snapshot_id=77,
    partitions=(),
    key_metadata=None,
)
DELETES = replace(NEW, manifest_path="s3://b/t/metadata/deletes.avro", content=ManifestContent.DELETES)


def write(path: Path, *manifests: ManifestFile, version: int = 2, first_row_id: int | None = None) -> Any:
    return write_manifest_list(
        LOCAL,
        str(path),
        manifests=manifests,
        snapshot_id=77,
        parent_snapshot_id=50,
        sequence_number=9,
        format_version=version,
        first_row_id=first_row_id,
    )


def test_commit_assigns_sequence_number_only_to_new_manifests(tmp_path: Path) -> None:
    """DA-9."""
    rewritten = replace(NEW, manifest_path="s3://b/t/metadata/rewritten.avro", min_sequence_number=4)
    assigned = write(tmp_path / "list.avro", NEW, rewritten, OLD)
    assert [(one.sequence_number, one.min_sequence_number) for one in assigned] == [(9, 9), (9, 4), (3, 2)]
    assert read_manifest_list(LOCAL, str(tmp_path / "list.avro")) == assigned


def test_pyiceberg_reads_the_list(tmp_path: Path) -> None:
    write(tmp_path / "list.avro", NEW, DELETES, OLD)
    found = list(pyiceberg_manifest.read_manifest_list(LOCAL.new_input(str(tmp_path / "list.avro"))))
    assert [one.manifest_path.rsplit("/", 1)[-1] for one in found] == ["new.avro", "deletes.avro", "old.avro"]
    assert [one.sequence_number for one in found] == [9, 9, 3]
    assert [int(one.content) for one in found] == [0, 1, 0]
    partitions = found[2].partitions
    assert partitions is not None
    assert [(one.contains_null, one.contains_nan, one.lower_bound) for one in partitions] == [
        (True, False, b"a"),
        (False, None, None),
    ]


def test_row_ids_are_assigned_once_to_data_manifests(tmp_path: Path) -> None:
    numbered = replace(OLD, first_row_id=500)
    manifests = (numbered, NEW, DELETES, OLD)
    assigned = write(tmp_path / "list.avro", *manifests, version=3, first_row_id=1000)
    assert [one.first_row_id for one in assigned] == [500, 1000, None, 1030]
    assert next_row_id(manifests, assigned, 1000) == 1060
    assert read_manifest_list(LOCAL, str(tmp_path / "list.avro")) == assigned


def v1_list(path: Path, record: dict[str, Any], counts: bool) -> None:
    """A manifest list in the form of the first writers."""
    fields = [("manifest_path", "string", 500), ("manifest_length", "long", 501), ("partition_spec_id", "int", 502)]
    fields.append(("added_snapshot_id", "long", 503))
    if counts:
        names = ("added_data_files_count", "existing_data_files_count", "deleted_data_files_count")
        fields += [(name, "int", 504 + position) for position, name in enumerate(names)]
        names = ("added_rows_count", "existing_rows_count", "deleted_rows_count")
        fields += [(name, "long", 512 + position) for position, name in enumerate(names)]
    schema = {
        "type": "record",
        "name": "manifest_file",
        "fields": [{"name": name, "type": kind, "field-id": field_id} for name, kind, field_id in fields],
    }
    stream = stdlib_io.BytesIO()
    fastavro.writer(stream, schema, [record], codec="null")
    path.write_bytes(stream.getvalue())


def test_v1_list_has_sequence_number_zero_and_old_count_names(tmp_path: Path) -> None:
    """DA-9."""
    record = {
        "manifest_path": "m.avro",
        "manifest_length": 5,
        "partition_spec_id": 0,
        "added_snapshot_id": 1,
        "added_data_files_count": 1,
        "existing_data_files_count": 2,
        "deleted_data_files_count": 3,
        "added_rows_count": 4,
        "existing_rows_count": 5,
        "deleted_rows_count": 6,
    }
    v1_list(tmp_path / "list.avro", record, counts=True)
    (manifest,) = read_manifest_list(LOCAL, str(tmp_path / "list.avro"))
    assert (manifest.content, manifest.sequence_number, manifest.min_sequence_number) == (ManifestContent.DATA, 0, 0)
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (1, 2, 3)
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (4, 5, 6)
    assert manifest.partitions is None


def test_missing_v1_counts_are_read_from_the_manifest(tmp_path: Path) -> None:
    file = {"type": "record", "name": "r2", "fields": [{"name": "record_count", "type": "long", "field-id": 103}]}
    schema = {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "data_file", "type": file, "field-id": 2},
        ],
    }
    records = [{"status": status, "data_file": {"record_count": 10 + status}} for status in (0, 1, 2, 0)]
    with (tmp_path / "m.avro").open("wb") as stream:
        fastavro.writer(stream, schema, records)
    record = {"manifest_length": 5, "partition_spec_id": 0, "added_snapshot_id": 1}
    v1_list(tmp_path / "list.avro", {"manifest_path": f"{tmp_path}/m.avro", **record}, counts=False)
    (manifest,) = read_manifest_list(LOCAL, str(tmp_path / "list.avro"))
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (1, 2, 1)
    assert (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count) == (11, 20, 12)


def test_missing_or_damaged_manifest_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match=r"gone\.avro.*does not exist"):
        read_manifest_list(LOCAL, f"{tmp_path}/gone.avro")
    (tmp_path / "bad.avro").write_bytes(b"PAR1")
    with pytest.raises(CorruptFileError, match=r"bad\.avro.*Avro"):
        read_manifest_list(LOCAL, f"{tmp_path}/bad.avro")


def test_unknown_manifest_content_is_rejected(tmp_path: Path) -> None:
    write(tmp_path / "good.avro", OLD)
    good = fastavro.reader(stdlib_io.BytesIO((tmp_path / "good.avro").read_bytes()))
    assert isinstance(good.writer_schema, dict)
    records = [{**record, "content": 2} for record in good if isinstance(record, dict)]
    with (tmp_path / "list.avro").open("wb") as stream:
        fastavro.writer(stream, good.writer_schema, records)
    with pytest.raises(UnsupportedFeatureError, match=r"old\.avro has content 2"):
        read_manifest_list(LOCAL, f"{tmp_path}/list.avro")
