"""Maps names to columns in files without field ids, while columns are renamed, dropped and added (LK-19).

file of v       mapping v -> 3          column 3 is v
renamed         mapping v, w -> 3       column 3 is w: v in the file still means column 3
v added again   mapping v, w -> 3       column 4 is v, and the file has no values for it
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
    """LK-19: the mapping with the current names of the columns, except names that belong or belonged to another
    column."""
    return NameMapping(_united(mapping.root, schema.name_mapping.root))


def metadata_with_names(metadata: TableMetadata) -> TableMetadata:
    """The metadata after the current names of the columns are added to the name mapping of the table."""
    known = name_mapping(metadata.properties)
    mapping = with_current_names(known or NameMapping([]), metadata.schema())
    if mapping == known:
        return metadata
    properties = {**metadata.properties, NAME_MAPPING: mapping.model_dump_json()}
    return metadata.model_copy(update={"properties": properties})


def naming_columns(metadata: TableMetadata) -> UpdatesAndRequirements:
    """The updates and requirements of a commit on this metadata that add these names to the mapping."""
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
