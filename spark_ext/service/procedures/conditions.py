"""The argument `where` of procedures: a condition in Spark's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from pyiceberg.schema import Schema
from sqlglot import exp

from spark_ext.service.procedures.function_conditions import calls_functions, paths_that_may_match
from tableformat.errors import InvalidPredicateError
from tableformat.table import Table


@dataclass(frozen=True, slots=True)
class FileCondition:
    """Which data files a job is for."""

    where: str | None
    """As the library reads it."""
    only_paths: frozenset[str] | None = None
    """Locations of the files that functions of the catalog leave; None where none is called."""


def condition(where: str | None, table: Table) -> str | None:
    """PR-8: a condition in Spark's SQL as the library reads it: double quotes are text, backticks quote names, and
    names are found whatever their case."""
    return None if where is None else _sql(_parsed(where, table))


def file_condition(where: str | None, table: Table) -> FileCondition:
    """PR-8: the same, with functions of the catalog: those parts of an AND choose files by themselves."""
    if where is None:
        return FileCondition(None)
    parsed = _parsed(where, table)
    only = parsed[0] if len(parsed) == 1 else None
    parts = list(only.flatten()) if isinstance(only, exp.And) else [only] if only is not None else []
    calls = [part for part in parts if calls_functions(part)]
    if not calls:
        return FileCondition(_sql(parsed))
    others = [part for part in parts if part not in calls]
    return FileCondition(_sql([exp.and_(*others)]) if others else None, paths_that_may_match(table, calls))


def _parsed(where: str, table: Table) -> list[exp.Expr | None]:
    try:
        parsed = sqlglot.parse(where, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidPredicateError(f"where is no SQL condition: {where}") from error
    schema = table.metadata.schema()
    for statement in parsed:
        for column in list(statement.find_all(exp.Column)) if statement is not None else []:
            _spell(column, schema)
    return parsed


def _sql(parsed: Sequence[exp.Expr | None]) -> str:
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
