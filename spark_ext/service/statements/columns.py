"""Columns by the names that a statement has for them."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema

from tableformat.errors import UnknownColumnError


def column_name(schema: Schema, path: Sequence[str], *, case_sensitive: bool) -> str:
    """The dotted name of the column, as the schema spells it. UnknownColumnError for one that is not there."""
    given = ".".join(path)
    try:
        field = schema.find_field(given, case_sensitive=case_sensitive)
    except ValueError:
        raise UnknownColumnError(given, schema.column_names, where="the statement") from None
    name = schema.find_column_name(field.field_id)
    assert name is not None, "a column that was found has a name"
    return name
