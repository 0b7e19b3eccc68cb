"""Which column a name means in files without field ids, as columns are renamed, dropped and added (LK-19).

file of v       mapping v -> 3          column 3 is v
renamed         mapping v, w -> 3       column 3 is w: the file's v is still its
v added anew    mapping v, w -> 3       column 4 is v, and the file has none of it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping


def with_current_names(mapping: NameMapping, schema: Schema) -> NameMapping:
    """LK-19: the mapping with the names that the columns have now, but for those that are another column's or were."""
    return NameMapping(_united(mapping.root, schema.name_mapping.root))


def leaves_of_other_names(mapping: NameMapping, schema: Schema) -> frozenset[int]:
    """Field ids of the primitive columns that a file without field ids cannot have under their names: these mean
    another column there, or none."""
    return frozenset(_unnamed(mapping.root, schema.name_mapping.root))


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


def _unnamed(known: Sequence[MappedField], current: Sequence[MappedField]) -> Iterator[int]:
    for column in current:
        meant = next((each for each in known if not set(each.names).isdisjoint(column.names)), None)
        if meant is not None and meant.field_id == column.field_id:
            yield from _unnamed(meant.fields, column.fields)
        else:
            yield from _leaves(column)


def _leaves(column: MappedField) -> Iterator[int]:
    if not column.fields and column.field_id is not None:
        yield column.field_id
    for each in column.fields:
        yield from _leaves(each)
