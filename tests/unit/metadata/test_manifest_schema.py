"""Fields by id, regardless of their names; partition types and values."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, VoidTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    TimestampType,
    UnknownType,
    UUIDType,
)

from tableformat.errors import UnsupportedFeatureError
from tableformat.metadata.manifests.manifest_schema import (
    entry_schema,
    from_avro_value,
    partition_avro_fields,
    partition_types,
    rename_by_field_id,
    to_avro_value,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "cost", DecimalType(9, 2)),
    NestedField(4, "ts", TimestampType()),
)


def test_equality_ids_are_written_as_ints_because_java_casts_them() -> None:
    """FM-9."""
    for version in (2, 3):
        data_file = entry_schema(version, [])["fields"][-1]["type"]
        ids = next(field for field in data_file["fields"] if field["field-id"] == 135)
        assert ids["type"] == ["null", {"type": "array", "element-id": 136, "items": "int"}]


def test_row_lineage_and_vector_fields_are_only_in_version_3() -> None:
    ids = {
        version: {field["field-id"] for field in entry_schema(version, [])["fields"][-1]["type"]["fields"]}
        for version in (2, 3)
    }
    assert ids[3] - ids[2] == {142, 144, 145}
    assert 143 in ids[2]


def test_fields_are_matched_by_id_not_by_name() -> None:
    """FM-16."""
    stranger = {
        "type": "record",
        "name": "e",
        "fields": [
            {"name": "file_ordinal", "type": "long", "field-id": 3},
            {"name": "status", "type": "int", "field-id": 9999},
            {"name": "snapshot_id", "type": "long"},
        ],
    }
    assert [field["name"] for field in rename_by_field_id(stranger).schema["fields"]] == [
        "sequence_number",
        "unknown_9999",
        "snapshot_id",
    ]


def test_named_avro_type_is_defined_once_in_partition_record() -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "price"), PartitionField(3, 1001, IdentityTransform(), "cost.x")
    )
    fields = partition_avro_fields(spec, partition_types(spec, [SCHEMA]))
    assert fields[0]["type"][1]["name"] == "decimal_9_2"
    assert fields[1]["type"] == ["null", "decimal_9_2"]
    assert fields[1]["name"] == "cost_x2Ex"
    assert fields[1]["iceberg-field-name"] == "cost.x"
    record = {"type": "record", "name": "r102", "fields": fields}
    renamed = rename_by_field_id(
        {"type": "record", "name": "r2", "fields": [{"name": "p", "type": record, "field-id": 102}]}
    )
    for field_id in (1000, 1001):
        convert = renamed.partition[field_id][1]
        assert convert is not None
        assert convert(b"\x00\x00\x00\x7b") == Decimal("1.23")


def test_dropped_source_column_type_comes_from_older_schema() -> None:
    current = Schema(NestedField(1, "id", LongType()))
    spec = PartitionSpec(PartitionField(4, 1000, DayTransform(), "ts_day"))
    assert partition_types(spec, [current, SCHEMA]) == (DateType(),)
    with pytest.raises(UnsupportedFeatureError, match="'ts_day'"):
        partition_types(spec, [current])


def test_a_void_field_needs_no_source_column() -> None:
    spec = PartitionSpec(
        PartitionField(99, 1000, VoidTransform(), "gone"), PartitionField(1, 1001, BucketTransform(4), "b")
    )
    types = partition_types(spec, [SCHEMA])
    assert types == (UnknownType(), IntegerType())
    assert partition_avro_fields(spec, types)[0]["type"] == ["null"]


def test_avro_logical_values_become_iceberg_values() -> None:
    uuid = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    for stored in (uuid.bytes, str(uuid)):
        convert = from_avro_value(["null", {"type": "fixed", "size": 16, "logicalType": "uuid"}])
        assert convert is not None
        assert convert(stored) == uuid
    millis = from_avro_value({"type": "long", "logicalType": "timestamp-millis"})
    assert millis is not None
    assert millis(5) == 5000
    assert from_avro_value({"type": "int", "logicalType": "date"}) is None
    assert from_avro_value(["null"]) is None


def test_iceberg_values_are_stored_as_specified() -> None:
    decimal = to_avro_value(DecimalType(9, 2))
    uuid = to_avro_value(UUIDType())
    assert decimal is not None
    assert uuid is not None
    assert decimal(Decimal("-0.01")) == b"\xff\xff\xff\xff"
    assert uuid(UUID(int=5)) == bytes(15) + b"\x05"
    assert to_avro_value(DateType()) is None
