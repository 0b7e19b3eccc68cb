"""Computes the rows that a merge writes: target rows with new values, and source rows as target rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tableformat.errors import InvalidArgumentError, UnknownColumnError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.merging.clauses import Action, MergeClause, When
from tableformat.operations.merging.sides import Sides
from tableformat.operations.row_lookup.row_expressions import computed, quoted, row_expression
from tableformat.write.rows.rows import as_reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The values that one clause sets in columns of the target."""

    told: str
    """The clause, for error messages."""
    copied: Mapping[str, str]
    """Target column -> source column whose values are used in their own type."""
    expressions: Mapping[str, str]
    target_columns: tuple[str, ...]
    """Columns that the expressions may use."""
    source_columns: tuple[str, ...]
    values: pa.Table
    """One row with the constant values."""


def assignments_of(sides: Sides, clause: MergeClause) -> Assignments:
    """The values that a clause sets. Raises UnknownColumnError and InvalidArgumentError for columns that it cannot
    set."""
    if clause.action in (Action.UPDATE_ALL, Action.INSERT_ALL):
        return Assignments(
            told=clause.name,
            copied={name: name for name in _all_columns(sides, clause)},
            expressions={},
            target_columns=(),
            source_columns=(),
            values=pa.table({}),
        )
    _check_names(sides, clause)
    parsed = {
        name: row_expression(value, where=f"updates[{name!r}] of {clause.name}")
        for name, value in clause.updates.items()
        if isinstance(value, str)
    }
    has_source = clause.when is not When.NOT_MATCHED_BY_SOURCE
    copied = {name: column for name, each in parsed.items() if has_source and (column := sides.source_column(each))}
    rest = {name: each for name, each in parsed.items() if name not in copied}
    target, source = sides.named_columns(rest.values())
    constants = {name: value for name, value in clause.updates.items() if name not in parsed}
    schema = arrow_schema(sides.schema)
    return Assignments(
        told=f"updates of {clause.name}",
        copied=copied,
        expressions={
            name: sides.sql(each, where=f"updates[{name!r}] of {clause.name}", when=clause.when)
            for name, each in rest.items()
        },
        target_columns=tuple(target) if clause.when is not When.NOT_MATCHED else (),
        source_columns=tuple(source) if has_source else (),
        values=as_reader([constants], schema=schema, what="updates").read_all() if constants else pa.table({}),
    )


def changed_rows(sides: Sides, assignments: Assignments, targets: pa.Table, source_rows: np.ndarray) -> pa.Table:
    """The target rows with their new values; `source_rows` are the positions of the matching source rows, or -1."""
    for name, column in _new_columns(sides, assignments, targets, source_rows).items():
        targets = targets.set_column(targets.schema.get_field_index(name), name, column)
    return targets


def inserted_rows(sides: Sides, assignments: Assignments, source_rows: np.ndarray) -> pa.Table:
    """The source rows at these positions, with the columns of the target."""
    return pa.table(_new_columns(sides, assignments, None, source_rows))


def _new_columns(
    sides: Sides, assignments: Assignments, targets: pa.Table | None, source_rows: np.ndarray
) -> dict[str, pa.ChunkedArray]:
    at = pa.array(source_rows)
    copied = {
        name: sides.source.column(column).take(at) for name, column in assignments.copied.items() if len(source_rows)
    }
    values = {
        name: pa.repeat(assignments.values.column(name)[0], len(source_rows))
        for name in assignments.values.column_names
    }
    if not assignments.expressions:
        return {**copied, **values}
    rows, from_clause = {}, []
    statement = sides.statement
    if targets is not None:
        rows["merge_target"] = _with_length(
            targets.select(list(assignments.target_columns)).rename_columns(
                sides.target_names_in_sql(assignments.target_columns)
            ),
            len(source_rows),
        )
        from_clause.append(f"merge_target AS {quoted(statement.target_alias)}")
    if (source_rows >= 0).all():
        named = sides.source.select(list(assignments.source_columns)).take(at)
        named = named.rename_columns(sides.source_names_in_sql(named.column_names))
        rows["merge_source"] = _with_length(named, len(source_rows))
        from_clause.append(f"merge_source AS {quoted(statement.source_alias)}")
    new = computed(
        sides.schema,
        assignments.expressions,
        rows,
        source=" POSITIONAL JOIN ".join(from_clause),
        where=assignments.told,
    )
    return {**copied, **values, **{name: new.column(name) for name in new.column_names}}


def _with_length(rows: pa.Table, row_count: int) -> pa.Table:
    """The rows, with a placeholder column if they have no columns: a table without columns has no row count."""
    return rows if rows.column_names else pa.table({"": pa.nulls(row_count, pa.bool_())})


def _all_columns(sides: Sides, clause: MergeClause) -> list[str]:
    for name in clause.except_columns:
        if name not in sides.source.column_names:
            raise UnknownColumnError(name, sides.source.column_names, where=f"except_cols of {clause.name}")
    names = [name for name in sides.source.column_names if name not in clause.except_columns]
    for name in names:
        if name not in sides.target_names:
            raise UnknownColumnError(name, sides.target_names, where=f"the source of {clause.name}")
    if clause.action is Action.INSERT_ALL:
        return names
    if changed := [name for name in names if name in sides.key and sides.equal_columns.get(name) != name]:
        raise InvalidArgumentError(
            f"{clause.name} would change {', '.join(map(repr, changed))}, which {_STAYS} Add it to on=, or exclude "
            "it with except_cols=."
        )
    return [name for name in names if name not in sides.key]


_STAYS = "is part of the key and cannot be changed: another row may already have the new key."


def _check_names(sides: Sides, clause: MergeClause) -> None:
    for name in clause.updates:
        if name not in sides.target_names:
            raise UnknownColumnError(name, sides.target_names, where=f"updates of {clause.name}")
    if clause.action is Action.UPDATE and (keys := [name for name in clause.updates if name in sides.key]):
        raise InvalidArgumentError(f"{clause.name} cannot set {', '.join(map(repr, keys))}, which {_STAYS}")
