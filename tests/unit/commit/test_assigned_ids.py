"""CP-92: the ids of schemas, partition specs and sort orders that a commit adds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortField, SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    RemovePartitionSpecsUpdate,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSchemasUpdate,
    RemoveStatisticsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import tableformat as tf
from tableformat.commit.metadata_update import apply_updates
from tableformat.errors import InvalidArgumentError

LOCATION = "file:///lake/t/metadata/00001-a.metadata.json"
A = NestedField(1, "a", LongType(), required=False)
B = NestedField(2, "b", StringType(), required=False)


def table(version: int = 2) -> TableMetadata:
    """Schema 0 with columns a and b, unpartitioned spec 0, unsorted order 0."""
    unpartitioned, unsorted = PartitionSpec(), UNSORTED_SORT_ORDER
    properties = {"format-version": str(version), "p": "1"}
    return new_table_metadata(Schema(A, B), unpartitioned, unsorted, "file:///lake/t", properties)


def changed(metadata: TableMetadata, *updates: TableUpdate) -> TableMetadata:
    return apply_updates(metadata, LOCATION, updates)


def add_schema(*fields: NestedField, schema_id: int) -> AddSchemaUpdate:
    return AddSchemaUpdate(schema_=Schema(*fields, schema_id=schema_id))


def bucket(width: int, spec_id: int, field_id: int = 1000) -> AddPartitionSpecUpdate:
    field = PartitionField(source_id=1, field_id=field_id, transform=BucketTransform(width), name=f"bucket{width}")
    return AddPartitionSpecUpdate(spec=PartitionSpec(field, spec_id=spec_id))


def by(column: int, order_id: int) -> AddSortOrderUpdate:
    return AddSortOrderUpdate(
        sort_order=SortOrder(SortField(source_id=column, transform=IdentityTransform()), order_id=order_id)
    )


def current_schema(schema_id: int) -> SetCurrentSchemaUpdate:
    return SetCurrentSchemaUpdate(schema_id=schema_id)


@pytest.mark.parametrize("stated", [0, 1, 7])
@pytest.mark.parametrize("named", [-1, None])
def test_existing_schema_is_not_added_again(stated: int, named: int | None) -> None:
    first = changed(table(), add_schema(A, schema_id=1), current_schema(-1))
    again = changed(first, add_schema(A, B, schema_id=stated), current_schema(stated if named is None else named))
    assert [schema.schema_id for schema in again.schemas] == [0, 1]
    assert again.current_schema_id == 0


@pytest.mark.parametrize(("stated", "assigned"), [(0, 1), (1, 1), (5, 5), (-1, 1)])
def test_new_schema_keeps_its_id_if_free(stated: int, assigned: int) -> None:
    after = changed(table(), add_schema(A, schema_id=stated), current_schema(stated))
    assert [schema.schema_id for schema in after.schemas] == [0, assigned]
    assert after.schema().fields == (A,)
    assert after.current_schema_id == assigned


def test_id_minus_one_is_the_last_added_schema() -> None:
    first = changed(table(), add_schema(A, schema_id=9))
    after = changed(first, add_schema(B, schema_id=3), current_schema(-1))
    assert after.current_schema_id == 3


def test_identifier_fields_distinguish_schemas() -> None:
    key = NestedField(1, "a", LongType(), required=True)
    first = changed(table(), add_schema(key, B, schema_id=1), current_schema(1))
    keyed = AddSchemaUpdate(schema_=Schema(key, B, schema_id=2, identifier_field_ids=[1]))
    after = changed(first, keyed, current_schema(-1))
    assert after.schema().identifier_field_ids == [1]
    assert after.current_schema_id == 2


def test_equal_specs_are_reused_and_ids_assigned() -> None:
    first = changed(table(), bucket(4, 1), SetDefaultSpecUpdate(spec_id=-1))
    assert (first.default_spec_id, first.last_partition_id) == (1, 1000)
    taken = changed(first, bucket(8, 1, 1001), SetDefaultSpecUpdate(spec_id=1))
    assert [spec.spec_id for spec in taken.partition_specs] == [0, 1, 2]
    assert taken.spec().fields[0].name == "bucket8"
    back = changed(taken, bucket(4, 3, 1002), SetDefaultSpecUpdate(spec_id=-1))
    assert (back.default_spec_id, len(back.partition_specs)) == (1, 3)
    plain = changed(back, AddPartitionSpecUpdate(spec=PartitionSpec()), SetDefaultSpecUpdate(spec_id=-1))
    assert (plain.default_spec_id, len(plain.partition_specs)) == (0, 3)


def test_equal_sort_orders_are_reused_and_ids_assigned() -> None:
    first = changed(table(), by(1, 1), SetDefaultSortOrderUpdate(sort_order_id=-1))
    second = changed(first, by(2, 1), SetDefaultSortOrderUpdate(sort_order_id=-1))
    assert [order.order_id for order in second.sort_orders] == [0, 1, 2]
    assert second.default_sort_order_id == 2
    back = changed(second, by(1, 8), SetDefaultSortOrderUpdate(sort_order_id=8))
    assert (back.default_sort_order_id, len(back.sort_orders)) == (1, 3)
    unsorted = AddSortOrderUpdate(sort_order=UNSORTED_SORT_ORDER)
    assert changed(back, unsorted, SetDefaultSortOrderUpdate(sort_order_id=-1)).default_sort_order_id == 0


@pytest.mark.parametrize(
    ("update", "kind"),
    [
        (current_schema(-1), "schema"),
        (SetDefaultSpecUpdate(spec_id=-1), "partition spec"),
        (SetDefaultSortOrderUpdate(sort_order_id=-1), "sort order"),
    ],
)
def test_id_minus_one_without_an_addition_is_rejected(update: TableUpdate, kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"adds no {kind} before it"):
        changed(table(), update)


@pytest.mark.parametrize(
    "update",
    [
        RemovePropertiesUpdate(removals=["q"]),
        RemoveSchemasUpdate.model_validate({"schema-ids": [4]}),
        RemovePartitionSpecsUpdate.model_validate({"spec-ids": [4]}),
        RemoveStatisticsUpdate.model_validate({"snapshot-id": 4}),
        RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": 4}),
    ],
)
def test_removal_of_unknown_items_is_ignored(update: TableUpdate) -> None:
    metadata = table()
    assert changed(metadata, update) is metadata


def test_known_items_are_removed_with_unknown_ones() -> None:
    first = changed(table(), add_schema(A, schema_id=1), bucket(4, 1))
    after = changed(
        first,
        RemovePropertiesUpdate(removals=["p", "q"]),
        RemoveSchemasUpdate.model_validate({"schema-ids": [1, 4]}),
        RemovePartitionSpecsUpdate.model_validate({"spec-ids": [1, 4]}),
    )
    assert "p" not in after.properties
    assert [schema.schema_id for schema in after.schemas] == [0]
    assert [spec.spec_id for spec in after.partition_specs] == [0]


def test_v1_metadata_has_current_schema_and_spec_fields() -> None:
    after = changed(
        table(1), add_schema(A, schema_id=1), current_schema(1), bucket(4, 1), SetDefaultSpecUpdate(spec_id=1)
    )
    assert isinstance(after, TableMetadataV1)
    assert after.schema_ == after.schema()
    assert [field["name"] for field in after.partition_spec] == ["bucket4"]
    assert changed(after, SetPropertiesUpdate(updates={"a": "1"})).partition_spec == after.partition_spec


def test_snapshot_without_parent_may_reuse_a_sequence_number(tmp_path: Path) -> None:
    """CP-2: the last number of the table does not go back."""
    with tf.open_catalog(str(tmp_path / "lake")) as catalog:
        catalog.create_namespace("db")
        made = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
        for number in range(3):
            made.append([{"id": number}])
        metadata = made.metadata
    head = metadata.snapshots[-1]
    changes = {"snapshot_id": 77, "parent_snapshot_id": None, "sequence_number": 2}
    replacement = AddSnapshotUpdate(snapshot=head.model_copy(update=changes))
    main = SetSnapshotRefUpdate.model_validate({"ref-name": "main", "type": "branch", "snapshot-id": 77})
    after = changed(metadata, replacement, main)
    assert after.current_snapshot_id == 77
    assert after.last_sequence_number == 3
