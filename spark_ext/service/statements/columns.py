"""Finds columns by their name in a statement."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.schema import Schema

from tableformat.errors import InvalidArgumentError, UnknownColumnError


def column_name(schema: Schema, path: Sequence[str], *, case_sensitive: bool) -> str:
    """The dotted name of the column, in the spelling of the schema.

    Raises UnknownColumnError if the column does not exist, and InvalidArgumentError if the name matches several columns
    in the session (SP-63).
    """
    given = ".".join(path)
    try:
        field = schema.find_field(given, case_sensitive=case_sensitive)
    except ValueError:
        raise UnknownColumnError(given, schema.column_names, where="the statement") from None
    name = schema.find_column_name(field.field_id)
    assert name is not None, "a column that was found has a name"
    alike = [each for each in schema.column_names if each.lower() == name.lower()]
    if not case_sensitive and len(alike) > 1:
        raise InvalidArgumentError(
            f"{given!r} is ambiguous: the columns {', '.join(alike)} differ only in case. Nothing was changed. SET "
            "spark.sql.caseSensitive = true, and run the statement again."
        )
    return name
