"""Field ids of a schema for Spark's Parquet writer, which does not write ids inside lists and maps on its own.

A node is {"id": 3}, with "fields" for a struct, "element" for a list, "key" and "value" for a map. A leaf with a fixed
number of bytes in Parquet has "fixed", and "uuid" if Spark represents it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyiceberg.types import FixedType, IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from tableformat.errors import UnsupportedFeatureError

_UUID_BYTES: Final = 16


def field_trees(fields: Sequence[NestedField]) -> list[dict[str, Any]]:
    """One node for each column. Raises UnsupportedFeatureError, which names a column that Spark cannot write."""
    return [_node(field.field_id, field.field_type, field.name, depth=0) for field in fields]


def _node(field_id: int, field_type: IcebergType, column: str, *, depth: int) -> dict[str, Any]:
    node: dict[str, Any] = {"id": field_id}
    match field_type:
        case StructType(fields=fields):
            node["fields"] = [_node(f.field_id, f.field_type, f"{column}.{f.name}", depth=depth + 1) for f in fields]
        case ListType():
            element = _node(field_type.element_id, field_type.element_type, f"{column}.element", depth=depth + 1)
            node["element"] = element
        case MapType():
            node["key"] = _node(field_type.key_id, field_type.key_type, f"{column}.key", depth=depth + 1)
            node["value"] = _node(field_type.value_id, field_type.value_type, f"{column}.value", depth=depth + 1)
        case FixedType():
            node["fixed"] = len(field_type)
        case UUIDType():
            if depth:
                raise UnsupportedFeatureError(
                    f"column {column!r} is a uuid inside another column, which cannot be written from Spark. Write the "
                    "rows from Python."
                )
            node |= {"fixed": _UUID_BYTES, "uuid": True}
    return node
