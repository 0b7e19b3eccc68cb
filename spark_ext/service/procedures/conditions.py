"""The argument `where` of procedures: a condition in Spark's SQL."""

from __future__ import annotations

import sqlglot
from pyiceberg.schema import Schema
from sqlglot import exp

from tableformat.errors import InvalidPredicateError
from tableformat.table import Table


def condition(where: str | None, table: Table) -> str | None:
    """PR-8: a condition in Spark's SQL as the library reads it: double quotes are text, backticks quote names, and
    names are found whatever their case."""
    if where is None:
        return None
    try:
        parsed = sqlglot.parse(where, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidPredicateError(f"where is no SQL condition: {where}") from error
    schema = table.metadata.schema()
    for statement in parsed:
        for column in list(statement.find_all(exp.Column)) if statement is not None else []:
            _spell(column, schema)
    return ";".join("" if each is None else each.sql(dialect="duckdb") for each in parsed)


def _spell(column: exp.Column, schema: Schema) -> None:
    """As the schema spells the name; a name that is not there, or is there in several spellings, stays as it is."""
    name = ".".join(part.name for part in column.parts)
    names = [known for known in schema.column_names if known.casefold() == name.casefold()]
    if len(names) != 1 or name in names:
        return
    rest = names[0]
    for part in column.parts:
        part.set("this", rest[: len(part.name)])
        rest = rest[len(part.name) + 1 :]
