"""`update`: rows that match a filter get other values in some columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from pyiceberg.expressions import BooleanExpression
from pyiceberg.types import DoubleType, FloatType
from sqlglot import exp

from tableformat.errors import InvalidArgumentError, InvalidPredicateError, UnknownColumnError
from tableformat.filters.predicate import parse_where
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.covered_rows import take_matching
from tableformat.operations.draft import Draft
from tableformat.write.rows.rows import as_reader

_ACROSS_ROWS = (exp.AggFunc, exp.Window, exp.Query, exp.UDTF, exp.Star)
"""What an expression over the columns of one row does not have."""


def update(draft: Draft, *, where: str | BooleanExpression, set: Mapping[str, Any]) -> None:
    """Stage the rows that match with their new values, and position deletes of what they were (CP-6).

    Rows of a table with row lineage become new rows with new ids.
    """
    if where is None:
        raise InvalidPredicateError("update needs a filter; update(where='true', ...) changes every row.")
    expressions, values = _checked(draft, set)
    draft.begin_verb()
    draft.act_as("update")
    rows = take_matching(draft, parse_where(where, draft.schema))
    draft.add_batches(
        batch for portion in rows for batch in draft.conformed(_changed(draft, portion, expressions, values))
    )


def _checked(draft: Draft, given: Mapping[str, Any]) -> tuple[dict[str, str], pa.Table]:
    """The SQL expressions by their columns, and one row of the other values."""
    if not given:
        raise InvalidArgumentError("set names at least one column and its new value: set={'price': 'price * 2'}.")
    names = draft.schema.column_names
    top_level = [field.name for field in draft.schema.fields]
    for name in given:
        if name not in top_level:
            raise UnknownColumnError(name, names, where="set=")
    key = draft.key_names if draft.has_key else ()
    if keys := [name for name in given if name in key]:
        raise InvalidArgumentError(
            f"{', '.join(map(repr, keys))} is part of the key, which an update does not change: the row might meet "
            "another one with that key. Delete the rows and append them with their new keys, in one transaction()."
        )
    expressions = {name: _expression(name, value) for name, value in given.items() if isinstance(value, str)}
    constants = {name: value for name, value in given.items() if name not in expressions}
    schema = arrow_schema(draft.schema)
    values = as_reader([constants], schema=schema, what="set").read_all() if constants else pa.table({})
    return expressions, values


def _expression(name: str, text: str) -> str:
    """The text, when it is one SQL expression over one row."""
    try:
        parsed = sqlglot.parse(f"SELECT {text}", dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise InvalidArgumentError(
            f"set[{name!r}] is no SQL expression: {text}. A text itself is written with its quotes: \"'text'\"."
        ) from error
    select = parsed[0] if len(parsed) == 1 else None
    is_one = isinstance(select, exp.Select) and len(select.expressions) == 1
    if not is_one or select is None or {key for key, part in select.args.items() if part} - {"expressions", "kind"}:
        raise InvalidArgumentError(f"set[{name!r}] must be one SQL expression, not {text}")
    if any(select.expressions[0].find_all(*_ACROSS_ROWS)) or isinstance(select.expressions[0], exp.Alias):
        raise InvalidArgumentError(f"set[{name!r}] is computed from the columns of one row, so it cannot be {text}")
    return str(select.expressions[0].sql(dialect="duckdb"))


def _changed(draft: Draft, rows: pa.Table, expressions: Mapping[str, str], values: pa.Table) -> pa.Table:
    """The rows with their new values: expressions see the old ones."""
    computed = _computed(draft, rows, expressions) if expressions else pa.table({})
    for source in (computed, values):
        for name in source.column_names:
            column = source.column(name) if source is computed else pa.repeat(source.column(name)[0], len(rows))
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _computed(draft: Draft, rows: pa.Table, expressions: Mapping[str, str]) -> pa.Table:
    columns = ", ".join(f"{_cast(draft, name, text)} AS {_quoted(name)}" for name, text in expressions.items())
    with duckdb.connect() as connection:
        connection.register("updated", rows)
        try:
            computed = connection.sql(f"SELECT {columns} FROM updated").to_arrow_table()
        except duckdb.Error as error:
            raise InvalidArgumentError(
                f"set={dict(expressions)!r} cannot be computed: {str(error).strip()} Nothing was changed."
            ) from error
    if len(computed) != len(rows):
        raise InvalidArgumentError(f"set={dict(expressions)!r} does not have one value for each row.")
    # A NULL has the type of a number in DuckDB, whatever the column's is.
    nulls = {name for name in computed.column_names if computed.column(name).null_count == len(rows)}
    return pa.table({name: pa.nulls(len(rows)) if name in nulls else computed.column(name) for name in expressions})


def _cast(draft: Draft, name: str, text: str) -> str:
    """Floating point columns take any number; all others only what is one of their values exactly."""
    column_type = draft.schema.find_field(name).field_type
    if isinstance(column_type, DoubleType | FloatType):
        return f"CAST(({text}) AS {'DOUBLE' if isinstance(column_type, DoubleType) else 'FLOAT'})"
    return f"({text})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
