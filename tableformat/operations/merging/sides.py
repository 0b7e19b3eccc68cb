"""The two sides of a merge: resolves the columns that SQL text names, and the columns that must be equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema
from sqlglot import exp

from tableformat.cached_property import cached_property
from tableformat.errors import UnknownColumnError
from tableformat.metadata.arrow_schema import arrow_schema
from tableformat.operations.merging.clauses import MergeClause, MergeStatement, When
from tableformat.operations.row_lookup.row_expressions import quoted, row_expression, sql_of
from tableformat.operations.row_lookup.sql_columns import SqlColumns, column_named


@dataclass(frozen=True)
class Sides:
    """A merge with its source rows and its target table."""

    statement: MergeStatement
    source: pa.Table
    """All source rows."""
    schema: Schema
    """The schema of the target."""
    key: tuple[str, ...]
    """Key columns of the target, in key order; empty for a table without a key."""

    @property
    def target_names(self) -> list[str]:
        """The top-level columns of the target."""
        return [field.name for field in self.schema.fields]

    @cached_property
    def _sql_columns(self) -> SqlColumns:
        statement = self.statement
        return SqlColumns(
            {statement.target_alias: arrow_schema(self.schema), statement.source_alias: self.source.schema}
        )

    def sql(self, expression: exp.Expr, *, where: str, when: When = When.MATCHED) -> str:
        """The expression over the names from `target_names_in_sql` and `source_names_in_sql`. `where` is the argument
        for errors, `when` the rows that the expression is for."""
        statement = self.statement
        one = {When.NOT_MATCHED: statement.source_alias, When.NOT_MATCHED_BY_SOURCE: statement.target_alias}.get(when)
        return sql_of(self._sql_columns.translated(expression, where=where, of=one))

    def target_names_in_sql(self, names: Sequence[str]) -> list[str]:
        """The names of target columns in such SQL."""
        return self._sql_columns.internal(self.statement.target_alias, names)

    def source_names_in_sql(self, names: Sequence[str]) -> list[str]:
        """The names of source columns in such SQL."""
        return self._sql_columns.internal(self.statement.source_alias, names)

    @cached_property
    def condition(self) -> exp.Expr:
        """The condition under which a target row and a source row match. Raises UnknownColumnError for a name in `on`
        that one of them lacks."""
        names = self._names_in_on
        if not names:
            assert isinstance(self.statement.on, str)
            return row_expression(self.statement.on, where="on")
        for name in names:
            for known, side in ((self.target_names, "the table"), (self.source.column_names, "the source")):
                if name not in known:
                    raise UnknownColumnError(name, known, where=f"on= of a merge, in {side}")
        target, source = quoted(self.statement.target_alias), quoted(self.statement.source_alias)
        equal = (f"{target}.{quoted(name)} = {source}.{quoted(name)}" for name in names)
        return row_expression(" AND ".join(equal), where="on")

    @property
    def _names_in_on(self) -> tuple[str, ...]:
        """Empty if `on` is SQL text."""
        on = self.statement.on
        if isinstance(on, str):
            return (on,) if on in self.target_names else ()
        return on

    @cached_property
    def equal_columns(self) -> dict[str, str]:
        """Columns of the target that, according to the condition, must equal a column of the source."""
        found: dict[str, str] = {}
        for part in _conjuncts(self.condition):
            if isinstance(part, exp.EQ):
                for one, other in ((part.this, part.expression), (part.expression, part.this)):
                    target, source = self._column(one, of_target=True), self._column(other, of_target=False)
                    if target is not None and source is not None:
                        found.setdefault(target, source)
        return found

    def source_column(self, expression: exp.Expr) -> str | None:
        """The column of the source, if the expression is only that column."""
        return self._column(expression, of_target=False)

    def named_columns(self, expressions: Iterable[exp.Expr]) -> tuple[list[str], list[str]]:
        """The columns of the target and of the source that the expressions may name, in the order of each side."""
        names = {name.lower() for each in expressions for name in _names(each)}
        return (
            [name for name in self.target_names if name.lower() in names],
            [name for name in self.source.column_names if name.lower() in names],
        )

    def _column(self, expression: exp.Expr, *, of_target: bool) -> str | None:
        """The column of one side, if the expression is only that column: with its alias, or with a name that the other
        side lacks."""
        if not isinstance(expression, exp.Column):
            return None
        parts = [part.name for part in expression.parts]
        own, others = self.target_names, self.source.column_names
        alias = self.statement.target_alias
        if not of_target:
            own, others, alias = others, own, self.statement.source_alias
        if len(parts) == 2 and parts[0].lower() == alias.lower():
            return column_named(parts[1], own, where=_NAMED_BY)
        if len(parts) == 1 and column_named(parts[0], others, where=_NAMED_BY) is None:
            return column_named(parts[0], own, where=_NAMED_BY)
        return None


def predicate_of(clause: MergeClause) -> exp.Expr | None:
    return None if clause.predicate is None else row_expression(clause.predicate, where=f"a predicate of {clause.name}")


def chosen_clause(sides: Sides, clauses: Iterable[tuple[int, MergeClause]]) -> str:
    """SQL for the position of the first clause whose predicate is true; -1 without such a clause."""
    branches = []
    for place, clause in clauses:
        predicate = predicate_of(clause)
        told = f"a predicate of {clause.name}"
        condition = "true" if predicate is None else f"({sides.sql(predicate, where=told, when=clause.when)})"
        branches.append(f"WHEN {condition} THEN {place}")
    return f"CASE {' '.join(branches)} ELSE -1 END" if branches else "-1"


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from _conjuncts(condition.this)
        yield from _conjuncts(condition.expression)
    else:
        yield condition


def _names(expression: exp.Expr) -> Iterator[str]:
    """The first two parts of each dotted name: a column, or an alias and its column."""
    for column in expression.find_all(exp.Column):
        yield from (part.name for part in column.parts[:2])


_NAMED_BY: Final = "on=, or updates of a clause, of a merge"
