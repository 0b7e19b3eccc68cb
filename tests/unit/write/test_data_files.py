from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import DoubleType, FloatType, ListType, LongType, NestedField, StringType, StructType
from write_tables import context, files_under, rows

from tableformat.errors import InvalidArgumentError, RowsRefusedError
from tableformat.keys.sort_marker import sorted_by
from tableformat.metadata.column_bounds import from_bound
from tableformat.metadata.content_file import DataFile
from tableformat.parquet.parquet_output import ParquetOutput
from tableformat.properties import COMPRESSION_CODEC, ROW_GROUP_LIMIT, TARGET_FILE_SIZE_BYTES, WRITE_MEMORY_BYTES
from tableformat.write.data_files.data_files import DataFileSink, write_data_files
from tableformat.write.staged import StagedFiles

KEY = ("id1", "id2", "num_cal")


def keys_of(file: DataFile) -> list[tuple[object, ...]]:
    table = pq.read_table(file.file_path, partitioning=None)
    return list(zip(*(table.column(name).to_pylist() for name in KEY), strict=True))


def numbered(count: int) -> pa.Table:
    """Shuffled rows of many keys."""
    order = np.random.default_rng(3).permutation(count)
    return rows(*[(f"c{n // 40:05d}", n // 10, n) for n in order.tolist()])


def test_rows_are_written_sorted_with_marker(tmp_path: Path) -> None:
    """FM-6, FM-7, RD-11."""
    staged = write_data_files(context(tmp_path), rows(("b", 1, 1), ("a", 2, 1), ("a", 1, 2), ("a", 1, 1)))
    (file,) = staged.data_files
    assert keys_of(file) == [("a", 1, 1), ("a", 1, 2), ("a", 2, 1), ("b", 1, 1)]
    metadata = pq.read_metadata(file.file_path)
    assert sorted_by(metadata.metadata) == (1, 2, 3)
    assert staged.row_count == file.record_count == 4
    assert staged.written_bytes == file.file_size_bytes == Path(file.file_path).stat().st_size


def test_keyless_table_keeps_row_order_without_marker(tmp_path: Path) -> None:
    """FM-7, RD-11."""
    staged = write_data_files(context(tmp_path, key=()), rows(("b", 1, 1), ("a", 2, 1)))
    (file,) = staged.data_files
    assert keys_of(file) == [("b", 1, 1), ("a", 2, 1)]
    assert sorted_by(pq.read_metadata(file.file_path).metadata) is None


def test_every_field_has_its_iceberg_id(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(4, "x", LongType(), required=True)), required=False),
        NestedField(2, "l", ListType(5, StringType(), element_required=False), required=False),
    )
    table = pa.table({"s": [{"x": 1}, None], "l": [["a", None], None]})
    (file,) = write_data_files(context(tmp_path, schema=schema, key=()), table).data_files
    written = pq.read_schema(file.file_path)

    def field_id(field: pa.Field) -> int:
        return int(field.metadata[b"PARQUET:field_id"])

    assert [field_id(field) for field in written] == [1, 2]
    assert field_id(written.field("s").type.field("x")) == 4
    assert field_id(written.field("l").type.value_field) == 5
    assert pq.read_table(file.file_path, partitioning=None).to_pylist() == table.to_pylist()


def test_metrics_are_exact(tmp_path: Path) -> None:
    """FM-8."""
    schema = Schema(
        NestedField(1, "id", StringType(), required=True),
        NestedField(2, "name", StringType(), required=False),
        NestedField(3, "x", DoubleType(), required=False),
        NestedField(4, "s", StructType(NestedField(5, "f", FloatType(), required=False)), required=False),
    )
    nan = float("nan")
    table = pa.table(
        {
            "id": ["k" * 40 + "a", "k" * 40 + "b", "k" * 70],
            "name": ["n" * 40, None, "m"],
            "x": [1.0, nan, -2.0],
            "s": [{"f": nan}, None, {"f": 1.0}],
        }
    )
    (file,) = write_data_files(context(tmp_path, schema=schema, key=(1,)), table).data_files
    assert file.value_counts == {1: 3, 2: 3, 3: 3, 5: 3}
    assert file.null_value_counts == {1: 0, 2: 1, 3: 0, 5: 1}
    assert file.nan_value_counts == {3: 1, 5: 1}
    assert file.lower_bounds is not None
    assert file.upper_bounds is not None
    lower = {field_id: from_bound(bound, schema.find_type(field_id)) for field_id, bound in file.lower_bounds.items()}
    upper = {field_id: from_bound(bound, schema.find_type(field_id)) for field_id, bound in file.upper_bounds.items()}
    # Key bounds are sharp up to 64 characters, others as Iceberg's default has them.
    assert lower == {1: "k" * 40 + "a", 2: "m", 3: -2.0, 5: 1.0}
    assert upper == {1: "k" * 63 + "l", 2: "n" * 15 + "o", 3: 1.0, 5: 1.0}


def test_each_bucket_has_its_own_files(tmp_path: Path) -> None:
    transform = BucketTransform(4)
    staged = write_data_files(context(tmp_path, PartitionField(1, 1000, transform, "id1_bucket")), numbered(400))
    of = transform.transform(StringType())
    found = {}
    for file in staged.data_files:
        keys = keys_of(file)
        assert {of(key[0]) for key in keys} == {file.partition[0]}
        assert keys == sorted(keys)
        assert f"/id1_bucket={file.partition[0]}/" in file.file_path
        found[file.partition] = len(keys)
    assert sum(found.values()) == staged.row_count == 400
    assert len(staged.data_files) == len(found)


def test_a_stream_is_written_in_bounded_memory_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 200_000
    source = numbered(40_000)
    most = 0
    original = DataFileSink.add

    def add(self: DataFileSink, batch: pa.RecordBatch) -> None:
        nonlocal most
        original(self, batch)
        most = max(most, self._buffered_bytes + self._staged.size_bytes)

    monkeypatch.setattr(DataFileSink, "add", add)
    spec = PartitionField(1, 1000, BucketTransform(4), "bucket")
    staged = write_data_files(
        context(tmp_path, spec, properties={WRITE_MEMORY_BYTES: str(limit)}),
        pa.RecordBatchReader.from_batches(source.schema, source.to_batches(max_chunksize=1_000)),
    )
    assert limit / 4 < most <= limit
    assert len(staged.data_files) > 4
    assert sorted(key for file in staged.data_files for key in keys_of(file)) == sorted(
        zip(*(source.column(name).to_pylist() for name in KEY), strict=True)
    )
    for file in staged.data_files:
        assert keys_of(file) == sorted(keys_of(file))


def test_large_buffer_is_split_into_consecutive_target_size_files(tmp_path: Path) -> None:
    target = 40_000
    staged = write_data_files(context(tmp_path, properties={TARGET_FILE_SIZE_BYTES: str(target)}), numbered(60_000))
    assert len(staged.data_files) > 3
    keys = [keys_of(file) for file in staged.data_files]
    assert [key for part in keys for key in part] == sorted(key for part in keys for key in part)
    assert all(0.7 * target < file.file_size_bytes < 1.5 * target for file in staged.data_files[:-1])


def test_a_stream_in_key_order_fills_one_file_across_buffers(tmp_path: Path) -> None:
    source = rows(*[(f"c{n // 40:05d}", n, n) for n in range(20_000)])
    staged = write_data_files(
        context(tmp_path, properties={WRITE_MEMORY_BYTES: "100000"}),
        pa.RecordBatchReader.from_batches(source.schema, source.to_batches(max_chunksize=1_000)),
    )
    (file,) = staged.data_files
    assert pq.read_metadata(file.file_path).num_row_groups > 1
    assert keys_of(file) == list(zip(*(source.column(name).to_pylist() for name in KEY), strict=True))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("key", [(1, 2, 3), ()])
@pytest.mark.parametrize("batch_rows", [1, 7, 64, 1_000])
def test_row_groups_combine_rows_of_several_batches(
    tmp_path: Path, ordered: bool, key: tuple[int, ...], batch_rows: int
) -> None:
    """FM-6: however the rows are split into batches, the file has the rows of one batch in order, and keeps the row
    group limit."""
    given = numbered(300).sort_by([(name, "ascending") for name in KEY]) if ordered else numbered(300)
    reader = pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=batch_rows))
    staged = write_data_files(context(tmp_path, key=key, properties={ROW_GROUP_LIMIT: "50"}), reader)
    (file,) = staged.data_files
    came = list(zip(*(given.column(name).to_pylist() for name in KEY), strict=True))
    assert keys_of(file) == (sorted(came) if key else came)
    metadata = pq.read_metadata(file.file_path)
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [50] * 6


def test_rejected_rows_leave_no_file(tmp_path: Path) -> None:
    good = numbered(5_000)
    bad = pa.table({"id1": ["x"], "id2": [None], "num_cal": pa.array([1], pa.int32())}, schema=good.schema)
    with pytest.raises(RowsRefusedError):
        write_data_files(
            context(tmp_path, properties={WRITE_MEMORY_BYTES: "20000"}), pa.concat_tables([good, bad]).to_reader(500)
        )
    assert files_under(tmp_path) == []


def test_diverted_rows_have_index_and_reason(tmp_path: Path) -> None:
    table = pa.table({"id1": ["a", "b"], "id2": [1, None], "num_cal": [1, 2]})
    staged = write_data_files(context(tmp_path), table, on_refused="divert")
    assert keys_of(staged.data_files[0]) == [("a", 1, 1)]
    assert staged.refused is not None
    assert staged.refused.to_pylist() == [
        {
            "id1": "b",
            "id2": None,
            "num_cal": 2,
            "_row_index": 1,
            "_refused_column": "id2",
            "_refused_reason": "is null in a required column",
        }
    ]


@pytest.mark.parametrize("partitioned", [False, True])
def test_failing_source_leaves_no_file(tmp_path: Path, partitioned: bool) -> None:
    source = numbered(20_000)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from source.to_batches(max_chunksize=1_000)
        raise OSError("the source went away")

    spec = [PartitionField(1, 1000, BucketTransform(4), "bucket")] if partitioned else []
    with pytest.raises(OSError, match="the source went away"):
        write_data_files(
            context(tmp_path, *spec, properties={WRITE_MEMORY_BYTES: "50000"}),
            pa.RecordBatchReader.from_batches(source.schema, batches()),
        )
    assert files_under(tmp_path) == []


def test_failing_file_write_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = ParquetOutput.write_row_group
    calls = []

    def failing(self: ParquetOutput, batch: pa.RecordBatch) -> None:
        calls.append(batch)
        if len(calls) == 3:
            raise OSError("no space left on device")
        original(self, batch)

    monkeypatch.setattr(ParquetOutput, "write_row_group", failing)
    spec = PartitionField(1, 1000, BucketTransform(8), "bucket")
    with pytest.raises(OSError, match="no space left"):
        write_data_files(context(tmp_path, spec), numbered(400))
    assert files_under(tmp_path) == []


def test_write_context_and_result_can_be_pickled(tmp_path: Path) -> None:
    there = pickle.loads(pickle.dumps(context(tmp_path)))
    parts = [pickle.loads(pickle.dumps(write_data_files(there, rows(key)))) for key in (("a", 1, 1), ("b", 1, 1))]
    merged = StagedFiles.merge(parts)
    assert [keys_of(file) for file in merged.data_files] == [[("a", 1, 1)], [("b", 1, 1)]]
    assert merged.row_count == 2
    assert merged.written_bytes == sum(part.written_bytes for part in parts)
    merged.delete_all(there.io)
    assert files_under(tmp_path) == []


def test_unknown_codec_is_rejected_before_writing(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="compression-codec must be one of zstd"):
        write_data_files(context(tmp_path, properties={COMPRESSION_CODEC: "zip"}), rows(("a", 1, 1)))
    assert files_under(tmp_path) == []
