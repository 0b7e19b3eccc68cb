"""The type of `_partition`: a struct of all current and former partition fields of a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import VoidTransform

from spark_ext.service.wire.arrow_stream import spark_type_of_arrow
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.partition_column import partition_column, partition_labels


def partition_arrow_type(metadata: TableMetadata) -> pa.StructType:
    """The struct's Arrow type, without fields for a table that was never partitioned."""
    column = partition_column(metadata, [])
    return pa.struct([]) if column is None else column.type


def default_fields(metadata: TableMetadata) -> list[PartitionField]:
    """The fields by which rows are currently partitioned. Void fields are omitted, because they only exist for old
    files."""
    return [field for field in metadata.spec().fields if not isinstance(field.transform, VoidTransform)]


def default_fields_of_specs(metadata: TableMetadata) -> dict[str, list[str]]:
    """For each spec, by id: the names in `_partition` of the `default_fields` that it has."""
    labels = partition_labels(metadata)
    return {
        str(spec.spec_id): [
            labels[field.field_id]
            for field in default_fields(metadata)
            if any(each.field_id == field.field_id and each.transform == field.transform for each in spec.fields)
        ]
        for spec in metadata.partition_specs
    }


def default_partition_type(metadata: TableMetadata) -> pa.StructType:
    """The Arrow types of `default_fields`."""
    types = {field.field_id: field for field in metadata.spec().partition_type(metadata.schema()).fields}
    schema = Schema(*(types[field.field_id] for field in default_fields(metadata)))
    return pa.struct(list(arrow_schema(schema)))


def grouping_type(metadata: TableMetadata) -> pa.StructType:
    """The same types with the field names of `_partition`, which differ if an older spec has a field of that name."""
    labels = partition_labels(metadata)
    fields = zip(default_fields(metadata), default_partition_type(metadata), strict=True)
    return pa.struct([each.with_name(labels[field.field_id]) for field, each in fields])


def spark_partition_type(struct: pa.StructType) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": field.name, "type": spark_type_of_arrow(field.type, field.name), "nullable": True, "metadata": {}}
            for field in struct
        ],
    }
