"""The key of a table: an ordered list of required columns (FM-4).

Iceberg keeps `identifier-field-ids` as a set; the order is in the table property `tableformat.key-field-ids`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from tableformat.errors import InvalidKeyError, UnknownColumnError
from tableformat.properties import KEY_FIELD_IDS


def key_field_ids(schema: Schema, properties: Mapping[str, str]) -> tuple[int, ...]:
    """FM-4: field ids of the key in key order; empty for a table without a key.

    A table of another writer may have identifier fields without our property. Then the order is that of the schema.
    Raises InvalidKeyError if both are set and contain different fields, because another writer changed one of them.
    """
    text = properties.get(KEY_FIELD_IDS)
    identifiers = set(schema.identifier_field_ids)
    if text is None:
        return tuple(field_id for field_id in schema.field_ids if field_id in identifiers)
    try:
        ordered = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise InvalidKeyError(f"table property {KEY_FIELD_IDS} is not a list of field ids: {text!r}.") from error
    if set(ordered) != identifiers:
        raise InvalidKeyError(
            f"the key {ordered} of {KEY_FIELD_IDS} differs from the identifier fields {sorted(identifiers)} of the "
            "schema: another writer changed one of them. Set the key again with set_key([...])."
        )
    return ordered


def check_key_columns(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """FM-4: field ids of the columns of a key, in the order of `names`.

    Raises UnknownColumnError, or InvalidKeyError for a repeated, nested or floating point column.
    """
    if len(set(names)) != len(names):
        raise InvalidKeyError(f"key {list(names)} contains a column twice.")
    return tuple(_key_field_id(schema, name) for name in names)


def _key_field_id(schema: Schema, name: str) -> int:
    top_level = {field.name: field for field in schema.fields}
    if name not in top_level:
        raise UnknownColumnError(name, top_level, where="key")
    field = top_level[name]
    if not isinstance(field.field_type, PrimitiveType):
        raise InvalidKeyError(f"key column {name!r} is a {field.field_type}; a key column must be a primitive.")
    if isinstance(field.field_type, FloatType | DoubleType):
        raise InvalidKeyError(
            f"key column {name!r} is a {field.field_type}: floating point columns cannot identify rows. "
            "Use a decimal or an integer."
        )
    return field.field_id


def key_names(schema: Schema, field_ids: Sequence[int]) -> tuple[str, ...]:
    """Column names of the key in a schema, in key order."""
    names = []
    for field_id in field_ids:
        name = schema.find_column_name(field_id)
        if name is None:
            raise InvalidKeyError(f"key field {field_id} is not in schema {schema.schema_id}.")
        names.append(name)
    return tuple(names)
