"""Ids of a table that replaces another: identical columns and partition fields keep their ids (SP-53).

id: long 1, v: string 2    replaced by    id: long, v: int, w: string    ->    id 1, v 3, w 4
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Final

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import IcebergType, NestedField

_ANY: Final = "column"


def schema_with_kept_ids(columns: Schema, defaults: Collection[str], metadata: TableMetadata) -> Schema:
    """The columns. A column that is identical to a current one of the table keeps its id; other columns get ids that
    were never used.

    `defaults` are the names of the columns with a default. They get new ids, because older files must not be read with
    the default.
    """
    current = {field.name: field for field in metadata.schema().fields}
    kept = {
        field.name: field.model_copy(update={"field_id": old.field_id, "field_type": old.field_type})
        for field in columns.fields
        if (old := current.get(field.name)) is not None and field.name not in defaults and _is_same(field, old)
    }
    ids = itertools.count(metadata.last_column_id + 1)
    others = assign_fresh_schema_ids(
        Schema(*(field for field in columns.fields if field.name not in kept)), lambda: next(ids)
    )
    fresh = {field.name: field for field in others.fields}
    return Schema(*(kept[field.name] if field.name in kept else fresh[field.name] for field in columns.fields))


def fields_with_kept_ids(spec: PartitionSpec, metadata: TableMetadata) -> tuple[PartitionField, ...]:
    """The fields. A field that equals one in any spec of the table keeps its id; other fields get ids that were never
    used."""
    known = {_meaning(field): field.field_id for each in metadata.partition_specs for field in each.fields}
    ids = itertools.count((metadata.last_partition_id or PARTITION_FIELD_ID_START - 1) + 1)
    return tuple(
        field.model_copy(update={"field_id": known[_meaning(field)] if _meaning(field) in known else next(ids)})
        for field in spec.fields
    )


def _meaning(field: PartitionField) -> tuple[int, str, str]:
    return field.source_id, str(field.transform), field.name


def _is_same(field: NestedField, old: NestedField) -> bool:
    """Whether existing rows are valid for the new column. A required column has no nulls."""
    has_default = old.initial_default is not None or old.write_default is not None
    return not has_default and (old.required or field.optional) and _shape(field.field_type) == _shape(old.field_type)


def _shape(column_type: IcebergType) -> IcebergType:
    """The type without the ids of its parts."""
    return assign_fresh_schema_ids(Schema(NestedField(1, _ANY, column_type))).fields[0].field_type
