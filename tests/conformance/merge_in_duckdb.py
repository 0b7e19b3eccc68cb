"""The clauses of a merge, for the in-memory table. Another engine evaluates each SQL text on one pair of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb
from pyiceberg.schema import Schema

from tableformat.testing.json_values import arrow_table
from tableformat.testing.key_order import Row
from tableformat.testing.model import ModelClause
from tableformat.testing.table_builder import events_table

METHODS = {
    "when_matched_update": "matched",
    "when_matched_update_all": "matched",
    "when_matched_delete": "matched",
    "when_not_matched_insert": "not_matched",
    "when_not_matched_insert_all": "not_matched",
    "when_not_matched_by_source_update": "not_matched_by_source",
    "when_not_matched_by_source_delete": "not_matched_by_source",
}


def merging_in_duckdb(options: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The arguments of the model's `merge`, made from the arguments of a step. Its clauses are lists of a method and
    arguments."""
    on = options["on"]
    condition = on if isinstance(on, str) else " AND ".join(f"target.{name} = source.{name}" for name in on)
    return {
        "matches": lambda target, source: value_of(condition, target, source, schema) is True,
        "clauses": [clause(method, arguments, schema) for method, *arguments in options["clauses"]],
    }


def clause(method: str, arguments: Sequence[Any], schema: Schema) -> ModelClause:
    updates = arguments[0] if method.endswith(("_update", "_insert")) else {}
    predicate = next(iter(arguments[1:] if updates else arguments), None)
    return ModelClause(
        METHODS[method],
        None if method.endswith("_delete") else new_values(updates, schema),
        None if predicate is None else lambda target, source: value_of(predicate, target, source, schema) is True,
    )


def new_values(updates: Mapping[str, Any], schema: Schema) -> Callable[[Row, Row], Row]:
    if not updates:
        return lambda _target, source: source

    def values(target: Row, source: Row) -> Row:
        return {
            name: value_of(value, target, source, schema) if isinstance(value, str) else value
            for name, value in updates.items()
        }

    return values


def value_of(text: str, target: Row, source: Row, schema: Schema) -> Any:
    """The value of the SQL text for these rows. One of them may be missing."""
    names = [field.name for field in schema.fields]
    with duckdb.connect() as connection:
        if target:
            connection.register("target", arrow_table([target], schema, names))
        if source:
            connection.register("source", events_table([source], schema))
        sides = [side for side, row in (("target", target), ("source", source)) if row]
        ((value,),) = connection.sql(f"SELECT {text} FROM {', '.join(sides)}").fetchall()
        return value
