"""FM-26: key summaries in a manifest list rule out manifests, but never one with a matching row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, GreaterThan, IsNull, LessThan
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, UUIDType

from tableformat.errors import CorruptFileError
from tableformat.filters.bound_filter import bind_filter
from tableformat.filters.file_pruning import FilePruning
from tableformat.filters.key_summaries import column_summaries
from tableformat.metadata.column_bounds import to_bound
from tableformat.metadata.content_file import PARQUET, DataFile
from tableformat.metadata.manifests import manifest_list
from tableformat.metadata.manifests.manifest_entry import ColumnSummary, ManifestContent, ManifestFile

ID = NestedField(1, "id", LongType(), required=False)
NAME = NestedField(2, "name", StringType(), required=False)
SCHEMA = Schema(ID, NAME)
LOCAL = PyArrowFileIO()


def data_file(lower: int | None, upper: int | None, nulls: int | None = 0) -> DataFile:
    return DataFile(
        file_path=f"file:/t/{lower}.parquet",
        file_format=PARQUET,
        spec_id=0,
        record_count=3,
        file_size_bytes=1,
        null_value_counts=None if nulls is None else {1: nulls},
        lower_bounds=None if lower is None else {1: to_bound(lower, LongType())},
        upper_bounds=None if upper is None else {1: to_bound(upper, LongType())},
    )


def manifest(columns: tuple[ColumnSummary, ...] | None) -> ManifestFile:
    counts = ("added_files", "existing_files", "deleted_files", "added_rows", "existing_rows", "deleted_rows")
    return ManifestFile(
        manifest_path="file:/t/m.avro",
        manifest_length_bytes=1,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
        columns=columns,
        **dict.fromkeys((f"{name}_count" for name in counts), 1),
    )


def may_match(columns: tuple[ColumnSummary, ...] | None, where: Any) -> bool:
    pruning = FilePruning(bind_filter(where, SCHEMA), {0: PartitionSpec(spec_id=0)}, SCHEMA)
    return pruning.manifest_may_match(manifest(columns))


def test_summary_bounds_are_compared_as_numbers() -> None:
    """Bytes of numbers are in another order."""
    (summary,) = column_summaries([data_file(-5, 300), data_file(2, 7)], [ID, NAME])
    assert summary == ColumnSummary(1, False, to_bound(-5, LongType()), to_bound(300, LongType()))
    assert may_match((summary,), EqualTo("id", 300))
    assert not may_match((summary,), EqualTo("id", 301))
    assert not may_match((summary,), LessThan("id", -5))
    assert not may_match((summary,), IsNull("id"))


def test_file_without_bound_leaves_the_summary_unbounded() -> None:
    (summary,) = column_summaries([data_file(1, 3), data_file(2, None)], [ID])
    assert summary == ColumnSummary(1, False, to_bound(1, LongType()), None)
    assert may_match((summary,), GreaterThan("id", 10**9))
    assert not may_match((summary,), LessThan("id", 1))
    assert column_summaries([data_file(None, None)], [ID]) == ()


def test_uncounted_nulls_may_be_present() -> None:
    (summary,) = column_summaries([data_file(1, 3, nulls=0), data_file(2, 3, nulls=None)], [ID])
    assert may_match((summary,), IsNull("id"))


def test_column_without_summary_excludes_nothing() -> None:
    (summary,) = column_summaries([data_file(1, 3)], [ID])
    assert may_match((summary,), EqualTo("name", "x"))
    assert may_match(None, EqualTo("id", 99))


def test_uuid_summary_bounds_are_used_like_file_bounds() -> None:
    """Some writers order uuids as signed numbers: a lower bound of 80.. or more does not rule out smaller ones."""
    column = NestedField(1, "id", UUIDType(), required=False)
    low = replace(data_file(0, 0), lower_bounds={1: bytes([5] * 16)}, upper_bounds={1: bytes([0x85] * 16)})
    odd = replace(low, lower_bounds={1: bytes([0x90] * 16)})
    (summary,) = column_summaries([low], [column])
    assert (summary.lower_bound, summary.upper_bound) == (bytes([5] * 8 + [0] * 8), bytes([0x85] * 8 + [0xFF] * 8))
    (summary,) = column_summaries([low, odd], [column])
    assert summary.lower_bound is None


def test_manifest_lists_have_summary_field_only_if_needed(tmp_path: Path) -> None:
    columns = (ColumnSummary(1, True, b"\x00", None), ColumnSummary(2, False, None, b"z"))

    def written(name: str, *manifests: ManifestFile) -> tuple[ManifestFile, ...]:
        location = str(tmp_path / name)
        manifest_list.write_manifest_list(
            LOCAL,
            location,
            manifests=manifests,
            snapshot_id=1,
            parent_snapshot_id=None,
            sequence_number=1,
            format_version=2,
        )
        return manifest_list.decode_manifest_list(LOCAL, location)

    found = written("with.avro", manifest(columns), manifest(None))
    assert [each.columns for each in found] == [columns, None]
    assert b"column_summaries" in (tmp_path / "with.avro").read_bytes()
    assert [each.columns for each in written("without.avro", manifest(None))] == [None]
    assert b"column_summaries" not in (tmp_path / "without.avro").read_bytes()


@pytest.mark.parametrize("stored", [b"", b"{}x", b"[[1]]", b'[[1, false, "zz", null]]'])
def test_damaged_summaries_error_names_the_manifest_list(stored: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"list\.avro"):
        manifest_list._column_summaries(stored, "list.avro")
