"""Statistics files: the counts, the blobs, and how long the files are kept."""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from new_lakes import new_lake
from pyiceberg.types import BooleanType, DecimalType, IntegerType, LongType, PrimitiveType, StringType

import tableformat as tf
from tableformat.errors import CommitConflictError, InvalidArgumentError, SnapshotNotFoundError, UnknownColumnError
from tableformat.metadata.puffin import read_footer
from tableformat.metadata.sketches.murmur3 import murmur3
from tableformat.metadata.sketches.theta_sketch import ThetaSketch
from tableformat.metadata.sketches.value_bytes import distinct_value_bytes

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(ids: range) -> pa.Table:
    return pa.table(
        {
            "id": list(ids),
            "name": [f"n{each % 7}" if each % 10 else None for each in ids],
            "day": [date(2026, 1, 1 + each % 3) for each in ids],
            "price": [Decimal(each).scaleb(-2) for each in ids],
            "tags": [["a"] for _ in ids],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path: Path) -> tf.Table:
    """Ids 0 to 99 in two files; ids from 50 on are deleted."""
    catalog = new_lake(tmp_path / "lake")
    created = catalog.create_table("db.t", SCHEMA, key=["id"])
    created.append(rows(range(60)))
    created.append(rows(range(60, 100)))
    created.delete_range(lower=(50,))
    return created


def chunked(values: list[object], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def stored_files(table: tf.Table) -> list[str]:
    return sorted(path.name for path in Path(table.location.removeprefix("file://")).rglob("*.stats"))


def test_distinct_values_of_live_rows_are_counted(table: tf.Table) -> None:
    """SP-39."""
    result = table.maintenance.compute_table_stats()
    assert dict(zip(result.columns, result.distinct_counts, strict=True)) == {
        "id": 50,
        "name": 7,
        "day": 3,
        "price": 50,
    }
    (file,) = table.refresh().metadata.statistics
    assert (file.snapshot_id, file.statistics_path) == (table.snapshot_id, result.statistics_file)
    footer = read_footer(table.iceberg.io, file.statistics_path, file.file_size_in_bytes)
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    assert {(blob.type, blob.snapshot_id, blob.sequence_number) for blob in footer.blobs} == {
        ("apache-datasketches-theta-v1", snapshot.snapshot_id, snapshot.sequence_number)
    }
    assert [(blob.fields, blob.properties) for blob in footer.blobs] == [
        ((1,), {"ndv": "50"}),
        ((2,), {"ndv": "7"}),
        ((3,), {"ndv": "3"}),
        ((4,), {"ndv": "50"}),
    ]
    assert [(tuple(each.fields), each.properties) for each in file.blob_metadata] == [
        (blob.fields, blob.properties) for blob in footer.blobs
    ]
    end = footer.blobs[-1].offset + footer.blobs[-1].length_bytes
    assert file.file_size_in_bytes - end == file.file_footer_size_in_bytes


def test_statistics_of_another_snapshot_and_dry_run(table: tf.Table) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    asked = table.maintenance.compute_table_stats(dry_run=True)
    assert (asked.columns, asked.distinct_counts, asked.statistics_file) == (("id", "name", "day", "price"), (), None)
    assert stored_files(table) == []
    counted = table.maintenance.compute_table_stats(["id"], snapshot_id=first)
    assert (counted.snapshot_id, counted.distinct_counts) == (first, (60,))
    empty = tf.open_catalog(table.location.removeprefix("file://").rsplit("/", 2)[0]).create_table("db.e", SCHEMA)
    assert empty.maintenance.compute_table_stats().snapshot_id is None


def test_invalid_statistics_columns_are_rejected(table: tf.Table) -> None:
    job = table.maintenance
    with pytest.raises(UnknownColumnError):
        job.compute_table_stats(["nam"])
    with pytest.raises(InvalidArgumentError, match="'tags' has the type list"):
        job.compute_table_stats(["tags"])
    with pytest.raises(InvalidArgumentError, match="columns is empty"):
        job.compute_table_stats([])
    with pytest.raises(SnapshotNotFoundError):
        job.compute_table_stats(snapshot_id=7)
    assert stored_files(table) == []


def test_statistics_files_are_kept_as_long_as_their_snapshots(table: tf.Table) -> None:
    """MT-50, MT-53: expiry removes a statistics file with its snapshot, and no search for orphans one that is named."""
    first = table.metadata.snapshots[0].snapshot_id
    job = table.maintenance
    job.compute_table_stats(["id"], snapshot_id=first)
    job.compute_table_stats(["id"])
    replaced = stored_files(table)
    job.compute_table_stats(["name"])
    assert len(stored_files(table)) == 3
    job.remove_orphan_files(older_than=10**15, allow_recent=True)
    named = {file.statistics_path.rpartition("/")[2] for file in table.refresh().metadata.statistics}
    assert set(stored_files(table)) == named
    assert len(named) == 2
    assert len(named & set(replaced)) == 1, "the file of the head that another took the place of is an orphan"
    job.expire_snapshots(older_than=10**15)
    (kept,) = table.refresh().metadata.statistics
    assert stored_files(table) == [kept.statistics_path.rpartition("/")[2]]
    assert table.verify().findings == ()


def test_concurrently_expired_snapshot_leaves_no_file(table: tf.Table) -> None:
    """MT-53"""
    first = table.metadata.snapshots[0].snapshot_id
    other = table.catalog.load_table("db.t")

    def expire(done: int, _total: int, _what: str) -> None:
        if not done:
            other.maintenance.expire_snapshots(snapshot_ids=[first])

    with pytest.raises(CommitConflictError):
        table.maintenance.compute_table_stats(snapshot_id=first, progress=expire)
    assert stored_files(table) == []
    assert table.refresh().metadata.statistics == []


def test_murmur_hashes_match_test_vectors() -> None:
    """Test vectors of MurmurHash3_x64_128, the first half of each."""
    for text, seed, expected in (
        (b"", 0, 0),
        (b"hello", 0, 0xCBD8A7B341BD9B02),
        (b"The quick brown fox jumps over the lazy dog", 0, 0xE34BBC7BBC071B6C),
        (struct.pack("<Q", 9001), 0, None),
    ):
        found = int(murmur3(np.frombuffer(text, np.uint8).reshape(1, len(text)), seed)[0])
        assert found == expected if expected is not None else found & 0xFFFF == 0x93CC, "the seed's own hash"


@pytest.mark.parametrize(
    ("values", "kind", "column", "expected"),
    [
        ([True, False, None, True], pa.bool_(), BooleanType(), {b"\x01", b"\x00"}),
        ([1, -1], pa.int32(), IntegerType(), {b"\x01\0\0\0", b"\xff\xff\xff\xff"}),
        ([258], pa.int64(), LongType(), {b"\x02\x01\0\0\0\0\0\0"}),
        (["", "é", "ab", "ab"], pa.large_string(), StringType(), {b"", "é".encode(), b"ab"}),
        (
            [Decimal("1.27"), Decimal("1.28"), Decimal("-1.28"), Decimal("-1.29"), Decimal("0.00"), None],
            pa.decimal128(9, 2),
            DecimalType(9, 2),
            {b"\x7f", b"\x00\x80", b"\x80", b"\xff\x7f", b"\x00"},
        ),
    ],
)
def test_values_are_hashed_as_iceberg_writes_them(
    values: list[object], kind: pa.DataType, column: PrimitiveType, expected: set[bytes]
) -> None:
    """SP-39."""
    groups = distinct_value_bytes(chunked(values, kind), column)
    assert {bytes(row) for rows in groups for row in rows} == expected


def test_sketches_match_the_java_library() -> None:
    """SP-39: bytes that its Java library 6.2.0 wrote for the same values."""
    assert ThetaSketch.of(chunked([5], pa.int64()), LongType()).to_bytes().hex() == "01030300003acc93bd3273724691cc14"
    assert ThetaSketch.of(chunked([True, False], pa.bool_()), BooleanType()).to_bytes().hex() == (
        "02030300001acc93020000000000803f649f00331e40e8035443e83313d70104"
    )
    assert ThetaSketch.empty().to_bytes().hex() == "01030300001e0000"
