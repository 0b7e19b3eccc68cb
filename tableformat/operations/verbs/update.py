"""`update`: sets new values in some columns of the rows that match a filter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from tableformat.errors import InvalidArgumentError, InvalidPredicateError, SchemaMismatchError, UnknownColumnError
from tableformat.filters.predicate import Where, parse_where
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.row_lookup.covered_rows import take_matching
from tableformat.operations.row_lookup.row_expressions import computed, row_expression, sql_of
from tableformat.operations.row_lookup.sql_columns import SqlColumns
from tableformat.operations.staging.draft import Draft
from tableformat.write.rows.rows import as_reader

_ALIAS: Final = "updated"
"""The alias of the table in expressions."""


def update(draft: Draft, *, where: Where, set: Mapping[str, Any]) -> None:
    """Stage the matching rows with their new values, and position deletes of the old rows (CP-6).

    In a table with row lineage, they become new rows with new ids.
    """
    if where is None:
        raise InvalidPredicateError("update needs a filter; update(where='true', ...) changes every row.")
    expressions, values = _checked(draft, set)
    draft.begin_verb()
    draft.act_as("update")
    draft.recorded.add_filters()
    rows = take_matching(draft, parse_where(where, draft.schema))
    draft.add_batches(
        batch
        for portion in rows
        for batch in _conformed(draft, _changed(draft, portion, expressions, values), expressions)
    )


def _sql_columns(draft: Draft) -> SqlColumns:
    return SqlColumns({_ALIAS: arrow_schema(draft.schema)})


def _conformed(draft: Draft, rows: pa.Table, expressions: Mapping[str, str]) -> Iterable[pa.RecordBatch]:
    """The rows in the types of the table. If a text was meant as a value, its SQL result has another type: 2026-01-31
    is 1994."""
    try:
        return draft.conformed(rows)
    except SchemaMismatchError as error:
        if not expressions:
            raise
        raise SchemaMismatchError(
            f"{error} Text in set= is SQL: {expressions}. Write a date as DATE '2026-01-31', or pass a value that is "
            "not text, such as datetime.date(2026, 1, 31)."
        ) from error


def _checked(draft: Draft, given: Mapping[str, Any]) -> tuple[dict[str, str], pa.Table]:
    """The SQL expressions by their columns, and one row with the other values."""
    if not given:
        raise InvalidArgumentError("set needs at least one column with its new value: set={'price': 'price * 2'}.")
    names = draft.schema.column_names
    top_level = [field.name for field in draft.schema.fields]
    for name in given:
        if name not in top_level:
            raise UnknownColumnError(name, names, where="set=")
    key = draft.key_names if draft.has_key else ()
    if keys := [name for name in given if name in key]:
        raise InvalidArgumentError(
            f"{', '.join(map(repr, keys))} is part of the key, which an update does not change: another row may "
            "already have the new key. Delete the rows and append them with their new keys, in one transaction()."
        )
    columns = _sql_columns(draft)
    expressions = {
        name: sql_of(columns.translated(row_expression(value, where=f"set[{name!r}]"), where=f"set[{name!r}]"))
        for name, value in given.items()
        if isinstance(value, str)
    }
    constants = {name: value for name, value in given.items() if name not in expressions}
    schema = arrow_schema(draft.schema)
    values = as_reader([constants], schema=schema, what="set").read_all() if constants else pa.table({})
    return expressions, values


def _changed(draft: Draft, rows: pa.Table, expressions: Mapping[str, str], values: pa.Table) -> pa.Table:
    """The rows with their new values. Expressions use the old values."""
    given = {_ALIAS: rows.rename_columns(_sql_columns(draft).internal(_ALIAS, rows.column_names))}
    told = f"set={dict(expressions)!r}"
    new = computed(draft.schema, expressions, given, source=_ALIAS, where=told) if expressions else pa.table({})
    for source in (new, values):
        for name in source.column_names:
            column = source.column(name) if source is new else pa.repeat(source.column(name)[0], len(rows))
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows
