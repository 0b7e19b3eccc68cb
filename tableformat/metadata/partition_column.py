"""Partition values of files of several specs as one Arrow struct column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField, PrimitiveType

from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.metadata.content_file import ContentFile
from tableformat.metadata.manifests.manifest_schema import partition_types


def schemas_newest_first(metadata: TableMetadata) -> tuple[Schema, ...]:
    """The current schema, then the others from newest to oldest, to find the source column of an old spec."""
    return (metadata.schema(), *reversed(metadata.schemas))


def partition_labels(metadata: TableMetadata) -> dict[int, str]:
    """The names in `partition_column` of all partition fields in the table's history, by field id.

    A field has its name in the newest spec that has it. If two fields have one name, their field ids are appended.
    """
    names = {field.field_id: field.name for spec in metadata.specs().values() for field in spec.fields}
    given = Counter(names.values())
    return {field_id: name if given[name] == 1 else f"{name}_{field_id}" for field_id, name in names.items()}


def partition_column(metadata: TableMetadata, files: Sequence[ContentFile]) -> pa.StructArray | None:
    """One struct for each file, with every partition field in the table's history, by field id.

    A field that the file's spec lacks is null. None if the table has no partition fields.
    """
    fields: dict[int, PrimitiveType] = {}
    positions: dict[int, dict[int, int]] = {}
    for spec_id, spec in metadata.specs().items():
        types = partition_types(spec, schemas_newest_first(metadata))
        positions[spec_id] = {field.field_id: position for position, field in enumerate(spec.fields)}
        for field, field_type in zip(spec.fields, types, strict=True):
            fields[field.field_id] = field_type
    if not fields:
        return None
    labels = partition_labels(metadata)
    children, arrow_fields = [], []
    for field_id, field_type in sorted(fields.items()):
        label = labels[field_id]
        arrow_type = arrow_schema(Schema(NestedField(field_id, label, field_type))).field(0).type
        values = [_value(file, positions[file.spec_id].get(field_id)) for file in files]
        children.append(pa.array(values, arrow_type))
        arrow_fields.append(pa.field(label, arrow_type))
    return pa.StructArray.from_arrays(children, fields=arrow_fields)


def _value(file: ContentFile, position: int | None) -> Any:
    return None if position is None else file.partition[position]
