from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, VoidTransform
from pyiceberg.types import DoubleType, FloatType, ListType, LongType, NestedField, StringType
from write_tables import SCHEMA, context, files_under, rows

from tableformat.deletes.codecs.range_file import spans_from_parquet
from tableformat.deletes.positions import PositionSet
from tableformat.deletes.spans.spans import span_of_bounds, spans_of_prefixes
from tableformat.errors import (
    InvalidArgumentError,
    InvalidKeyError,
    RowsRefusedError,
    SchemaMismatchError,
    UnknownColumnError,
    UnsupportedFeatureError,
)
from tableformat.keys.key_columns import KeyColumns
from tableformat.metadata.content_file import DeleteFile, DeleteKind, FileContent
from tableformat.parquet.parquet_file import plain_parquet
from tableformat.properties import WRITE_MEMORY_BYTES
from tableformat.write.data_files.data_files import write_data_files
from tableformat.write.delete_files.equality_deletes import write_equality_delete_file, write_equality_deletes
from tableformat.write.delete_files.position_deletes import write_position_deletes
from tableformat.write.delete_files.range_deletes import write_range_delete_file

FILE_PATH, POS = 2147483546, 2147483545


def content(file: DeleteFile) -> pa.Table:
    return pq.read_table(pa.BufferReader(plain_parquet(Path(file.file_path).read_bytes())))


def field_ids(file: DeleteFile) -> dict[str, int]:
    return {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in content(file).schema}


# -- position deletes -------------------------------------------------------------------------------------------------


def test_da_1_position_delete_file_names_exactly_one_data_file(tmp_path: Path) -> None:
    """FM-10, DA-1, DA-10."""
    ctx = context(tmp_path, PartitionField(1, 1000, BucketTransform(4), "bucket"))
    (data,) = write_data_files(ctx, rows(("a", 1, 1), ("a", 1, 2), ("a", 1, 3))).data_files
    (delete,) = write_position_deletes(ctx, {data: PositionSet.from_array(np.array([2, 0]))})
    assert content(delete).to_pylist() == [
        {"file_path": data.file_path, "pos": 0},
        {"file_path": data.file_path, "pos": 2},
    ]
    assert field_ids(delete) == {"file_path": FILE_PATH, "pos": POS}
    assert delete.kind is DeleteKind.POSITION
    assert delete.referenced_data_file == data.file_path
    assert delete.lower_bounds == {FILE_PATH: data.file_path.encode(), POS: (0).to_bytes(8, "little")}
    assert delete.upper_bounds == {FILE_PATH: data.file_path.encode(), POS: (2).to_bytes(8, "little")}
    assert (delete.spec_id, delete.partition) == (data.spec_id, data.partition)
    assert delete.record_count == 2
    assert delete.equality_ids is None
    assert delete.file_size_bytes == Path(delete.file_path).stat().st_size < 2_000


def test_v3_table_rejects_position_delete_files(tmp_path: Path) -> None:
    ctx = context(tmp_path, format_version=3)
    (data,) = write_data_files(ctx, rows(("a", 1, 1))).data_files
    with pytest.raises(UnsupportedFeatureError, match="deletion vectors"):
        write_position_deletes(ctx, {data: PositionSet.from_array(np.array([0]))})


# -- equality deletes -------------------------------------------------------------------------------------------------


def test_equality_deletes_are_distinct_sorted_and_bounded(tmp_path: Path) -> None:
    """FM-12, DA-4: null equals null, also when rows are made distinct."""
    day = pa.array([dt.date(2026, 1, 2), None, dt.date(2026, 1, 1), None, None])
    keys = pa.table({"day": day, "id1": ["b", "a", "c" * 30, "a", "b"]})
    delete = write_equality_delete_file(context(tmp_path), keys, spec_id=0)
    assert content(delete).to_pylist() == [
        {"day": None, "id1": "a"},
        {"day": None, "id1": "b"},
        {"day": dt.date(2026, 1, 1), "id1": "c" * 30},
        {"day": dt.date(2026, 1, 2), "id1": "b"},
    ]
    assert field_ids(delete) == {"day": 4, "id1": 1}
    assert delete.kind is DeleteKind.EQUALITY
    assert delete.content is FileContent.EQUALITY_DELETES
    assert delete.equality_ids == (4, 1)
    assert delete.record_count == 4
    assert delete.null_value_counts == {4: 2, 1: 0}
    assert delete.lower_bounds == {4: (20454).to_bytes(4, "little"), 1: b"a"}
    assert delete.upper_bounds == {4: (20455).to_bytes(4, "little"), 1: b"c" * 30}
    assert (delete.spec_id, delete.partition) == (0, ())


@pytest.mark.parametrize("kind", [FloatType(), DoubleType()])
def test_da_5_floating_point_columns_are_refused(tmp_path: Path, kind: FloatType | DoubleType) -> None:
    """DA-5."""
    ctx = context(tmp_path, schema=Schema(NestedField(1, "x", kind, required=False)), key=())
    with pytest.raises(InvalidKeyError):
        write_equality_delete_file(ctx, pa.table({"x": [1.0]}), spec_id=0)
    assert files_under(tmp_path) == []


def test_invalid_delete_column_error_names_it(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "name", StringType(), required=True),
        NestedField(2, "tags", ListType(3, LongType(), element_required=False), required=False),
    )
    ctx = context(tmp_path, schema=schema, key=())
    with pytest.raises(UnknownColumnError):
        write_equality_delete_file(ctx, pa.table({"nam": ["a"]}), spec_id=0)
    with pytest.raises(InvalidKeyError):
        write_equality_delete_file(ctx, pa.table({"tags": [[1]]}), spec_id=0)
    with pytest.raises(SchemaMismatchError):
        write_equality_delete_file(ctx, pa.table({"name": [1]}), spec_id=0)
    with pytest.raises(RowsRefusedError):
        write_equality_delete_file(ctx, pa.table({"name": ["a", None]}), spec_id=0)
    with pytest.raises(InvalidKeyError):
        write_equality_delete_file(ctx, pa.table({"name": pa.array([], pa.string())}), spec_id=0)
    assert files_under(tmp_path) == []


def test_a_long_stream_of_keys_becomes_several_files(tmp_path: Path) -> None:
    ctx = context(tmp_path, properties={WRITE_MEMORY_BYTES: "20000"})
    keys = pa.table({"id2": np.arange(9_000) % 5_000})
    deletes = write_equality_deletes(ctx, keys.to_reader(500), spec_id=0)
    assert len(deletes) > 1
    assert {row for delete in deletes for row in content(delete).column("id2").to_pylist()} == set(range(5_000))
    assert write_equality_deletes(ctx, keys.slice(0, 0), spec_id=0) == []


def test_delete_entry_has_its_partition_or_void_nulls(tmp_path: Path) -> None:
    keys = pa.table({"id1": ["a"]})
    bucketed = context(tmp_path, PartitionField(1, 1000, BucketTransform(4), "bucket"))
    assert write_equality_delete_file(bucketed, keys, spec_id=1, partition=(3,)).partition == (3,)
    assert write_equality_delete_file(bucketed, keys, spec_id=0).partition == ()
    void = context(tmp_path, PartitionField(1, 1000, VoidTransform(), "id1_null"))
    assert write_equality_delete_file(void, keys, spec_id=1).partition == (None,)
    with pytest.raises(InvalidArgumentError, match="needs 1 partition values, not 0"):
        write_equality_delete_file(bucketed, keys, spec_id=1)
    with pytest.raises(InvalidArgumentError, match=r"no partition spec 7, only \[0, 1\]"):
        write_equality_delete_file(bucketed, keys, spec_id=7)


# -- range deletes ----------------------------------------------------------------------------------------------------

KEY = KeyColumns.of(SCHEMA, (1, 2, 3))


def test_rd_6_a_range_delete_file_is_gated_and_small(tmp_path: Path) -> None:
    """FM-9, RD-6."""
    delete = write_range_delete_file(
        context(tmp_path), spans_of_prefixes(KEY, pa.table({"id1": ["customer-17"], "id2": [42]})), spec_id=0
    )
    assert delete.file_format == "RANGE_DELETES_PARQUET"
    assert delete.content is FileContent.EQUALITY_DELETES
    assert delete.kind is DeleteKind.RANGE
    assert delete.equality_ids == (1, 2, 3)
    assert delete.record_count == 1
    assert delete.sequence_number is None
    assert delete.lower_bounds == delete.upper_bounds == {1: b"customer-17", 2: (42).to_bytes(8, "little")}
    assert delete.file_size_bytes == Path(delete.file_path).stat().st_size <= 4096


def test_rd_7_overlapping_spans_are_merged_before_they_are_written(tmp_path: Path) -> None:
    """RD-7."""
    spans = [
        span_of_bounds(KEY, ("a",), ("c",)),
        span_of_bounds(KEY, ("b",), ("d",)),
        span_of_bounds(KEY, ("x",), None),
    ]
    delete = write_range_delete_file(context(tmp_path), type(spans[0]).concat(spans[::-1]), spec_id=0)
    read = spans_from_parquet(content(delete), delete.file_path, SCHEMA)
    assert read.lower.encoded.to_pylist() == [spans[0].lower.encoded[0].as_py(), spans[2].lower.encoded[0].as_py()]
    assert read.upper.encoded.to_pylist() == [spans[1].upper.encoded[0].as_py(), spans[2].upper.encoded[0].as_py()]
    assert delete.record_count == 2
