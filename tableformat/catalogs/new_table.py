"""The initial parts of a new table, checked: schema, partition spec, sort order and properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Properties

from tableformat.errors import InvalidArgumentError
from tableformat.keys.table_key import check_key_columns
from tableformat.metadata.arrow_schema import TableSchema, iceberg_schema
from tableformat.metadata.new_names import refuse_reserved_columns
from tableformat.metadata.partition_text import partition_spec, refuse_names_of_columns
from tableformat.operations.format_version import format_version_of_new
from tableformat.parquet.bloom_filters.filter_options import check_filter_columns
from tableformat.properties import KEY_FIELD_IDS, RANGE_PARTITIONS, checked_properties
from tableformat.range_partitions.definition import define
from tableformat.range_partitions.layout import partition_field_of
from tableformat.range_partitions.model import RangePartitions
from tableformat.range_partitions.property_text import check_metrics, refuse_coverage_set_by_hand, to_property
from tableformat.range_partitions.retention import check_retention
from tableformat.storage.location_provider import location_provider
from tableformat.write.data_files.stored_columns import refuse_unwritten_types
from tableformat.write.rows.checks import refuse_check_set_by_hand
from tableformat.write.rows.order_column import check_order_column

_DEFAULT_PROPERTIES = {
    # A streaming writer writes one metadata file for each commit, so only a limited number is kept (decision 12).
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


@dataclass(frozen=True)
class NewTable:
    """The parts of a table before its creation."""

    schema: Schema
    """Has fresh field ids. Key columns are required and are the identifier fields."""
    spec: PartitionSpec
    sort_order: SortOrder
    properties: Properties
    format_version: int


def new_table(
    schema: TableSchema,
    *,
    key: Sequence[str],
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    range_partitions: RangePartitions | None,
) -> NewTable:
    """Turn the arguments of `Catalog.create_table` into the parts of a table. Invalid arguments raise errors."""
    if isinstance(key, str) or isinstance(partition_by, str):
        raise InvalidArgumentError("key and partition_by must be lists of names, such as key=['id'].")
    all_properties = {**_DEFAULT_PROPERTIES, **checked_properties(properties)}
    version = format_version_of_new(all_properties)
    fresh = assign_fresh_schema_ids(iceberg_schema(schema, format_version=version))
    refuse_reserved_columns(fresh)
    refuse_unwritten_types(fresh)
    key_ids = check_key_columns(fresh, key)
    fresh = schema_with_key(fresh, key_ids)
    if key_ids:
        all_properties[KEY_FIELD_IDS] = ",".join(str(field_id) for field_id in key_ids)
    spec = partition_spec(fresh, partition_by)
    if range_partitions is not None:
        defined = define(range_partitions, fresh)
        all_properties[RANGE_PARTITIONS] = to_property(defined)
        field = partition_field_of(defined, spec)
        spec = spec if field is None else partition_spec(fresh, [*partition_by, field])
    refuse_names_of_columns(spec, fresh)
    refuse_coverage_set_by_hand(properties)
    refuse_check_set_by_hand(properties, {}, fresh)
    check_filter_columns(properties, fresh)
    check_order_column(properties, fresh)
    check_metrics(properties, all_properties, fresh)
    check_retention(properties, all_properties, fresh)
    location_provider("", all_properties)
    return NewTable(fresh, spec, sort_order_of_key(key_ids), all_properties, version)


def schema_with_key(schema: Schema, key_ids: tuple[int, ...]) -> Schema:
    """The schema with the key columns required and as identifier fields."""
    if not key_ids:
        return schema
    fields = [
        field.model_copy(update={"required": True}) if field.field_id in key_ids else field for field in schema.fields
    ]
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=list(key_ids))


def sort_order_of_key(key_ids: tuple[int, ...]) -> SortOrder:
    """Ascending by the key, nulls first (FM-6); unsorted without a key."""
    return SortOrder(
        *(SortField(source_id, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST) for source_id in key_ids)
    )
