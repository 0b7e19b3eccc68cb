"""The values that rows of a data file have in a column that the file does not contain (DA-6)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from tableformat.keys.families import arrow_type_of
from tableformat.merge_on_read.delete_columns import value_where_missing
from tableformat.metadata.content_file import DataFile

DAY, MOMENT = dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 3, 4, 5, 6)
IDENTIFIER = UUID("01234567-89ab-cdef-0123-456789abcdef")
VALUES: list[tuple[IcebergType, Any, Any]] = [
    (LongType(), 7, 7),
    (StringType(), "a", "a"),
    (BinaryType(), b"\x00\xff", b"\x00\xff"),
    (DecimalType(9, 2), Decimal("1.50"), Decimal("1.50")),
    (DateType(), 20_455, DAY),
    (DateType(), DAY, DAY),
    (TimeType(), 11_045_000_006, dt.time(3, 4, 5, 6)),
    (TimestampType(), 1_767_323_045_000_006, MOMENT),
    (TimestampType(), MOMENT, MOMENT),
    (TimestampType(), DAY, dt.datetime(2026, 1, 2)),
    (TimestamptzType(), 1_767_323_045_000_006, MOMENT.replace(tzinfo=dt.UTC)),
    (UUIDType(), IDENTIFIER, IDENTIFIER.bytes),
    (LongType(), None, None),
    (TimestampType(), None, None),
]


def metadata_of(kind: IcebergType, *fields: PartitionField) -> TableMetadata:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "other", StringType(), required=False),
        NestedField(3, "late", kind, required=False),
    )
    return new_table_metadata(schema, PartitionSpec(*fields, spec_id=0), UNSORTED_SORT_ORDER, "file:///nowhere")


def file_of(*partition: Any) -> DataFile:
    return DataFile(
        file_path="file:///nowhere/a.parquet",
        file_format="PARQUET",
        spec_id=0,
        record_count=1,
        file_size_bytes=1,
        partition=partition,
    )


def by(source: int, number: int, transform: Transform[Any, Any]) -> PartitionField:
    return PartitionField(source, 1000 + number, transform, f"p{number}")


@pytest.mark.parametrize(("kind", "stored", "expected"), VALUES)
def test_identity_partition_supplies_the_column_value(kind: IcebergType, stored: Any, expected: Any) -> None:
    """DA-6: regardless of the other fields of the spec."""
    fields = (by(2, 0, IdentityTransform()), by(1, 1, BucketTransform(4)), by(3, 2, IdentityTransform()))
    metadata = metadata_of(kind, *fields)
    found = value_where_missing(metadata, file_of("x", 3, stored), metadata.schema().find_field(3))
    assert found.type == arrow_type_of(kind)
    assert found.as_py() == expected


def test_missing_column_is_default_or_null() -> None:
    """DA-6: a bucket of the column does not determine its value."""
    metadata = metadata_of(LongType(), by(3, 0, BucketTransform(4)), by(2, 1, IdentityTransform()))
    found = value_where_missing(metadata, file_of(2, "x"), metadata.schema().find_field(3))
    assert found == pa.scalar(None, pa.int64())
    field = NestedField(3, "late", LongType(), required=False, initial_default=9)
    assert value_where_missing(metadata, file_of(2, "x"), field) == pa.scalar(9, pa.int64())
