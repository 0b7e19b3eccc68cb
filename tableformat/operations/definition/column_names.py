"""Which column a name means in files without field ids, as columns are renamed, dropped and added (LK-19).

file of v       mapping v -> 3          column 3 is v
renamed         mapping v, w -> 3       column 3 is w: the file's v is still its
v added anew    mapping v, w -> 3       column 4 is v, and the file has none of it
"""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.update import AssertCurrentSchemaId, SetPropertiesUpdate

from tableformat.commit.planned_change import UpdatesAndRequirements
from tableformat.properties import NAME_MAPPING, name_mapping


def with_current_names(mapping: NameMapping, schema: Schema) -> NameMapping:
    """LK-19: the mapping with the names that the columns have now, but for those that are another column's or were."""
    return NameMapping(_united(mapping.root, schema.name_mapping.root))


def metadata_with_names(metadata: TableMetadata) -> TableMetadata:
    """The metadata as it is once the table's name mapping has the names of its columns."""
    known = name_mapping(metadata.properties)
    mapping = with_current_names(known or NameMapping([]), metadata.schema())
    if mapping == known:
        return metadata
    properties = {**metadata.properties, NAME_MAPPING: mapping.model_dump_json()}
    return metadata.model_copy(update={"properties": properties})


def naming_columns(metadata: TableMetadata) -> UpdatesAndRequirements:
    """What a commit on this metadata adds and demands so that the mapping has these names."""
    named = metadata_with_names(metadata)
    schema_is = AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id})
    if named is metadata:
        return (), (schema_is,)
    return (SetPropertiesUpdate(updates={NAME_MAPPING: named.properties[NAME_MAPPING]}),), (schema_is,)


def _united(known: Sequence[MappedField], current: Sequence[MappedField]) -> list[MappedField]:
    taken = {name for each in known for name in each.names}
    columns = {each.field_id: each for each in current}
    united: list[MappedField] = []
    for each in known:
        column = None if each.field_id is None else columns.pop(each.field_id, None)
        if column is None:
            united.append(each)
            continue
        names = [*each.names, *(name for name in column.names if name not in taken)]
        united.append(each.model_copy(update={"names": names, "fields": _united(each.fields, column.fields)}))
    return [*united, *(each for each in columns.values() if taken.isdisjoint(each.names))]
