"""SQL expressions over the columns of one row, computed by DuckDB: the new values in `update` and `merge`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType

from tableformat.errors import InvalidArgumentError
from tableformat.operations.row_lookup.exact_nanoseconds import refuse_rounding
from tableformat.storage.duckdb_connection import duckdb_connection

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlglot import exp


def row_expression(text: str, *, where: str) -> exp.Expr:
    """The parsed text, if it is one SQL expression over one row. `where` names the argument in errors."""
    import sqlglot
    from sqlglot import exp

    try:
        with _nesting_followed():
            parsed = sqlglot.parse(f"SELECT {text}", dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidArgumentError(
            f"{where} is not a SQL expression: {text}. Write a text literal with quotes: \"'text'\"."
        ) from error
    select = parsed[0] if len(parsed) == 1 else None
    is_one = isinstance(select, exp.Select) and len(select.expressions) == 1
    if not is_one or select is None or {key for key, part in select.args.items() if part} - {"expressions", "kind"}:
        raise InvalidArgumentError(f"{where} must be one SQL expression, not {text}")
    expression: exp.Expr = select.expressions[0]
    across_rows = (exp.AggFunc, exp.Window, exp.Query, exp.UDTF, exp.Star)
    if any(expression.find_all(*across_rows)) or isinstance(expression, exp.Alias):
        raise InvalidArgumentError(f"{where} is computed from the columns of one row, so it cannot be {text}")
    return expression


@contextmanager
def sql_connection() -> Iterator[DuckDBPyConnection]:
    """A connection for SQL text. Times without an offset are UTC, as in `where=`, regardless of the time zone of the
    machine. Raises MemoryError if DuckDB runs out of memory."""
    with duckdb_connection() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def sql_of(expression: exp.Expr) -> str:
    """The SQL text. Raises InvalidArgumentError if the expression is nested too deeply for Python."""
    with _nesting_followed():
        return expression.sql(dialect="duckdb")


@contextmanager
def _nesting_followed() -> Iterator[None]:
    try:
        yield
    except RecursionError as error:
        raise InvalidArgumentError(
            "a SQL expression is nested too deeply. Nothing was changed. Use fewer nested operators or casts."
        ) from error


def computed(
    schema: Schema, expressions: Mapping[str, str], rows: Mapping[str, pa.Table], *, source: str, where: str
) -> pa.Table:
    """The values of the expressions, by the column of `schema` for which each is, in the order of the rows.

    `rows` are tables of the same length, by their names in `source`, the text of a FROM clause. `where` is the argument
    in errors. Raises InvalidArgumentError if DuckDB cannot compute the expressions, UnsupportedFeatureError if it would
    round its input.
    """
    import duckdb

    length = next(iter(rows.values())).num_rows
    # By position, because the names of two columns may differ only in case.
    columns = ", ".join(
        f"{_in_type_of_column(schema, name, text)} AS __value_{place}"
        for place, (name, text) in enumerate(expressions.items())
    )
    named = _named_columns(expressions.values())
    with sql_connection() as connection:
        for name, table in rows.items():
            refuse_rounding(table, named)
            connection.register(name, table)
        try:
            values = (
                connection.sql(f"SELECT {columns} FROM {source}").to_arrow_table().rename_columns(list(expressions))
            )
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise InvalidArgumentError(
                f"{where} cannot be computed: {_in_a_line(error)} Nothing was changed."
            ) from error
    if len(values) != length:
        raise InvalidArgumentError(f"{where} does not have one value for each row.")
    # In DuckDB, a NULL has an integer type, regardless of the type of the column.
    nulls = {name for name in values.column_names if values.column(name).null_count == length}
    return pa.table({name: pa.nulls(length) if name in nulls else values.column(name) for name in expressions})


def _named_columns(expressions: Iterable[str]) -> set[str]:
    import sqlglot
    from sqlglot import exp

    with _nesting_followed():
        parsed = [sqlglot.parse_one(text, dialect="duckdb") for text in expressions]
    return {column.name for each in parsed for column in each.find_all(exp.Column)}


def _in_type_of_column(schema: Schema, name: str, text: str) -> str:
    """The expression, cast if the column is floating point: such columns accept any number. All other columns accept
    only values that they can hold exactly."""
    column_type = schema.find_field(name).field_type
    if isinstance(column_type, DoubleType | FloatType):
        return f"CAST(({text}) AS {'DOUBLE' if isinstance(column_type, DoubleType) else 'FLOAT'})"
    return f"({text})"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _in_a_line(error: Exception) -> str:
    """DuckDB's message without the excerpt of the SQL text. A word that is not a column may be meant as text."""
    told = " ".join(str(error).partition("\n\nLINE ")[0].split()).rstrip(".")
    return f"{told}. Write text in single quotes." if "Referenced column" in told else f"{told}."
