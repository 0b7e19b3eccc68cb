"""Maps the columns of a Parquet file to field ids.

Source: Iceberg table specification, "Column Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from pyiceberg.table.name_mapping import MappedField, NameMapping

from tableformat.errors import CorruptFileError, UnsupportedFeatureError
from tableformat.parquet.array_forms import is_list, list_with

FIELD_ID: Final = b"PARQUET:field_id"
"""Metadata key in which Arrow stores a Parquet column's field id."""
NAME_MAPPING_PROPERTY: Final = "schema.name-mapping.default"


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A primitive column at the top level or inside structs. Columns inside lists and maps cannot be delete columns."""

    index: int
    """Number of the column in the Parquet file, counting leaves in schema order."""
    path: tuple[str, ...]
    """Names from the top level down."""
    arrow_type: pa.DataType
    """The type in which it is read."""


def with_field_ids(schema: pa.Schema, name_mapping: NameMapping | None, location: str) -> pa.Schema:
    """The schema with field ids, from the name mapping if the file has none at all.

    Raises UnsupportedFeatureError for a file without field ids in a table without a name mapping: matching columns by
    name or position could delete or return wrong rows after a rename.
    """
    if any(_has_field_id(field) for field in schema):
        return schema
    if name_mapping is None:
        raise UnsupportedFeatureError(
            f"{location}: the file has no field ids, and the table has no property {NAME_MAPPING_PROPERTY} that maps "
            "its columns. Set the property to a name mapping of the table's schema."
        )
    return pa.schema([_mapped(field, name_mapping.root) for field in schema], schema.metadata)


def field_id_of(field: pa.Field) -> int | None:
    """The field id in the field's metadata, if any."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def leaf_columns(schema: pa.Schema, leaf_count: int, location: str) -> dict[int, LeafColumn]:
    """Primitive columns outside of lists and maps, by field id; `schema` has the ids.

    Raises CorruptFileError if the file's leaves do not match its schema, or an id occurs twice.
    """
    found: dict[int, LeafColumn] = {}
    index = 0
    for field in schema:
        for field_id, path, arrow_type in _leaves(field, ()):
            if field_id is not None:
                if field_id in found:
                    raise CorruptFileError(location, f"two columns have the field id {field_id}.")
                found[field_id] = LeafColumn(index, path, arrow_type)
            index += 1
    if index != leaf_count:
        raise CorruptFileError(location, f"the schema has {index} columns, but the row groups have {leaf_count}.")
    return found


def struct_columns(schema: pa.Schema) -> dict[int, LeafColumn]:
    """Structs outside of lists and maps, by field id, each with the number of its first Parquet column."""
    found: dict[int, LeafColumn] = {}
    index = 0
    for field in schema:
        found.update(_structs(field, (), index))
        index += sum(1 for _ in _leaves(field, ()))
    return found


def _structs(field: pa.Field, above: tuple[str, ...], index: int) -> Iterator[tuple[int, LeafColumn]]:
    path = (*above, field.name)
    storage = _storage(field.type)
    if not pat.is_struct(storage):
        return
    field_id = field_id_of(field)
    if field_id is not None:
        yield field_id, LeafColumn(index, path, field.type)
    for child in storage:
        yield from _structs(child, path, index)
        index += sum(1 for _ in _leaves(child, path))


def _leaves(field: pa.Field, above: tuple[str, ...]) -> Iterator[tuple[int | None, tuple[str, ...], pa.DataType]]:
    """Leaves in Parquet's order, without an id inside a list or a map."""
    path = (*above, field.name)
    storage = _storage(field.type)
    if pat.is_struct(storage):
        for child in storage:
            yield from _leaves(child, path)
    elif _is_repeated(storage):
        for child in (storage.field(number) for number in range(storage.num_fields)):
            for _, inner_path, inner_type in _leaves(child, path):
                yield None, inner_path, inner_type
    else:
        yield field_id_of(field), path, field.type


def _has_field_id(field: pa.Field) -> bool:
    storage = _storage(field.type)
    return field_id_of(field) is not None or (
        _is_nested(storage) and any(_has_field_id(storage.field(number)) for number in range(storage.num_fields))
    )


def _mapped(field: pa.Field, mapping: list[MappedField]) -> pa.Field:
    """The field with the ids of the mapping, at every level. Names without an entry get no id."""
    entry = next((entry for entry in mapping if field.name in entry.names), None)
    if entry is None:
        return field
    data_type = field.type
    if pat.is_struct(data_type):
        data_type = pa.struct([_mapped(child, entry.fields) for child in data_type])
    elif pat.is_map(data_type):
        key, value = data_type.key_field.with_name("key"), data_type.item_field.with_name("value")
        data_type = pa.map_(_mapped(key, entry.fields), _mapped(value, entry.fields))
    elif is_list(data_type):
        data_type = list_with(data_type, _mapped(data_type.value_field.with_name("element"), entry.fields))
    mapped = pa.field(field.name, data_type, field.nullable)
    return mapped if entry.field_id is None else mapped.with_metadata({FIELD_ID: str(entry.field_id).encode()})


def _storage(data_type: pa.DataType) -> pa.DataType:
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _is_repeated(data_type: pa.DataType) -> bool:
    return is_list(data_type) or pat.is_map(data_type)


def _is_nested(data_type: pa.DataType) -> bool:
    return pat.is_struct(data_type) or _is_repeated(data_type)
