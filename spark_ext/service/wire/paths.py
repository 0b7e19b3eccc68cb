"""Names of a column from the top of the schema down; a name itself may have dots."""

from __future__ import annotations

from pyiceberg.schema import Schema


def path_of(schema: Schema, field_id: int) -> list[str]:
    parents = schema._lazy_id_to_parent
    path = [field_id]
    while path[0] in parents:
        path.insert(0, parents[path[0]])
    return [schema.find_field(each).name for each in path]
